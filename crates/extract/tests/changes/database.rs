//! SQLite databases, made by SQLite.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use extract::{ChangeLimits, Content, ContentChanges, ExtractError, Happened, Inside};
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;
use testkit::documents::database;

use crate::{changes, limited, lines, lone};

fn between(old: &str, new: &str) -> ContentChanges {
    changes("any name", &database(old), &database(new)).unwrap()
}

#[test]
fn rows_are_told_apart_by_the_primary_key() {
    let schema = "CREATE TABLE deals (id INTEGER PRIMARY KEY, stage TEXT COLLATE NOCASE, sum REAL, raw BLOB);
        CREATE TABLE same (a); INSERT INTO same VALUES (1), (1);";
    let found = between(
        &format!(
            "{schema} INSERT INTO deals VALUES (1,'new',1.5,NULL),(2,'new',2,x'6869'),(3,'old',3,NULL),(4,'x',NULL,NULL);"
        ),
        &format!(
            "{schema} INSERT INTO deals VALUES (1,'new',1.5,NULL),(2,'NEW',2,x'6869ff'),(4,'x',0,NULL),(7,'won',NULL,NULL);"
        ),
    );
    assert_eq!(found.inside, Inside::Database);
    assert_eq!(found.tables.len(), 1);
    let table = &found.tables[0];
    assert_eq!(
        (table.name.as_str(), table.happened),
        ("deals", Happened::Changed)
    );
    assert_eq!(table.key, ["id"]);
    assert_eq!((table.added, table.removed, table.changed), (1, 1, 2));
    assert_eq!(
        lines(&table.rows),
        [
            r#"+ {"id":7,"stage":"won","sum":null,"raw":null}"#,
            r#"- {"id":3,"stage":"old","sum":3.0,"raw":null}"#,
            r#"~ {"id":2,"stage":"new","sum":2.0,"raw":"hi"} -> {"id":2,"stage":"NEW","sum":2.0,"raw":"hi�"}"#,
            r#"~ {"id":4,"stage":"x","sum":null,"raw":null} -> {"id":4,"stage":"x","sum":0.0,"raw":null}"#,
        ]
    );
}

#[test]
fn without_a_key_rows_are_told_apart_by_their_content() {
    let found = between(
        "CREATE TABLE log (who, what); INSERT INTO log VALUES ('a','x'),('a','x'),('b',NULL),('c',1);",
        "CREATE TABLE log (who, what); INSERT INTO log VALUES ('c','1'),('a','x'),('b',NULL);",
    );
    let table = &found.tables[0];
    assert!(table.key.is_empty());
    let mut rows = lines(&table.rows);
    rows.sort();
    assert_eq!(
        rows,
        [
            r#"+ {"who":"c","what":"1"}"#,
            r#"- {"who":"a","what":"x"}"#,
            r#"- {"who":"c","what":1}"#,
        ]
    );
    // A null in the key: rows cannot be told apart by it.
    let found = between(
        "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1), ('a', 1);",
        "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1), ('a', 2);",
    );
    let table = &found.tables[0];
    assert!(table.key.is_empty() && table.changed == 0);
    assert_eq!((table.added, table.removed), (1, 1));
    assert!(table.notes[0].contains("primary key"));
}

#[test]
fn tables_and_columns_come_and_go() {
    let found = between(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, x, gone); INSERT INTO a VALUES (1,2,3),(2,2,3);
         CREATE TABLE dropped (v); INSERT INTO dropped VALUES ('was');
         CREATE TABLE kind (v INT); CREATE INDEX i ON a(x);",
        "CREATE TABLE a (id INTEGER PRIMARY KEY, fresh, x); INSERT INTO a VALUES (1,9,2),(2,9,5);
         CREATE TABLE made (\"odd \"\" name\"); INSERT INTO made VALUES ('is');
         CREATE TABLE kind (v TEXT); CREATE VIEW w AS SELECT 1;",
    );
    let tables: Vec<_> = found
        .tables
        .iter()
        .map(|t| (t.name.as_str(), t.happened))
        .collect();
    assert_eq!(
        tables,
        [
            ("a", Happened::Changed),
            ("dropped", Happened::Removed),
            ("kind", Happened::Changed),
            ("made", Happened::Added),
        ]
    );
    let a = &found.tables[0];
    assert_eq!(
        (&a.columns_added[..], &a.columns_removed[..]),
        (&["fresh".to_owned()][..], &["gone".to_owned()][..])
    );
    assert_eq!(
        lines(&a.rows),
        [r#"~ {"id":2,"x":2,"gone":3} -> {"id":2,"fresh":9,"x":5}"#]
    );
    assert_eq!(lines(&found.tables[1].rows), [r#"- {"v":"was"}"#]);
    assert_eq!(
        found.tables[2].notes,
        ["the definition of the table has changed"]
    );
    assert_eq!(lines(&found.tables[3].rows), [r#"+ {"odd \" name":"is"}"#]);
    assert_eq!(found.notes, ["index `i` is gone", "view `w` is new"]);
    assert!(
        found
            .to_text("x.db")
            .contains(r#"schema_changed: {"added_columns":["fresh"],"removed_columns":["gone"]}"#)
    );
}

#[test]
fn a_database_of_one_version_only_is_all_added_or_all_removed() {
    let bytes = database("CREATE TABLE t (v); INSERT INTO t VALUES (1),(2);");
    let found = lone("x.db", None, Some(&bytes));
    assert_eq!(
        (found.tables[0].happened, found.tables[0].added),
        (Happened::Added, 2)
    );
    let found = lone("x.db", Some(&bytes), None);
    assert_eq!(
        (found.tables[0].happened, found.tables[0].removed),
        (Happened::Removed, 2)
    );
    // An empty file is an empty database.
    let found = changes("x.db", b"", &bytes).unwrap();
    assert_eq!(found.tables[0].added, 2);
    let vacuumed = database(
        "CREATE TABLE t (v); CREATE TABLE u (v); INSERT INTO t VALUES (1),(2); DROP TABLE u; VACUUM;",
    );
    let found = changes("x.db", &bytes, &vacuumed).unwrap();
    assert_eq!(
        found.notes,
        ["no row and no definition of the database has changed"]
    );
    assert_eq!(
        lone("x.db", None, Some(b"no database")).inside,
        Inside::Nothing
    );
}

/// What an application wrote last stands in the log beside the database.
#[test]
fn the_write_ahead_log_counts() {
    struct Files<'a>(&'a Path);
    impl Content for Files<'_> {
        fn size(&self) -> u64 {
            std::fs::metadata(self.0).unwrap().len()
        }
        fn read(&self) -> std::io::Result<Box<dyn Read + '_>> {
            Ok(Box::new(std::fs::File::open(self.0)?))
        }
        fn write_ahead_log(&self) -> std::io::Result<Option<Box<dyn Read + '_>>> {
            let file = std::fs::File::open(self.0.with_extension("db-wal"))?;
            Ok(Some(Box::new(file)))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1,'a');")
        .unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let old = std::fs::read(&path).unwrap();
    connection
        .execute_batch("INSERT INTO t VALUES (2,'b')")
        .unwrap();
    // The database itself is as before.
    assert_eq!(std::fs::read(&path).unwrap(), old);
    let old = old.as_slice();
    let limits = ChangeLimits::default();
    let found = extract::content_changes("x.db", Some(&old), Some(&Files(&path)), &limits).unwrap();
    assert_eq!(lines(&found.tables[0].rows), [r#"+ {"id":2,"v":"b"}"#]);
    // Looking changed nothing.
    assert_eq!(std::fs::read(&path).unwrap(), old);
    drop(connection);
}

#[test]
fn counts_are_exact_where_rows_are_cut() {
    let found = between(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v);",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, 'x' FROM n;",
    );
    let table = &found.tables[0];
    assert_eq!(
        (table.added, table.rows.len(), table.truncated),
        (5000, 100, true)
    );
    assert_eq!(lines(&table.rows)[99], r#"+ {"id":100,"v":"x"}"#);
}

#[test]
fn damaged_and_large_databases_end_in_errors_within_limits() {
    let whole = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000) INSERT INTO t SELECT i, hex(i) FROM n;",
    );
    for length in (16..whole.len()).step_by(1777) {
        // Cut databases give an error, or what SQLite can still read.
        let _ = changes("x.db", &whole, &whole[..length]);
    }
    let mut garbled = whole.clone();
    for byte in garbled.iter_mut().skip(100).step_by(13) {
        *byte = byte.wrapping_mul(31).wrapping_add(7);
    }
    match changes("x.db", &whole, &garbled) {
        Ok(found) => assert!(!found.tables.is_empty()),
        Err(error) => assert!(
            error.to_string().contains("broken sqlite document"),
            "{error}"
        ),
    }
    let limits = ChangeLimits {
        database_bytes: 4096,
        ..ChangeLimits::default()
    };
    let error = limited("x.db", &whole, &whole, &limits).unwrap_err();
    assert!(
        matches!(
            error,
            ExtractError::Limit {
                limit: "database_bytes",
                ..
            }
        ),
        "{error:?}"
    );
    let limits = ChangeLimits {
        time: Duration::ZERO,
        ..ChangeLimits::default()
    };
    let empty = database("CREATE TABLE t (id INTEGER PRIMARY KEY, v);");
    let error = limited("x.db", &empty, &whole, &limits).unwrap_err();
    assert!(
        matches!(error, ExtractError::Timeout { limit: "time", .. }),
        "{error:?}"
    );
}

/// What a database brings along does not run.
#[test]
fn views_triggers_and_virtual_tables_do_not_run() {
    let found = between(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v);",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'x');
         CREATE VIRTUAL TABLE words USING fts5(body); INSERT INTO words VALUES ('hello');
         CREATE VIEW heavy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT * FROM n;
         CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END;",
    );
    assert_eq!(found.tables.len(), 1);
    assert_eq!(
        found.notes,
        [
            "virtual table `words` is not compared",
            "trigger `g` is new",
            "view `heavy` is new"
        ]
    );
}

/// The rows of a table of two columns, as text of a row.
type Table = Vec<(i64, Option<i64>)>;

/// Rows that were there, without those that are told to be gone or changed, with those that are told to
/// be new or changed.
fn applied(old: &Table, found: &ContentChanges) -> Vec<String> {
    let mut rows: Vec<String> = old
        .iter()
        .map(|(id, value)| json!({"id": id, "value": value}).to_string())
        .collect();
    for change in found.tables.iter().flat_map(|table| &table.rows) {
        let text = |row: &Option<extract::Row>| {
            row.as_ref().map(|row| serde_json::to_string(row).unwrap())
        };
        if let Some(before) = text(&change.before) {
            let at = rows.iter().position(|row| *row == before);
            rows.remove(at.unwrap_or_else(|| panic!("{before} was not there")));
        }
        rows.extend(text(&change.after));
    }
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The told rows make one version of the other, with a primary key and without.
    #[test]
    fn the_told_rows_make_one_version_of_the_other(
        old in proptest::collection::vec((0_i64..6, proptest::option::of(0_i64..3)), 0..10),
        new in proptest::collection::vec((0_i64..6, proptest::option::of(0_i64..3)), 0..10),
        keyed: bool,
    ) {
        let once = |rows: Table| -> Table {
            let mut seen = std::collections::BTreeSet::new();
            rows.into_iter().filter(|(id, _)| !keyed || seen.insert(*id)).collect()
        };
        let (old, new) = (once(old), once(new));
        let made = |rows: &Table| {
            let key = if keyed { "PRIMARY KEY" } else { "" };
            let mut sql = format!("CREATE TABLE t (id INTEGER {key}, value INTEGER);");
            for (id, value) in rows {
                let value = value.map_or("NULL".to_owned(), |value| value.to_string());
                sql += &format!("INSERT INTO t VALUES ({id}, {value});");
            }
            sql
        };
        let found = between(&made(&old), &made(&new));
        let mut right: Vec<String> = new
            .iter()
            .map(|(id, value)| json!({"id": id, "value": value}).to_string())
            .collect();
        right.sort();
        prop_assert_eq!(applied(&old, &found), right);
        let told = found.tables.iter().map(|t| t.added + t.removed + t.changed).sum::<u64>();
        let shown = found.tables.iter().map(|t| t.rows.len() as u64).sum::<u64>();
        prop_assert_eq!(told, shown);
        if keyed {
            // A row that keeps its key is changed, not gone and new.
            let kept = old.iter().filter(|(id, value)| new.iter().any(|(n, v)| n == id && v != value));
            prop_assert_eq!(found.tables.iter().map(|t| t.changed).sum::<u64>(), kept.count() as u64);
        }
    }
}
