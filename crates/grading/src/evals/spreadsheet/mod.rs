//! `spreadsheet_verifier`: values of cells of a workbook or csv file (§6.3.11).

mod check;
mod sheet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::{Entry, FILESYSTEM, World};

use self::check::{Check, cells};
use self::sheet::Sheet;
use super::{object, shell_pattern};
use crate::error::{ErrorKind, EvalError};
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::{NoSettings, flag, optional_number};
use evidence::Side;

/// Ids that share this implementation; the second has a `difficulty` for scoring.
pub(super) const IDS: [&str; 2] = [
    "spreadsheet_verifier",
    "spreadsheet_verifier_difficulty_weighted",
];

/// Extensions of files that are looked into.
const EXTENSIONS: [&str; 4] = ["csv", "xlsx", "xlsm", "xls"];

/// Reasons that stand in the message.
const SHOWN_FAILURES: usize = 3;

/// Settings of `spreadsheet_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SpreadsheetValues {
    /// Which file, as a shell pattern for the name or the whole path; of several the first by path
    /// counts, those of `filesystem/` first. `*.csv` if empty.
    #[serde(default)]
    file_pattern: String,
    /// The sheet; the first one if empty.
    #[serde(default)]
    sheet_name: String,
    /// A cell (`B2`) or a range (`B2:C5`) of which every cell has to pass; `A1` if absent.
    #[serde(default)]
    cell_reference: Option<String>,
    /// `value_exact_match`, `value_contains`, `value_not_contains`, `value_regex`,
    /// `value_equals_number`, `value_greater_than`, `value_less_than`, `value_between`,
    /// `value_not_empty` or `value_is_empty`.
    #[serde(default)]
    check_type: String,
    /// The text or number that is expected.
    #[serde(default)]
    expected_value: Value,
    /// The lower bound.
    #[serde(default, deserialize_with = "optional_number")]
    expected_min: Option<f64>,
    /// The upper bound.
    #[serde(default, deserialize_with = "optional_number")]
    expected_max: Option<f64>,
    /// Whether case counts in texts.
    #[serde(default, deserialize_with = "flag")]
    case_sensitive: bool,
    /// For checks of formatting, which are not available yet.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    expected_highlight: Value,
    /// For checks of formatting.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    expected_text_color: Value,
    /// For checks of formatting.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    expected_bold: Value,
    /// For checks of formatting.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    expected_formula: Value,
}

impl SpreadsheetValues {
    fn reference(&self) -> &str {
        self.cell_reference.as_deref().map_or("A1", str::trim)
    }

    fn pattern(&self) -> &str {
        match self.file_pattern.trim() {
            "" => "*.csv",
            pattern => pattern,
        }
    }

    fn check(&self) -> Result<Check, String> {
        Check::of(
            &self.check_type,
            &self.expected_value,
            (self.expected_min, self.expected_max),
            self.case_sensitive,
        )
    }
}

pub(crate) struct Spreadsheet {
    pub(super) id: &'static str,
}

impl Eval for Spreadsheet {
    type Values = SpreadsheetValues;
    type Config = NoSettings;

    fn id(&self) -> &str {
        self.id
    }

    fn about(&self) -> &'static str {
        "cells of a workbook or csv file have values"
    }

    fn check(&self, values: &SpreadsheetValues, _: &NoSettings, findings: &mut Findings) {
        if let Err(rule) = values.check() {
            findings.error("check_type", rule, values.check_type.as_str());
        }
        if let Err(rule) = cells(values.reference()) {
            findings.warning("cell_reference", rule, values.reference());
        }
    }

    async fn evaluate(
        &self,
        values: &SpreadsheetValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let check = values.check().map_err(EvalError::config)?;
        let (pattern, name) = (values.pattern().to_owned(), values.sheet_name.clone());
        let opened = case
            .evidence
            .in_world::<_, EvalError>(Side::Final, move |world, limits| {
                let Some(entry) = choose(world, &pattern) else {
                    return Ok(None);
                };
                let unreadable = |reason: String| {
                    EvalError::new(ErrorKind::Helper, format!("`{}`: {reason}", entry.path()))
                        .with_value("passed", false)
                };
                let bytes = world
                    .read_entry(entry, limits.file_bytes)
                    .map_err(|error| unreadable(error.to_string()))?;
                let extension = extract::extension(entry.path());
                // Looking at it first holds the package to its limits.
                if extension == "xlsx" || extension == "xlsm" {
                    extract::extract(entry.path(), &bytes, &limits.extract)
                        .map_err(|error| unreadable(error.to_string()))?;
                }
                let sheet = Sheet::read(&extension, &bytes, &name).map_err(unreadable)?;
                Ok(Some((entry.path().to_owned(), sheet)))
            })
            .await?;
        let Some((file, sheet)) = opened else {
            let reason = format!("no file matches `{}`", values.pattern());
            return Ok(verdict(values, None, &[], &reason));
        };
        let rows = match cells(values.reference()) {
            Err(reason) => vec![outcome(values, values.reference(), None, Err(reason))],
            Ok(cells) => cells
                .into_iter()
                .map(|(name, row, column)| match &sheet {
                    None => {
                        let reason = format!("there is no sheet `{}`", values.sheet_name);
                        outcome(values, &name, None, Err(reason))
                    }
                    Some(sheet) => {
                        let value = sheet.cell(row, column);
                        outcome(values, &name, Some(&value), check.examine(&value))
                    }
                })
                .collect(),
        };
        Ok(verdict(values, Some(&file), &rows, ""))
    }
}

/// The file to look into: those of the file system first, in the order of their paths; lock files
/// of office programs do not count.
fn choose<'a>(world: &'a World, pattern: &str) -> Option<&'a Entry> {
    let mut fitting: Vec<&Entry> = world
        .entries()
        .iter()
        .filter(|entry| {
            let path = entry.path();
            let base = path.rsplit('/').next().unwrap_or(path);
            entry.is_file()
                && !base.starts_with("~$")
                && EXTENSIONS.contains(&extract::extension(path).as_str())
                && shell_pattern::matches(pattern, path)
        })
        .collect();
    fitting.sort_by_key(|entry| !entry.path().starts_with(FILESYSTEM));
    fitting.first().copied()
}

/// What a result says about one cell.
fn outcome(
    values: &SpreadsheetValues,
    cell: &str,
    actual: Option<&Value>,
    examined: Result<(), String>,
) -> Value {
    let expected = match (values.expected_min, values.expected_max) {
        (None, None) => values.expected_value.clone(),
        (min, max) if values.expected_value.is_null() => json!({ "min": min, "max": max }),
        _ => values.expected_value.clone(),
    };
    json!({
        "cell_reference": cell,
        "check_type": values.check_type,
        "passed": examined.is_ok(),
        "reason": examined.err().unwrap_or_else(|| "as expected".to_owned()),
        "expected": expected,
        "actual": actual,
    })
}

fn verdict(values: &SpreadsheetValues, file: Option<&str>, rows: &[Value], why: &str) -> Verdict {
    let failures: Vec<String> = rows
        .iter()
        .filter(|row| row["passed"] == Value::Bool(false))
        .map(|row| {
            let cell = row["cell_reference"].as_str().unwrap_or_default();
            format!("{cell}: {}", row["reason"].as_str().unwrap_or_default())
        })
        .collect();
    let passed_count = rows.len() - failures.len();
    let passed = !rows.is_empty() && failures.is_empty();
    let mut reason = if why.is_empty() {
        format!("{passed_count} of {} cells are as expected", rows.len())
    } else {
        why.to_owned()
    };
    for failure in failures.iter().take(SHOWN_FAILURES) {
        reason.push_str("; ");
        reason.push_str(failure);
    }
    Verdict::new(
        passed,
        object(json!({
            "passed": passed,
            "reason": reason,
            "file_checked": file,
            "sheet_name": values.sheet_name,
            "value_checks": rows,
            "formatting_checks": [],
            "value_passed_count": passed_count,
            "value_total_count": rows.len(),
            "formatting_passed_count": 0,
            "formatting_total_count": 0,
        })),
    )
    .with_message(reason)
}
