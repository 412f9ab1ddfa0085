//! `golden_db_match`: the databases of the final world are those of a correct end state (§6.5).

use std::collections::BTreeMap;

use evidence::{DatabaseChanges, RowSources};
use extract::{Happened, TableChange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use settings::problem::Findings;
use settings::{NoSettings, flag};

/// Differences that stand in a result.
const SHOWN: usize = 20;

/// Settings of `golden_db_match`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GoldenDbValues {
    /// Tables that do not count: `table`, or `path/of.db:table`.
    #[serde(default)]
    ignore_tables: Vec<String>,
    /// Columns that do not count: `column`, or `table.column`.
    #[serde(default)]
    ignore_columns: Vec<String>,
    /// Only databases with this path, or with this end of a path; all if empty.
    #[serde(default)]
    databases: Vec<String>,
    /// Whether the score is the share of tables that are the same; otherwise it is 1 or 0.
    #[serde(default, deserialize_with = "flag")]
    partial: bool,
}

pub(crate) struct GoldenDbMatch;

impl Eval for GoldenDbMatch {
    type Values = GoldenDbValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "golden_db_match"
    }

    fn about(&self) -> &'static str {
        "the tables of the final world's databases are those of a correct end state"
    }

    fn check(&self, values: &GoldenDbValues, _: &NoSettings, findings: &mut Findings) {
        for (key, names) in [
            ("ignore_tables", &values.ignore_tables),
            ("ignore_columns", &values.ignore_columns),
        ] {
            if names.iter().any(|name| name.trim().is_empty()) {
                findings.error(key, "must not hold empty names", names.clone());
            }
        }
    }

    async fn evaluate(
        &self,
        values: &GoldenDbValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let goldens = case.evidence.golden_snapshots().len();
        if goldens == 0 {
            let text = "there is no correct end state to compare with (`--golden-snapshot`)";
            return Err(EvalError::config(text));
        }
        let sources = RowSources {
            all_kinds: true,
            json_id_field: None,
            all_rows: true,
        };
        let mut best: Option<Comparison> = None;
        for golden in 0..goldens {
            let changes = case.evidence.differences_from_golden(golden, &sources);
            let changes = Box::pin(changes).await?;
            let tables = case.evidence.golden_tables(golden).await?;
            let found = Comparison::of(golden, &changes, &tables, values)?;
            if best
                .as_ref()
                .is_none_or(|best| found.share() > best.share())
            {
                best = Some(found);
            }
        }
        let best = best.ok_or_else(|| EvalError::config("there is no correct end state"))?;
        Ok(best.verdict(values.partial))
    }
}

/// The final world beside one correct end state.
struct Comparison {
    golden: usize,
    tables: usize,
    /// Tables that differ, with how.
    different: BTreeMap<String, String>,
}

impl Comparison {
    fn of(
        golden: usize,
        changes: &DatabaseChanges,
        tables: &[(String, String)],
        values: &GoldenDbValues,
    ) -> Result<Self, EvalError> {
        if let Some((path, problem)) = changes
            .problems
            .iter()
            .find(|(path, _)| values.counts(path))
        {
            return Err(EvalError::helper(format!("`{path}`: {problem}")));
        }
        let mut names: Vec<String> = tables
            .iter()
            .filter(|(path, table)| values.wants(path, table))
            .map(|(path, table)| format!("{path}:{table}"))
            .collect();
        let mut different = BTreeMap::new();
        for (path, table) in &changes.tables {
            if !values.wants(path, &table.name) {
                continue;
            }
            if let Some(how) = values.difference(table) {
                let name = format!("{path}:{}", table.name);
                if !names.contains(&name) {
                    names.push(name.clone());
                }
                different.insert(name, how);
            }
        }
        Ok(Self {
            golden,
            tables: names.len(),
            different,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of tables are small")]
    fn share(&self) -> f64 {
        if self.tables == 0 {
            return 0.0;
        }
        (self.tables - self.different.len()) as f64 / self.tables as f64
    }

    fn verdict(&self, partial: bool) -> Verdict {
        let equal = self.tables > 0 && self.different.is_empty();
        let message = match (self.tables, equal) {
            (0, _) => "the correct end state has no table that counts".to_owned(),
            (_, true) => format!("all {} tables are the same", self.tables),
            _ => format!(
                "{} of {} tables differ from correct end state {}",
                self.different.len(),
                self.tables,
                self.golden + 1
            ),
        };
        let shown: Vec<Value> = self
            .different
            .iter()
            .take(SHOWN)
            .map(|(table, how)| json!({ "table": table, "difference": how }))
            .collect();
        let values = json!({
            "passed": equal,
            "golden_snapshot": self.golden + 1,
            "tables": self.tables,
            "matched_tables": self.tables - self.different.len(),
            "differences": shown,
        });
        let mut verdict = Verdict::new(equal, object(values)).with_message(message);
        if partial {
            verdict.score = self.share();
        }
        verdict
    }
}

impl GoldenDbValues {
    fn counts(&self, path: &str) -> bool {
        self.databases.is_empty()
            || self.databases.iter().any(|name| {
                let name = name.trim().trim_start_matches('/');
                path == name || path.ends_with(&format!("/{name}"))
            })
    }

    fn wants(&self, path: &str, table: &str) -> bool {
        let whole = format!("{path}:{table}");
        let is_ignored = |name: &String| {
            let name = name.trim();
            name.eq_ignore_ascii_case(table) || whole.ends_with(name) && name.contains(':')
        };
        self.counts(path) && !self.ignore_tables.iter().any(is_ignored)
    }

    fn ignores(&self, table: &str, column: &str) -> bool {
        self.ignore_columns.iter().any(|name| {
            let name = name.trim();
            name.eq_ignore_ascii_case(column)
                || name.eq_ignore_ascii_case(&format!("{table}.{column}"))
        })
    }

    /// How the table differs, ignored columns aside; `None` where only they do.
    fn difference(&self, table: &TableChange) -> Option<String> {
        match table.happened {
            Happened::Added => return Some("the table should not be there".to_owned()),
            Happened::Removed => return Some("the table is missing".to_owned()),
            Happened::Changed => {}
        }
        if let Some(error) = &table.error {
            return Some(format!("cannot be compared: {error}"));
        }
        let columns = table.columns_added.iter().chain(&table.columns_removed);
        if let Some(column) = columns.into_iter().find(|c| !self.ignores(&table.name, c)) {
            return Some(format!("column `{column}` is only on one side"));
        }
        let counted = format!(
            "{} rows too many, {} missing, {} different",
            table.added, table.removed, table.changed
        );
        if table.truncated {
            // Not all rows are at hand, so it cannot be said that only ignored columns differ.
            return Some(counted);
        }
        let kept = |row: &Option<Map<String, Value>>| {
            let row = row.iter().flatten();
            let row = row.filter(|(column, _)| !self.ignores(&table.name, column));
            row.map(|(column, value)| (column.clone(), value.clone()))
                .collect::<Map<String, Value>>()
        };
        // Rows that are the same without the ignored columns, as often on one side as on the other.
        let mut balance: BTreeMap<String, i64> = BTreeMap::new();
        for row in &table.rows {
            if row.after.is_some() {
                *balance
                    .entry(Value::Object(kept(&row.after)).to_string())
                    .or_default() += 1;
            }
            if row.before.is_some() {
                *balance
                    .entry(Value::Object(kept(&row.before)).to_string())
                    .or_default() -= 1;
            }
        }
        let differs = table.rows.is_empty() || balance.values().any(|count| *count != 0);
        // Another definition alone, with the same rows, is no difference.
        let has_rows = table.added + table.removed + table.changed > 0;
        (differs && has_rows).then_some(counted)
    }
}
