//! JSON files as tables (`spec/grading.md` §6.3.13).

use formats::Object;
use rusqlite::types::Value as Sql;
use serde_json::Value;
use snapshot::{Entry, World};

use crate::limits::EvidenceLimits;
use crate::table::Table;
use crate::visible::display_path;

/// Settings of tools, which are no data.
const SETTINGS: [&str; 12] = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "jsconfig.json",
    ".eslintrc.json",
    "babel.config.json",
    "manifest.json",
    "composer.json",
    "composer.lock",
    "appsettings.json",
    "launch.json",
    "settings.json",
];

/// Fields that name a row, in the order in which they are looked for.
const ID_FIELDS: [&str; 8] = ["id", "Id", "ID", "_id", "uuid", "key", "name", "slug"];

/// Columns of one table at most; SQLite has no more.
const MAX_COLUMNS: usize = 2_000;

/// Whether `entry` is a JSON file with data.
pub(crate) fn has_rows(entry: &Entry) -> bool {
    let path = entry.path();
    let name = path.rsplit('/').next().unwrap_or(path);
    extract::extension(path) == "json" && !SETTINGS.contains(&name) && display_path(path).is_some()
}

/// The tables of the file at `path` of `world`; none where there is no such file.
pub(crate) fn tables(
    world: &World,
    path: &str,
    id_field: Option<&str>,
    limits: &EvidenceLimits,
) -> Result<Vec<Table>, String> {
    let Some(entry) = world.get(path).filter(|entry| entry.is_file()) else {
        return Ok(Vec::new());
    };
    let bytes = world
        .read_entry(entry, limits.file_bytes)
        .map_err(|error| error.to_string())?;
    let document: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("is no JSON: {error}"))?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let tables = match document {
        Value::Array(items) => vec![table(stem, items, id_field)],
        Value::Object(object) => of_object(stem, object, id_field),
        other => vec![table(stem, vec![other], id_field)],
    };
    let wide = tables
        .iter()
        .find(|table| table.columns.len() > MAX_COLUMNS);
    match wide {
        Some(table) => Err(format!(
            "table `{}` has {} columns, limit {MAX_COLUMNS}",
            table.name,
            table.columns.len()
        )),
        None => Ok(tables),
    }
}

/// A table for each list of objects, and one row of all else.
fn of_object(stem: &str, object: Object, id_field: Option<&str>) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut rest = Object::new();
    for (key, value) in object {
        match value {
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
                tables.push(table(&key, items, id_field));
            }
            value => {
                rest.insert(key, value);
            }
        }
    }
    // SQLite takes names without regard to case.
    let taken = |name: &str| tables.iter().any(|t| t.name.eq_ignore_ascii_case(name));
    let mut name = stem.to_owned();
    while taken(&name) {
        name.push('_');
    }
    if !rest.is_empty() {
        tables.push(table(&name, vec![Value::Object(rest)], id_field));
    }
    tables
}

fn table(name: &str, items: Vec<Value>, id_field: Option<&str>) -> Table {
    let objects: Vec<Object> = items
        .into_iter()
        .map(|item| match item {
            Value::Object(object) => object,
            other => std::iter::once(("value".to_owned(), other)).collect(),
        })
        .collect();
    let mut columns: Vec<String> = Vec::new();
    let mut folded = std::collections::HashMap::new();
    for key in objects.iter().flat_map(Object::keys) {
        folded.entry(key.to_lowercase()).or_insert_with(|| {
            columns.push(key.clone());
            columns.len() - 1
        });
    }
    let rows = objects
        .into_iter()
        .map(|object| {
            let mut row = vec![Sql::Null; columns.len()];
            for (key, value) in object {
                if let Some(at) = folded.get(&key.to_lowercase()) {
                    row[*at] = cell(value);
                }
            }
            row
        })
        .collect();
    let at = |field: &str| columns.iter().position(|column| column == field);
    let key = match id_field {
        Some(field) => at(field),
        None => ID_FIELDS.into_iter().find_map(at),
    };
    Table {
        name: name.to_owned(),
        columns,
        key,
        rows,
    }
}

fn cell(value: Value) -> Sql {
    match value {
        Value::Null => Sql::Null,
        Value::Bool(flag) => Sql::Text(flag.to_string()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Sql::Integer(integer),
            (None, Some(float)) => Sql::Real(float),
            (None, None) => Sql::Text(number.to_string()),
        },
        Value::String(text) => Sql::Text(text),
        nested => Sql::Text(nested.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_tables_and_the_rest_is_a_row() {
        let object = json!({
            "version": 3, "users": [{"id": 1, "tags": ["a"]}, {"id": 2, "name": "B"}], "empty": [],
        });
        let found = of_object("app", object.as_object().unwrap().clone(), None);
        assert_eq!(found[0].name, "users");
        assert_eq!(found[0].columns, ["id", "tags", "name"]);
        assert_eq!(found[0].key, Some(0));
        assert_eq!(
            found[0].rows[0],
            [Sql::Integer(1), Sql::Text("[\"a\"]".into()), Sql::Null]
        );
        assert_eq!((found[1].name.as_str(), found[1].rows.len()), ("app", 1));
    }

    #[test]
    fn the_field_of_the_settings_is_the_key_and_no_other() {
        let items = vec![json!({"id": 1, "sku": "x"})];
        assert_eq!(table("t", items.clone(), Some("sku")).key, Some(1));
        assert_eq!(table("t", items, Some("absent")).key, None);
    }
}
