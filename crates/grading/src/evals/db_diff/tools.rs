//! Tools by which a judge looks at changed rows (§6.4.3).

use std::sync::Arc;

use evidence::{DatabaseChanges, Evidence, RowSources, Side};
use extract::{Happened, RowChange, TableChange};
use formats::Object;
use formats::chat::ToolDefinition;
use futures::future::BoxFuture;
use judge::{JudgeError, Tools};
use serde_json::{Value, json};

use crate::eval::Case;

/// Tables that an unknown name is answered with.
const LISTED_TABLES: usize = 50;

/// Rows of one answer by default, and of a search at most.
const ROWS: usize = 20;
const MAX_FOUND: usize = 50;

/// Rows of one answer of `get_rows` at most; longer answers are cut anyway.
const MAX_ROWS: usize = 500;

/// The tools for the changes of one case.
pub(super) struct RowTools<'a> {
    changes: &'a DatabaseChanges,
    evidence: Arc<Evidence>,
    sources: RowSources,
}

/// A table by the name that judges know it by.
type Named<'a> = (String, &'a str, &'a TableChange);

impl<'a> RowTools<'a> {
    pub(super) fn new(changes: &'a DatabaseChanges, case: &Case, sources: &RowSources) -> Self {
        Self {
            changes,
            evidence: Arc::clone(&case.evidence),
            sources: RowSources {
                all_rows: true,
                ..sources.clone()
            },
        }
    }

    fn table(&self, arguments: &Object) -> Result<Named<'a>, Value> {
        let wanted = text(arguments, "table_name");
        let named = self.changes.named_tables();
        let exact = named.iter().find(|(name, ..)| *name == wanted);
        let mut short = named.iter().filter(|(_, _, table)| table.name == wanted);
        let found = exact.or_else(|| short.next().filter(|_| short.next().is_none()));
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = named
                .iter()
                .take(LISTED_TABLES)
                .map(|(name, ..)| name.as_str())
                .collect();
            json!({
                "error": format!("no changed table is named `{wanted}`"),
                "available_tables_with_changes": names,
            })
        })
    }

    fn inspect(&self, arguments: &Object) -> Value {
        let (name, _, table) = match self.table(arguments) {
            Ok(found) => found,
            Err(unknown) => return unknown,
        };
        let row = table.rows.first();
        let row = row.and_then(|row| row.after.as_ref().or(row.before.as_ref()));
        let columns: Vec<&String> = row.into_iter().flat_map(|row| row.keys()).collect();
        let mut answer = json!({
            "table_name": name,
            "columns": columns,
            "rows_added_count": table.added,
            "rows_deleted_count": table.removed,
            "rows_modified_count": table.changed,
            "rows_truncated": table.truncated,
        });
        if !table.columns_added.is_empty() || !table.columns_removed.is_empty() {
            answer["schema_changed"] = json!({
                "added_columns": table.columns_added, "removed_columns": table.columns_removed,
            });
        }
        if let Some(error) = &table.error {
            answer["error"] = error.as_str().into();
        }
        answer
    }

    /// The rows of one kind of change, all of them as far as they are kept.
    async fn rows(&self, arguments: &Object) -> Result<Rows, Value> {
        let (name, path, table) = self.table(arguments)?;
        let word = text(arguments, "change_type");
        let happened = match word {
            "added" => Happened::Added,
            "deleted" => Happened::Removed,
            "modified" => Happened::Changed,
            other => {
                let rule =
                    format!("`change_type` must be added, deleted or modified, got {other:?}");
                return Err(json!({ "error": rule }));
            }
        };
        let complete = self
            .evidence
            .database_changes(&self.sources)
            .await
            .map_err(|error| json!({ "error": error.to_string() }))?;
        let same =
            |(other, found): &&(String, TableChange)| other == path && found.name == table.name;
        let found = complete
            .tables
            .iter()
            .find(same)
            .map_or(table, |(_, table)| table);
        let rows: Vec<Value> = found
            .rows
            .iter()
            .filter(|row| row.happened == happened)
            .map(shown)
            .collect();
        let total = match happened {
            Happened::Added => found.added,
            Happened::Removed => found.removed,
            Happened::Changed => found.changed,
        };
        Ok(Rows {
            table: name,
            change: word.to_owned(),
            total,
            rows,
        })
    }

    async fn get(&self, arguments: &Object) -> Value {
        let found = match self.rows(arguments).await {
            Ok(found) => found,
            Err(error) => return error,
        };
        let offset = whole(arguments, "offset").unwrap_or(0);
        let limit = whole(arguments, "limit").unwrap_or(ROWS).clamp(1, MAX_ROWS);
        let rows: Vec<&Value> = found.rows.iter().skip(offset).take(limit).collect();
        json!({
            "table_name": found.table,
            "change_type": found.change,
            "total": found.total,
            "materialized": found.rows.len(),
            "offset": offset,
            "limit": limit,
            "returned": rows.len(),
            "rows": rows,
        })
    }

    async fn search(&self, arguments: &Object) -> Value {
        let wanted = text(arguments, "contains").to_lowercase();
        if wanted.is_empty() {
            return json!({ "error": "`contains` must not be empty" });
        }
        let found = match self.rows(arguments).await {
            Ok(found) => found,
            Err(mut error) => {
                error["searched_complete_data"] = false.into();
                return error;
            }
        };
        let limit = whole(arguments, "limit")
            .unwrap_or(ROWS)
            .clamp(1, MAX_FOUND);
        let matches: Vec<&Value> = found
            .rows
            .iter()
            .filter(|row| has_text(row, &wanted))
            .take(limit)
            .collect();
        json!({
            "table_name": found.table,
            "change_type": found.change,
            "contains": wanted,
            "searched_complete_data": found.rows.len() as u64 == found.total,
            "returned": matches.len(),
            "matches": matches,
        })
    }

    async fn query(&self, arguments: &Object) -> Value {
        let side = match text(arguments, "version") {
            "before" => Side::Initial,
            "after" | "" => Side::Final,
            other => {
                return json!({ "error": format!("`version` must be before or after, got {other:?}") });
            }
        };
        let database = text(arguments, "database");
        let sql = text(arguments, "sql");
        match self
            .evidence
            .query(side, database, sql, Object::new())
            .await
        {
            Ok(answer) => json!({ "rows": answer.rows, "row_count": answer.row_count }),
            Err(error) => json!({ "error": error.to_string() }),
        }
    }
}

/// Rows of one kind of change.
struct Rows {
    table: String,
    change: String,
    total: u64,
    rows: Vec<Value>,
}

impl Tools for RowTools<'_> {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let kinds = json!({ "type": "string", "enum": ["added", "deleted", "modified"] });
        let table = json!({ "type": "string", "description": "as the summary names it" });
        vec![
            tool(
                "inspect_table",
                "Columns and exact numbers of changed rows of one table.",
                &json!({ "table_name": table }),
                &["table_name"],
            ),
            tool(
                "get_rows",
                "Changed rows of one table.",
                &json!({
                    "table_name": table, "change_type": kinds,
                    "offset": { "type": "integer" }, "limit": { "type": "integer" },
                }),
                &["table_name", "change_type"],
            ),
            tool(
                "search_rows",
                "Changed rows of one table that have a text in one of their values, case aside. All changed rows are searched.",
                &json!({
                    "table_name": table, "change_type": kinds,
                    "contains": { "type": "string" }, "limit": { "type": "integer" },
                }),
                &["table_name", "change_type", "contains"],
            ),
            tool(
                "run_sql",
                "A query on a database as it was before, or is after. It cannot write.",
                &json!({
                    "database": { "type": "string", "description": "its path" },
                    "version": { "type": "string", "enum": ["before", "after"] },
                    "sql": { "type": "string" },
                }),
                &["database", "version", "sql"],
            ),
        ]
    }

    fn call<'b>(
        &'b self,
        name: &'b str,
        arguments: &'b Object,
    ) -> BoxFuture<'b, Result<Value, JudgeError>> {
        Box::pin(async move {
            Ok(match name {
                "inspect_table" => self.inspect(arguments),
                "get_rows" => self.get(arguments).await,
                "search_rows" => self.search(arguments).await,
                "run_sql" => self.query(arguments).await,
                other => json!({ "error": format!("there is no tool `{other}`") }),
            })
        })
    }
}

fn tool(name: &str, about: &str, properties: &Value, required: &[&str]) -> ToolDefinition {
    let parameters = json!({
        "type": "object", "properties": properties, "required": required,
    });
    ToolDefinition::new(name, about, parameters)
}

fn text<'a>(arguments: &'a Object, key: &str) -> &'a str {
    let value = arguments.get(key).and_then(Value::as_str);
    value.unwrap_or_default().trim()
}

fn whole(arguments: &Object, key: &str) -> Option<usize> {
    usize::try_from(arguments.get(key)?.as_u64()?).ok()
}

/// A row as judges see it: of a changed one both sides.
fn shown(row: &RowChange) -> Value {
    match (row.happened, &row.before, &row.after) {
        (Happened::Changed, before, after) => json!({ "before": before, "after": after }),
        (_, before, after) => json!(after.as_ref().or(before.as_ref())),
    }
}

/// Whether a value somewhere in `row` contains `wanted`, which is in lower case.
fn has_text(row: &Value, wanted: &str) -> bool {
    match row {
        Value::Object(values) => values.values().any(|value| has_text(value, wanted)),
        Value::Array(values) => values.iter().any(|value| has_text(value, wanted)),
        Value::String(text) => text.to_lowercase().contains(wanted),
        Value::Null => false,
        other => other.to_string().contains(wanted),
    }
}
