//! Changed rows of all databases of the worlds (`spec/grading.md` §6.3.13).

use std::path::Path;

use extract::{ChangeLimits, Content, Happened, TableChange, content_changes, is_database};
use serde_json::{Map, Value, json};
use snapshot::{Entry, World};

use crate::error::EvidenceError;
use crate::rows::WorldFile;
use crate::worlds;

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

    /// The changes as text: totals, then each table with its rows, one JSON line per row.
    #[must_use]
    pub fn text(&self) -> String {
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
        for (path, table) in &self.tables {
            lines.push(String::new());
            lines.push(heading(path, table));
            lines.extend(details(table));
        }
        lines.join("\n")
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

fn details(table: &TableChange) -> Vec<String> {
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

/// Compares the databases of two worlds.
pub(crate) fn between(initial: &Path, after: &Path) -> Result<DatabaseChanges, EvidenceError> {
    let before = worlds::open("initial", initial)?;
    let after = worlds::open("final", after)?;
    let mut changes = DatabaseChanges::default();
    let mut paths: Vec<&str> = before
        .entries()
        .iter()
        .chain(after.entries())
        .filter(|entry| entry.is_file() && may_be_database(entry))
        .map(Entry::path)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        compare(path, &before, &after, &mut changes);
    }
    Ok(changes)
}

/// Names under which applications keep databases; other files would all have to be opened.
fn may_be_database(entry: &Entry) -> bool {
    let extension = extract::extension(entry.path());
    matches!(extension.as_str(), "db" | "sqlite" | "sqlite3" | "db3")
}

fn compare(path: &str, before: &World, after: &World, changes: &mut DatabaseChanges) {
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
    changes.databases += 1;
    let compared = content_changes(
        path,
        old.as_ref().map(|file| file as &dyn Content),
        new.as_ref().map(|file| file as &dyn Content),
        &ChangeLimits::default(),
    );
    match compared {
        Ok(found) => {
            let tables = found.tables.into_iter();
            changes
                .tables
                .extend(tables.map(|table| (path.to_owned(), table)));
        }
        Err(error) => changes.problems.push((path.to_owned(), error.to_string())),
    }
}
