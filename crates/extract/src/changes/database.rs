//! Rows of SQLite databases (`spec/grading.md` §6.3.13).
//!
//! Both versions are copied to a temporary folder, each with its write-ahead log, and attached to
//! one connection; SQLite itself finds the rows that differ, with the indexes of the tables and
//! with temporary files where it must sort. Databases come from agents and are not trusted:
//! triggers, views and functions of the schema do not run. A rollback journal is not copied: when
//! SQLite finds one, it deletes files that the journal names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};
use serde_json::Value;

use super::rows::Collector;
use super::{ChangeLimits, Content, ContentChanges, Happened, Row, TableChange};
use crate::error::ExtractError;

const FORMAT: &str = "sqlite";

/// The first bytes of every database file.
const SIGNATURE: &[u8; 16] = b"SQLite format 3\0";

/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 20_000;

/// Whether a file is a SQLite database, by its first bytes: it may have any name.
///
/// # Errors
/// [`ExtractError::Read`] when it cannot be read.
pub fn is_database(content: &dyn Content) -> Result<bool, ExtractError> {
    let mut beginning = Vec::new();
    content
        .read()
        .and_then(|reader| reader.take(16).read_to_end(&mut beginning))
        .map_err(ExtractError::read)?;
    Ok(beginning == SIGNATURE)
}

pub(super) fn compare(
    before: Option<&dyn Content>,
    after: Option<&dyn Content>,
    limits: &ChangeLimits,
    changes: &mut ContentChanges,
) -> Result<(), ExtractError> {
    let folder = tempfile::tempdir().map_err(ExtractError::read)?;
    let mut database = Database::open(limits)?;
    for (schema, content) in [("old", before), ("new", after)] {
        let path = folder.path().join(schema);
        match content.filter(|content| content.size() > 0) {
            Some(content) => copy(content, &path, limits)?,
            // An empty file is an empty database to SQLite.
            None => drop(File::create(&path).map_err(ExtractError::read)?),
        }
        database.attach(schema, &path)?;
    }
    database.compare(changes)
}

/// Copies a database and its write-ahead log.
fn copy(content: &dyn Content, path: &Path, limits: &ChangeLimits) -> Result<(), ExtractError> {
    let mut left = limits.database_bytes;
    let mut write = |from: Box<dyn Read + '_>, to: &Path| -> Result<(), ExtractError> {
        let copied = File::create(to)
            .and_then(|mut file| io::copy(&mut from.take(left + 1), &mut file))
            .map_err(ExtractError::read)?;
        left = left.checked_sub(copied).ok_or(ExtractError::Limit {
            what: "size of the database in bytes (at least)",
            limit: "database_bytes",
            got: limits.database_bytes + 1,
            allowed: limits.database_bytes,
        })?;
        Ok(())
    };
    write(content.read().map_err(ExtractError::read)?, path)?;
    if let Some(log) = content.write_ahead_log().map_err(ExtractError::read)? {
        let mut beside = path.as_os_str().to_owned();
        beside.push("-wal");
        write(log, Path::new(&beside))?;
    }
    Ok(())
}

/// A table of one version.
struct Definition {
    columns: Vec<String>,
    /// The declared primary key, in its order.
    key: Vec<String>,
    sql: String,
}

struct Database<'l> {
    connection: Connection,
    limits: &'l ChangeLimits,
}

impl<'l> Database<'l> {
    fn open(limits: &'l ChangeLimits) -> Result<Self, ExtractError> {
        let mut connection = Connection::open_in_memory().map_err(|e| error(&e, limits))?;
        let deadline = Instant::now() + limits.time;
        let prepared = (|| {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes)?;
            connection.progress_handler(STEPS, Some(move || Instant::now() > deadline))
        })();
        prepared.map_err(|e| error(&e, limits))?;
        Ok(Self { connection, limits })
    }

    fn attach(&mut self, schema: &str, path: &Path) -> Result<(), ExtractError> {
        self.connection
            .execute(
                &format!("ATTACH ?1 AS {schema}"),
                [path.to_string_lossy().as_ref()],
            )
            .map_err(|e| error(&e, self.limits))?;
        Ok(())
    }

    fn compare(&self, changes: &mut ContentChanges) -> Result<(), ExtractError> {
        let failed = |e: rusqlite::Error| error(&e, self.limits);
        let old = self.tables("old", changes).map_err(failed)?;
        let new = self.tables("new", changes).map_err(failed)?;
        let mut collector = Collector::new(self.limits);
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (was, now) = (old.get(name), new.get(name));
            let happened = match (was, now) {
                (None, _) => Happened::Added,
                (_, None) => Happened::Removed,
                _ => Happened::Changed,
            };
            let mut table = TableChange::new(name, happened);
            match self.table(&mut table, &mut collector, was, now) {
                Ok(()) => {}
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                    return Err(failed(e));
                }
                // One damaged table does not hide what happened to the others.
                Err(e) => table.error = Some(e.to_string()),
            }
            if table.says_something() {
                changes.tables.push(table);
            }
        }
        self.other_objects(changes).map_err(failed)?;
        if changes.tables.is_empty() && changes.notes.is_empty() {
            changes
                .notes
                .push("no row and no definition of the database has changed".to_owned());
        }
        Ok(())
    }

    /// The tables that hold rows of the user, by name.
    fn tables(
        &self,
        schema: &str,
        changes: &mut ContentChanges,
    ) -> rusqlite::Result<BTreeMap<String, Definition>> {
        let mut tables = BTreeMap::new();
        let mut list = self.connection.prepare(&format!(
            "SELECT l.name, l.type, coalesce(m.sql, '') FROM pragma_table_list l \
             JOIN {schema}.sqlite_master m ON m.name = l.name AND m.type = 'table' \
             WHERE l.schema = '{schema}' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             AND l.type IN ('table', 'virtual') ORDER BY l.name"
        ))?;
        let mut info = self
            .connection
            .prepare("SELECT name, pk FROM pragma_table_info(?1, ?2) ORDER BY cid")?;
        let mut rows = list.query([])?;
        while let Some(row) = rows.next()? {
            let (name, kind, sql): (String, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            if kind == "virtual" {
                let note = format!("virtual table `{name}` is not compared");
                if !changes.notes.contains(&note) {
                    changes.notes.push(note);
                }
                continue;
            }
            let mut columns = Vec::new();
            let mut key = Vec::new();
            let mut infos = info.query([name.as_str(), schema])?;
            while let Some(column) = infos.next()? {
                let (column, pk): (String, i64) = (column.get(0)?, column.get(1)?);
                if pk > 0 {
                    key.push((pk, column.clone()));
                }
                columns.push(column);
            }
            key.sort();
            let key = key.into_iter().map(|(_, column)| column).collect();
            tables.insert(name, Definition { columns, key, sql });
        }
        Ok(tables)
    }

    /// Notes on views, indexes and triggers that came, went or are defined in another way.
    fn other_objects(&self, changes: &mut ContentChanges) -> rusqlite::Result<()> {
        let of = |a: &str, b: &str| {
            format!(
                "SELECT a.type, a.name FROM {a}.sqlite_master a WHERE a.type <> 'table' AND a.sql IS NOT NULL \
                 AND NOT EXISTS (SELECT 1 FROM {b}.sqlite_master b WHERE b.name = a.name AND b.sql IS a.sql) \
                 ORDER BY a.type, a.name LIMIT 100"
            )
        };
        for (verb, sql) in [("gone", of("old", "new")), ("new", of("new", "old"))] {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
                changes.notes.push(format!("{kind} `{name}` is {verb}"));
            }
        }
        Ok(())
    }

    fn table(
        &self,
        table: &mut TableChange,
        collector: &mut Collector<'_>,
        was: Option<&Definition>,
        now: Option<&Definition>,
    ) -> rusqlite::Result<()> {
        let name = quoted(&table.name);
        let (was, now) = match (was, now) {
            (Some(was), Some(now)) => (was, now),
            (Some(only), None) | (None, Some(only)) => {
                table.key.clone_from(&only.key);
                let schema = if table.happened == Happened::Added {
                    "new"
                } else {
                    "old"
                };
                let sql = format!(
                    "SELECT {} FROM {schema}.{name}{}",
                    list(&only.columns, ""),
                    order(&only.key, "")
                );
                return self.one_side(table, collector, &sql, table.happened, &only.columns);
            }
            (None, None) => return Ok(()),
        };
        let missing = |columns: &[String], others: &[String]| -> Vec<String> {
            let of = columns.iter().filter(|column| !others.contains(column));
            of.cloned().collect()
        };
        table.columns_added = missing(&now.columns, &was.columns);
        table.columns_removed = missing(&was.columns, &now.columns);
        if table.columns_added.is_empty() && table.columns_removed.is_empty() && was.sql != now.sql
        {
            table
                .notes
                .push("the definition of the table has changed".to_owned());
        }
        if self.has_stable_key(&name, was, now)? {
            table.key.clone_from(&now.key);
            self.by_key(table, collector, was, now)
        } else {
            table.notes.extend(
                (!now.key.is_empty())
                    .then(|| "the primary key cannot tell rows apart in both versions".to_owned()),
            );
            self.by_content(table, collector, was, now)
        }
    }

    /// Whether both versions have the same primary key, without nulls.
    fn has_stable_key(
        &self,
        name: &str,
        was: &Definition,
        now: &Definition,
    ) -> rusqlite::Result<bool> {
        if now.key.is_empty() || now.key != was.key {
            return Ok(false);
        }
        let null: Vec<String> = now
            .key
            .iter()
            .map(|k| format!("{} IS NULL", quoted(k)))
            .collect();
        let null = null.join(" OR ");
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM old.{name} WHERE {null}) OR EXISTS (SELECT 1 FROM new.{name} WHERE {null})"
        );
        let any: bool = self.connection.query_row(&sql, [], |row| row.get(0))?;
        Ok(!any)
    }

    fn by_key(
        &self,
        table: &mut TableChange,
        collector: &mut Collector<'_>,
        was: &Definition,
        now: &Definition,
    ) -> rusqlite::Result<()> {
        let name = quoted(&table.name);
        let same: Vec<String> = now
            .key
            .iter()
            .map(|k| format!("o.{0} = n.{0}", quoted(k)))
            .collect();
        let same = same.join(" AND ");
        let lone = |columns: &[String],
                    key: &[String],
                    ours: &str,
                    schema: &str,
                    theirs: &str,
                    other: &str| {
            format!(
                "SELECT {} FROM {schema}.{name} {ours} WHERE NOT EXISTS \
                 (SELECT 1 FROM {other}.{name} {theirs} WHERE {same}){}",
                list(columns, ours),
                order(key, ours)
            )
        };
        let sql = lone(&now.columns, &now.key, "n", "new", "o", "old");
        self.one_side(table, collector, &sql, Happened::Added, &now.columns)?;
        let sql = lone(&was.columns, &was.key, "o", "old", "n", "new");
        self.one_side(table, collector, &sql, Happened::Removed, &was.columns)?;

        // Text columns may be declared to ignore case; a change of case is a change all the same.
        let compared: Vec<String> = now
            .columns
            .iter()
            .filter(|column| was.columns.contains(column) && !now.key.contains(column))
            .map(|c| {
                format!(
                    "o.{0} IS NOT n.{0} COLLATE BINARY OR typeof(o.{0}) <> typeof(n.{0})",
                    quoted(c)
                )
            })
            .collect();
        if compared.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT {}, {} FROM new.{name} n JOIN old.{name} o ON {same} WHERE {}{}",
            list(&was.columns, "o"),
            list(&now.columns, "n"),
            compared.join(" OR "),
            order(&now.key, "n")
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(found) = rows.next()? {
            collector.add(table, Happened::Changed, || {
                let before = row(found, 0, &was.columns);
                let after = row(found, was.columns.len(), &now.columns);
                (None, Some(before), Some(after))
            });
        }
        Ok(())
    }

    /// Rows that stand more often in one version than in the other.
    fn by_content(
        &self,
        table: &mut TableChange,
        collector: &mut Collector<'_>,
        was: &Definition,
        now: &Definition,
    ) -> rusqlite::Result<()> {
        let name = quoted(&table.name);
        let shared: Vec<String> = now
            .columns
            .iter()
            .filter(|column| was.columns.contains(column))
            .cloned()
            .collect();
        if shared.is_empty() {
            table.notes.push("no column is in both versions".to_owned());
            return Ok(());
        }
        let columns = list(&shared, "");
        let exactly: Vec<String> = shared
            .iter()
            .flat_map(|c| {
                [
                    format!("{} COLLATE BINARY", quoted(c)),
                    format!("typeof({})", quoted(c)),
                ]
            })
            .collect();
        let sql = format!(
            "SELECT {columns}, sum(side) FROM (SELECT {columns}, 1 AS side FROM new.{name} \
             UNION ALL SELECT {columns}, -1 AS side FROM old.{name}) \
             GROUP BY {} HAVING sum(side) <> 0",
            exactly.join(", ")
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(found) = rows.next()? {
            let more: i64 = found.get(shared.len())?;
            let happened = if more > 0 {
                Happened::Added
            } else {
                Happened::Removed
            };
            for _ in 0..more.unsigned_abs() {
                collector.add(table, happened, || {
                    let row = Some(row(found, 0, &shared));
                    if more > 0 {
                        (None, None, row)
                    } else {
                        (None, row, None)
                    }
                });
            }
        }
        Ok(())
    }

    fn one_side(
        &self,
        table: &mut TableChange,
        collector: &mut Collector<'_>,
        sql: &str,
        happened: Happened,
        columns: &[String],
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(found) = rows.next()? {
            collector.add(table, happened, || {
                let row = Some(row(found, 0, columns));
                match happened {
                    Happened::Removed => (None, row, None),
                    _ => (None, None, row),
                }
            });
        }
        Ok(())
    }
}

/// The columns of a result from `first` on.
fn row(found: &rusqlite::Row<'_>, first: usize, columns: &[String]) -> Row {
    columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let value = found.get_ref(first + at).map_or(Value::Null, value);
            (column.clone(), value)
        })
        .collect()
}

/// A value as JSON. Blobs are read as text, with replacement characters.
fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        // JSON has no infinities; they are written as words.
        ValueRef::Real(number) => serde_json::Number::from_f64(number)
            .map_or_else(|| number.to_string().into(), Value::Number),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn list(columns: &[String], alias: &str) -> String {
    let dot = if alias.is_empty() { "" } else { "." };
    let columns: Vec<String> = columns
        .iter()
        .map(|column| format!("{alias}{dot}{}", quoted(column)))
        .collect();
    columns.join(", ")
}

fn order(key: &[String], alias: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!(" ORDER BY {}", list(key, alias))
    }
}

fn error(error: &rusqlite::Error, limits: &ChangeLimits) -> ExtractError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => ExtractError::Timeout {
            format: FORMAT,
            limit: "time",
            seconds: limits.time.as_secs(),
        },
        // What is no database for SQLite is damaged here: it began like one.
        _ => ExtractError::broken(FORMAT, error),
    }
}
