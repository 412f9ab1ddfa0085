//! Tables that were read from files which are no databases, made databases to be compared.

use std::collections::HashSet;
use std::io::{self, Read};

use extract::Content;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

/// Rows of one name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// The column by which rows are the same row, if it is one.
    pub(crate) key: Option<usize>,
    /// Each as long as `columns`.
    pub(crate) rows: Vec<Vec<Sql>>,
}

impl Table {
    /// The key, if every row has a value of its own there.
    fn usable_key(&self) -> Option<&str> {
        let key = self.key?;
        let mut seen = HashSet::new();
        let distinct = self.rows.iter().all(|row| match row.get(key) {
            None | Some(Sql::Null) => false,
            Some(value) => seen.insert(format!("{value:?}")),
        });
        if distinct {
            self.columns.get(key).map(String::as_str)
        } else {
            None
        }
    }
}

/// A database as bytes.
pub(crate) struct Bytes(Vec<u8>);

impl Content for Bytes {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_slice()))
    }
}

/// A database with `tables`. Of several with one name the rows of all count.
pub(crate) fn database(tables: &[Table]) -> Result<Bytes, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("rows.db");
    fill(&path, tables).map_err(|error| error.to_string())?;
    std::fs::read(&path)
        .map(Bytes)
        .map_err(|error| error.to_string())
}

fn fill(path: &std::path::Path, tables: &[Table]) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let all = connection.transaction()?;
    // An empty list has no columns, and nothing that could differ.
    for table in tables.iter().filter(|table| !table.columns.is_empty()) {
        let mut parts: Vec<String> = table.columns.iter().map(|name| quoted(name)).collect();
        if let Some(key) = table.usable_key() {
            parts.push(format!("primary key ({})", quoted(key)));
        }
        let name = quoted(&table.name);
        all.execute_batch(&format!("create table {name} ({})", parts.join(", ")))?;
        let places = vec!["?"; table.columns.len()].join(", ");
        let mut insert = all.prepare(&format!("insert into {name} values ({places})"))?;
        for row in &table.rows {
            insert.execute(params_from_iter(row))?;
        }
    }
    all.commit()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
