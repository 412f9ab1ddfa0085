//! Asking the databases of a world (`spec/grading.md` §6.3.9).
//!
//! A database is copied with its write-ahead log to a temporary folder and asked there, so that
//! the world stays as it is. Databases come from agents: their triggers do not run, their views call
//! harmless functions only, a query has limits on time and on the size of a value, and no file but
//! the copy is touched.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use formats::Object;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use snapshot::{Entry, World};

use crate::error::EvidenceError;
use crate::limits::EvidenceLimits;
use crate::sql_dump;

/// The first bytes of every SQLite database.
const SIGNATURE: &[u8; 16] = b"SQLite format 3\0";

/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 20_000;

/// Rows of a result that are kept; further ones are counted.
const KEPT_ROWS: usize = 1_000;

/// What a query gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The database, by its path in the snapshot.
    pub database: String,
    /// The first rows, as JSON values by position; blobs are their bytes as UTF-8, replaced where
    /// they are not.
    pub rows: Vec<Vec<Value>>,
    /// All rows.
    pub row_count: usize,
}

impl Answer {
    /// The value of the first row and column; `null` without rows.
    #[must_use]
    pub fn first(&self) -> Value {
        let row = self.rows.first();
        row.and_then(|row| row.first()).cloned().unwrap_or_default()
    }
}

/// A database of a world.
struct Found<'a> {
    entry: &'a Entry,
    alias: String,
    is_dump: bool,
}

/// Runs `sql` on the database of `world` that `selector` names: by alias, by path, by the end of a
/// path, by a pattern that fits one (`*` crosses `/`), or by nothing (or `main`) where there is only
/// one.
pub(crate) fn query(
    world: &World,
    selector: &str,
    sql: &str,
    parameters: &Object,
    limits: &EvidenceLimits,
) -> Result<Answer, EvidenceError> {
    let found = find(world)?;
    let chosen = choose(&found, selector)?;
    let folder = tempfile::tempdir()
        .map_err(|error| EvidenceError::unreadable(format!("no temporary folder: {error}")))?;
    let path = chosen.entry.path();
    let connection = open(world, chosen, folder.path(), limits)
        .map_err(|reason| EvidenceError::unreadable(format!("database `{path}`: {reason}")))?;
    run(&connection, path, sql, parameters).map_err(|error| {
        let reason = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => format!(
                "it took more than {} s (limit `query_time`)",
                limits.query_time.as_secs()
            ),
            Some(rusqlite::ErrorCode::TooBig) => format!(
                "a value has more than {} bytes (limit `query_value_bytes`)",
                limits.query_value_bytes
            ),
            _ => error.to_string(),
        };
        EvidenceError::request(format!("the query on `{path}` failed: {reason}"))
    })
}

/// The tables of all databases of `world`, each with the path of its database in front.
pub(crate) fn tables(
    world: &World,
    limits: &EvidenceLimits,
) -> Result<Vec<(String, String)>, EvidenceError> {
    let mut tables = Vec::new();
    for database in find(world)?.iter().filter(|database| !database.is_dump) {
        let path = database.entry.path();
        let folder = tempfile::tempdir()
            .map_err(|error| EvidenceError::unreadable(format!("no temporary folder: {error}")))?;
        let connection = open(world, database, folder.path(), limits)
            .map_err(|reason| EvidenceError::unreadable(format!("database `{path}`: {reason}")))?;
        let sql = "select name from sqlite_master where type = 'table' and name not like 'sqlite@_%' escape '@' order by name";
        let answer = run(&connection, path, sql, &Object::new())
            .map_err(|error| EvidenceError::unreadable(format!("database `{path}`: {error}")))?;
        let names = answer.rows.iter().filter_map(|row| row.first()?.as_str());
        tables.extend(names.map(|name| (path.to_owned(), name.to_owned())));
    }
    Ok(tables)
}

fn find(world: &World) -> Result<Vec<Found<'_>>, EvidenceError> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for entry in world.entries().iter().filter(|entry| entry.is_file()) {
        let path = entry.path();
        let extension = extract::extension(path);
        let stem = path
            .strip_suffix(&format!(".{extension}"))
            .unwrap_or(path)
            .replace(['/', '\\'], "_");
        let is_dump = extension == "sql";
        let is_database = matches!(extension.as_str(), "db" | "sqlite" | "sqlite3")
            && (entry.size() == 0 || begins_as_database(world, entry)?);
        if !is_dump && !is_database {
            continue;
        }
        let alias = if is_dump {
            stem.trim_start_matches(['.', '_']).to_owned()
        } else {
            stem
        };
        // Of equal aliases the first one counts.
        if !alias.is_empty() && !found.iter().any(|other| other.alias == alias) {
            found.push(Found {
                entry,
                alias,
                is_dump,
            });
        }
    }
    Ok(found)
}

fn begins_as_database(world: &World, entry: &Entry) -> Result<bool, EvidenceError> {
    use std::io::Read as _;
    let mut beginning = Vec::new();
    world
        .reader(entry)
        .map_err(|error| EvidenceError::unreadable(error.to_string()))?
        .take(16)
        .read_to_end(&mut beginning)
        .map_err(|error| EvidenceError::unreadable(format!("`{}`: {error}", entry.path())))?;
    Ok(beginning == SIGNATURE)
}

fn choose<'a, 'w>(found: &'a [Found<'w>], selector: &str) -> Result<&'a Found<'w>, EvidenceError> {
    let selector = selector.trim().trim_start_matches('/');
    let by_name = found.iter().find(|database| {
        let path = database.entry.path();
        database.alias == selector || path == selector
    });
    if let Some(database) = by_name {
        return Ok(database);
    }
    let mut fitting: Vec<&Found<'_>> = found
        .iter()
        .filter(|database| {
            let path = database.entry.path();
            !selector.is_empty()
                && path
                    .strip_suffix(selector)
                    .is_some_and(|folder| folder.ends_with('/'))
        })
        .collect();
    if fitting.is_empty() && selector.contains(['*', '?', '[']) {
        let pattern = globset::Glob::new(selector)
            .map_err(|error| EvidenceError::request(format!("`{selector}`: {error}")))?
            .compile_matcher();
        let fits = |database: &&Found<'_>| {
            pattern.is_match(database.entry.path()) || pattern.is_match(&database.alias)
        };
        fitting = found.iter().filter(fits).collect();
    }
    if fitting.is_empty() && matches!(selector, "" | "main") {
        fitting = found.iter().collect();
    }
    match fitting[..] {
        [one] => Ok(one),
        _ => {
            let names: Vec<&str> = found.iter().map(|d| d.alias.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            Err(EvidenceError::request(format!(
                "no single database of the world is named `{selector}`; there are {names}"
            )))
        }
    }
}

fn open(
    world: &World,
    database: &Found<'_>,
    folder: &Path,
    limits: &EvidenceLimits,
) -> Result<Connection, String> {
    let connection = if database.is_dump {
        let bytes = world
            .read_entry(database.entry, limits.file_bytes)
            .map_err(|error| error.to_string())?;
        let mut connection = Connection::open_in_memory().map_err(|error| error.to_string())?;
        guard(&mut connection, limits).map_err(|error| error.to_string())?;
        sql_dump::load(&connection, &String::from_utf8_lossy(&bytes));
        connection
    } else {
        let path = folder.join("copy.db");
        copy(world, database.entry, &path, limits)?;
        let log = format!("{}-wal", database.entry.path());
        if let Some(log) = world.get(&log).filter(|entry| entry.is_file()) {
            copy(world, log, &folder.join("copy.db-wal"), limits)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection =
            Connection::open_with_flags(&path, flags).map_err(|error| error.to_string())?;
        guard(&mut connection, limits).map_err(|error| error.to_string())?;
        connection
    };
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| error.to_string())?;
    Ok(connection)
}

fn guard(connection: &mut Connection, limits: &EvidenceLimits) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    let deadline = Instant::now() + limits.query_time;
    connection.progress_handler(STEPS, Some(move || Instant::now() > deadline))?;
    connection.set_limit(
        rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH,
        limits.query_value_bytes,
    )?;
    // Nothing but this database: a query must not open files.
    connection.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    Ok(())
}

fn copy(world: &World, entry: &Entry, to: &Path, limits: &EvidenceLimits) -> Result<(), String> {
    let (size, most) = (entry.size(), limits.laid_out_bytes);
    if size > most {
        return Err(format!(
            "it has {size} bytes, limit `laid_out_bytes` is {most}"
        ));
    }
    let mut reader = world.reader(entry).map_err(|error| error.to_string())?;
    let mut file = std::fs::File::create(to).map_err(|error| error.to_string())?;
    std::io::copy(&mut reader, &mut file)
        .and_then(|_| file.flush())
        .map_err(|error| error.to_string())
}

fn run(
    connection: &Connection,
    path: &str,
    sql: &str,
    parameters: &Object,
) -> rusqlite::Result<Answer> {
    let mut statement = connection.prepare(sql)?;
    for (name, value) in parameters {
        for prefix in [":", "@", "$"] {
            if let Some(at) = statement.parameter_index(&format!("{prefix}{name}"))? {
                statement.raw_bind_parameter(at, bound(value))?;
            }
        }
    }
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut answer = Answer {
        database: path.to_owned(),
        rows: Vec::new(),
        row_count: 0,
    };
    while let Some(row) = rows.next()? {
        answer.row_count += 1;
        if answer.rows.len() < KEPT_ROWS {
            let cells = (0..columns)
                .map(|column| row.get_ref(column).map(json))
                .collect::<rusqlite::Result<Vec<Value>>>()?;
            answer.rows.push(cells);
        }
    }
    Ok(answer)
}

fn bound(value: &Value) -> ToSqlOutput<'static> {
    use rusqlite::types::Value as Sql;
    ToSqlOutput::Owned(match value {
        Value::Null => Sql::Null,
        Value::Bool(flag) => Sql::Integer(i64::from(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Sql::Integer(integer),
            None => Sql::Real(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Sql::Text(text.clone()),
        other => Sql::Text(other.to_string()),
    })
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => integer.into(),
        ValueRef::Real(real) => real.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned().into()
        }
    }
}
