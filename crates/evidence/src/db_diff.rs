//! Changed rows of all databases of the worlds (`spec/grading.md` §6.3.13).

use std::path::Path;

use extract::{ChangeLimits, Content, Happened, TableChange, content_changes, is_database};
use serde_json::{Map, Value, json};
use snapshot::{Entry, World};

use crate::error::EvidenceError;
use crate::limits::EvidenceLimits;
use crate::rows::WorldFile;
use crate::table::{self, Table};
use crate::worlds;
use crate::{json_rows, sql_rows};

/// The tables of all databases that are not the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatabaseChanges {
    /// Databases that are in one of the worlds.
    pub databases: usize,
    /// What changed, by path and table.
    pub tables: Vec<(String, TableChange)>,
    /// Databases that could not be compared, with the reason.
    pub problems: Vec<(String, String)>,
}

impl DatabaseChanges {
    /// Whether nothing changed that is known of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.problems.is_empty()
    }

    /// Only the databases whose path is one of `names` or ends in one.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let wanted = |path: &str| {
            let path = path.to_lowercase();
            names.iter().any(|name| {
                let name = name.trim().trim_start_matches('/').to_lowercase();
                path == name || path.ends_with(&format!("/{name}"))
            })
        };
        Self {
            databases: self.databases,
            tables: self
                .tables
                .iter()
                .filter(|t| wanted(&t.0))
                .cloned()
                .collect(),
            problems: self
                .problems
                .iter()
                .filter(|p| wanted(&p.0))
                .cloned()
                .collect(),
        }
    }

    /// The changed tables with the names by which they can be told apart: that of the table, with
    /// the path of its database in front where there are several.
    #[must_use]
    pub fn named_tables(&self) -> Vec<(String, &str, &TableChange)> {
        let several = self
            .tables
            .iter()
            .any(|(path, _)| *path != self.tables[0].0);
        let name = |path: &str, table: &TableChange| {
            if several {
                format!("{path}:{}", table.name)
            } else {
                table.name.clone()
            }
        };
        self.tables
            .iter()
            .map(|(path, table)| (name(path, table), path.as_str(), table))
            .collect()
    }

    /// What changed in which table, without rows.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = self.totals();
        for (name, path, table) in self.named_tables() {
            lines.push(String::new());
            lines.push(heading(path, table));
            lines.push(format!("name for the tools: {}", json!(name)));
            lines.extend(remarks(table));
            if table.truncated {
                lines.push("more rows changed than are kept at hand".to_owned());
            }
        }
        lines.join("\n")
    }

    /// The changes as text: totals, then each table with its rows, one JSON line per row.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = self.totals();
        for (path, table) in &self.tables {
            lines.push(String::new());
            lines.push(heading(path, table));
            lines.extend(details(table));
        }
        lines.join("\n")
    }

    fn totals(&self) -> Vec<String> {
        let sum = |count: fn(&TableChange) -> u64| -> u64 {
            self.tables.iter().map(|(_, table)| count(table)).sum()
        };
        let mut lines = vec![format!(
            "{} databases; {} tables changed: {} rows added, {} deleted, {} modified in all",
            self.databases,
            self.tables.len(),
            sum(|table| table.added),
            sum(|table| table.removed),
            sum(|table| table.changed),
        )];
        for (path, problem) in &self.problems {
            lines.push(format!("{}: cannot be compared: {problem}", json!(path)));
        }
        lines
    }
}

fn heading(path: &str, table: &TableChange) -> String {
    let whole = match table.happened {
        Happened::Added => ", a new table",
        Happened::Removed => ", a table that is gone",
        Happened::Changed => "",
    };
    format!(
        "table {} of {}{whole}: +{} -{} ~{}",
        json!(table.name),
        json!(path),
        table.added,
        table.removed,
        table.changed
    )
}

/// What is to be said of a table beside its rows.
fn remarks(table: &TableChange) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(error) = &table.error {
        lines.push(format!("cannot be compared: {error}"));
    }
    if !table.columns_added.is_empty() || !table.columns_removed.is_empty() {
        let columns = json!({
            "added_columns": table.columns_added, "removed_columns": table.columns_removed,
        });
        lines.push(format!("columns: {columns}"));
    }
    lines.extend(table.notes.iter().cloned());
    lines
}

fn details(table: &TableChange) -> Vec<String> {
    let mut lines = remarks(table);
    for row in &table.rows {
        let side = |row: &Option<Map<String, Value>>| {
            row.clone().map_or(Value::Null, Value::Object).to_string()
        };
        lines.push(match row.happened {
            Happened::Added => format!("+ {}", side(&row.after)),
            Happened::Removed => format!("- {}", side(&row.before)),
            Happened::Changed => format!("~ {} -> {}", side(&row.before), side(&row.after)),
        });
    }
    if table.truncated {
        lines.push("… further rows are counted above and not shown".to_owned());
    }
    lines
}

/// Which rows are compared beside those of databases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RowSources {
    /// Databases, a SQL dump and JSON files together; otherwise the first of these kinds that the
    /// worlds have.
    pub all_kinds: bool,
    /// The field by which rows of JSON files are the same row; one of the usual names if absent.
    pub json_id_field: Option<String>,
    /// Whether all changed rows are kept, as far as [memory](ALL_ROWS_BYTES) allows, and not just
    /// the first ones of each table.
    pub all_rows: bool,
}

/// Bytes of the rows of one file that are kept where all of them are wanted.
pub const ALL_ROWS_BYTES: usize = 256 << 20;

impl RowSources {
    fn limits(&self) -> ChangeLimits {
        let limits = ChangeLimits::default();
        if self.all_rows {
            ChangeLimits {
                shown_rows: limits.rows,
                shown_bytes: ALL_ROWS_BYTES,
                cell_chars: 20_000,
                ..limits
            }
        } else {
            limits
        }
    }
}

/// Compares the rows of two worlds.
pub(crate) fn between(
    initial: &Path,
    after: &Path,
    sources: &RowSources,
    evidence: &EvidenceLimits,
) -> Result<DatabaseChanges, EvidenceError> {
    let before = worlds::open("initial", initial)?;
    let after = worlds::open("final", after)?;
    let mut changes = DatabaseChanges::default();
    let limits = sources.limits();
    for path in paths(&before, &after, may_be_database) {
        compare(path, &before, &after, &limits, &mut changes);
    }
    if sources.all_kinds || changes.databases == 0 {
        dumps(&before, &after, evidence, &limits, &mut changes)?;
    }
    if sources.all_kinds || changes.databases == 0 {
        let id_field = sources.json_id_field.as_deref();
        for path in paths(&before, &after, json_rows::has_rows) {
            let read = |world: &World| json_rows::tables(world, path, id_field, evidence);
            match (read(&before), read(&after)) {
                (Ok(old), Ok(new)) => compare_tables(path, &old, &new, &limits, &mut changes)?,
                (Err(problem), _) | (_, Err(problem)) => {
                    changes.problems.push((path.to_owned(), problem));
                }
            }
        }
    }
    Ok(changes)
}

/// The paths of the files of either world that `counts` accepts, in order, each once.
fn paths<'w>(before: &'w World, after: &'w World, counts: impl Fn(&Entry) -> bool) -> Vec<&'w str> {
    let mut paths: Vec<&str> = before
        .entries()
        .iter()
        .chain(after.entries())
        .filter(|entry| entry.is_file() && counts(entry))
        .map(Entry::path)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Names under which applications keep databases; other files would all have to be opened.
fn may_be_database(entry: &Entry) -> bool {
    let extension = extract::extension(entry.path());
    matches!(extension.as_str(), "db" | "sqlite" | "sqlite3" | "db3")
}

fn compare(
    path: &str,
    before: &World,
    after: &World,
    limits: &ChangeLimits,
    changes: &mut DatabaseChanges,
) {
    fn of<'w>(world: &'w World, path: &str) -> Option<WorldFile<'w>> {
        let entry = world.get(path).filter(|entry| entry.is_file())?;
        Some(WorldFile::new(world, entry))
    }
    let (old, new) = (of(before, path), of(after, path));
    let is_one = [old.as_ref(), new.as_ref()]
        .into_iter()
        .flatten()
        .any(|file| is_database(file).unwrap_or(false));
    if !is_one {
        return;
    }
    let (old, new) = (
        old.as_ref().map(|file| file as &dyn Content),
        new.as_ref().map(|file| file as &dyn Content),
    );
    compare_content(path, path, old, new, limits, changes);
}

/// `name` says what kind of content it is.
fn compare_content(
    path: &str,
    name: &str,
    old: Option<&dyn Content>,
    new: Option<&dyn Content>,
    limits: &ChangeLimits,
    changes: &mut DatabaseChanges,
) {
    changes.databases += 1;
    match content_changes(name, old, new, limits) {
        Ok(found) => {
            let tables = found.tables.into_iter();
            changes
                .tables
                .extend(tables.map(|table| (path.to_owned(), table)));
        }
        Err(error) => changes.problems.push((path.to_owned(), error.to_string())),
    }
}

/// Compares the SQL dumps of both worlds, each the one that is nearest to the root, and of those
/// the largest.
fn dumps(
    before: &World,
    after: &World,
    evidence: &EvidenceLimits,
    limits: &ChangeLimits,
    changes: &mut DatabaseChanges,
) -> Result<(), EvidenceError> {
    let (old, new) = (sql_rows::dump_of(before), sql_rows::dump_of(after));
    let Some(named) = new.or(old) else {
        return Ok(());
    };
    let read = |world: &World, entry: Option<&Entry>| match entry {
        None => Ok(Vec::new()),
        Some(entry) => world
            .read_entry(entry, evidence.file_bytes)
            .map(|bytes| sql_rows::tables(&String::from_utf8_lossy(&bytes)))
            .map_err(|error| error.to_string()),
    };
    match (read(before, old), read(after, new)) {
        (Ok(old), Ok(new)) => compare_tables(named.path(), &old, &new, limits, changes),
        (Err(problem), _) | (_, Err(problem)) => {
            changes.problems.push((named.path().to_owned(), problem));
            Ok(())
        }
    }
}

/// Compares tables that were read from other files, as databases.
fn compare_tables(
    path: &str,
    old: &[Table],
    new: &[Table],
    limits: &ChangeLimits,
    changes: &mut DatabaseChanges,
) -> Result<(), EvidenceError> {
    let database = |tables: &[Table]| {
        table::database(tables)
            .map_err(|error| EvidenceError::unreadable(format!("`{path}`: its rows: {error}")))
    };
    let (old, new) = (database(old)?, database(new)?);
    compare_content(path, "rows.db", Some(&old), Some(&new), limits, changes);
    Ok(())
}
