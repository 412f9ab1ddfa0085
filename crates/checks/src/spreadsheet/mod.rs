//! `spreadsheet_verifier`: values of cells of a workbook or csv file (§6.3.11).

mod check;
mod formula;
mod look;
mod sheet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::{Entry, FILESYSTEM, World};

use self::check::{Check, cells};
use self::look::Look;
use self::sheet::Sheet;
use crate::{object, shell_pattern};
use eval::error::{ErrorKind, EvalError};
use eval::{Case, Eval, Verdict};
use evidence::{EvidenceLimits, Side};
use extract::{CellRange, SheetFormats};
use settings::problem::Findings;
use settings::{NoSettings, flag, optional_number};

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
    /// counts, those of `filesystem/` first. If empty `*.csv`, for checks of formatting `*.xlsx`.
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
    /// `value_not_empty`, `value_is_empty`, `formatting_highlight`, `formatting_text_color`,
    /// `formatting_bold` or `formatting_formula`.
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
    /// The colour of a solid fill, for `formatting_highlight`: `#RRGGBB`.
    #[serde(default)]
    expected_highlight: Value,
    /// The colour of the text, for `formatting_text_color`: `#RRGGBB`.
    #[serde(default)]
    expected_text_color: Value,
    /// Whether the text is bold, for `formatting_bold`.
    #[serde(default)]
    expected_bold: Value,
    /// The formula, for `formatting_formula`; white space and case aside.
    #[serde(default)]
    expected_formula: Value,
}

/// What is checked.
enum Rule {
    Value(Check),
    Look(Look),
}

impl SpreadsheetValues {
    fn reference(&self) -> &str {
        self.cell_reference.as_deref().map_or("A1", str::trim)
    }

    fn pattern(&self) -> &str {
        match self.file_pattern.trim() {
            "" if self.check_type.trim().starts_with("formatting_") => "*.xlsx",
            "" => "*.csv",
            pattern => pattern,
        }
    }

    fn rule(&self) -> Result<Rule, String> {
        if let Some(kind) = self.check_type.trim().strip_prefix("formatting_") {
            return Look::of(kind, self).map(Rule::Look);
        }
        Check::of(
            &self.check_type,
            &self.expected_value,
            (self.expected_min, self.expected_max),
            self.case_sensitive,
        )
        .map(Rule::Value)
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
        "cells of a workbook or csv file have values, formulas or a look"
    }

    fn check(&self, values: &SpreadsheetValues, _: &NoSettings, findings: &mut Findings) {
        if let Err(rule) = values.rule() {
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
        let rule = values.rule().map_err(EvalError::config)?;
        let (pattern, name) = (values.pattern().to_owned(), values.sheet_name.clone());
        let wanted = match rule {
            Rule::Look(_) => Wanted::Look(look::range(values.reference())),
            Rule::Value(_) => {
                let cells = cells(values.reference()).unwrap_or_default();
                Wanted::Values(cells.into_iter().map(|(_, row, at)| (row, at)).collect())
            }
        };
        let opened = case
            .evidence
            .in_world::<_, EvalError>(Side::Final, move |world, limits| {
                let Some(entry) = choose(world, &pattern) else {
                    return Ok(None);
                };
                let opened = open(world, entry, &name, &wanted, limits)?;
                Ok(Some((entry.path().to_owned(), opened)))
            })
            .await?;
        let Some((file, opened)) = opened else {
            let reason = format!("no file matches `{}`", values.pattern());
            return Ok(verdict(values, None, &[], &reason));
        };
        let Some((sheet, formats)) = opened else {
            let reason = format!("there is no sheet `{}`", values.sheet_name);
            let row = outcome(values, values.reference(), None, Err(reason));
            return Ok(verdict(values, Some(&file), &[row], ""));
        };
        let check = match rule {
            Rule::Value(check) => check,
            Rule::Look(look) => {
                let (row, problem) = look.account(values.reference(), &sheet, &formats);
                return Ok(look_verdict(values, &file, row, problem));
            }
        };
        let rows = match cells(values.reference()) {
            Err(reason) => vec![outcome(values, values.reference(), None, Err(reason))],
            Ok(cells) => cells
                .into_iter()
                .map(|(name, row, column)| {
                    let value = sheet
                        .cell(row, column)
                        .map_err(|reason| not_calculated(&file, &name, &reason))?;
                    Ok(outcome(values, &name, Some(&value), check.examine(&value)))
                })
                .collect::<Result<Vec<Value>, EvalError>>()?,
        };
        Ok(verdict(values, Some(&file), &rows, ""))
    }
}

/// What is to be known of the cells.
enum Wanted {
    Values(Vec<(u32, u32)>),
    Look(CellRange),
}

/// A formula of which nobody knows the result is no reason to fail the agent.
fn not_calculated(file: &str, cell: &str, reason: &str) -> EvalError {
    let text = format!(
        "`{file}`: the file has no result of the formula in {cell}, and it cannot be calculated \
         here: {reason}"
    );
    EvalError::new(ErrorKind::CannotAssess, text).with_value("passed", false)
}

/// The sheet `name` of a file and, where `wanted` asks for cells of it, how they look; `None` where
/// there is no such sheet.
fn open(
    world: &World,
    entry: &Entry,
    name: &str,
    wanted: &Wanted,
    limits: &EvidenceLimits,
) -> Result<Option<(Sheet, SheetFormats)>, EvalError> {
    let unreadable = |reason: String| {
        EvalError::new(ErrorKind::Helper, format!("`{}`: {reason}", entry.path()))
            .with_value("passed", false)
    };
    let bytes = world
        .read_entry(entry, limits.file_bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    let extension = extract::extension(entry.path());
    let is_package = extension == "xlsx" || extension == "xlsm";
    // Looking at it first holds the package to its limits.
    if is_package {
        extract::extract(entry.path(), &bytes, &limits.extract)
            .map_err(|error| unreadable(error.to_string()))?;
    }
    let of_values = match wanted {
        Wanted::Values(cells) => cells.as_slice(),
        Wanted::Look(_) => &[],
    };
    let Some(sheet) = Sheet::read(&extension, &bytes, name, of_values).map_err(unreadable)? else {
        return Ok(None);
    };
    let Wanted::Look(wanted) = wanted else {
        return Ok(Some((sheet, SheetFormats::default())));
    };
    if !is_package {
        let text = format!("the look of cells is not known in files of type .{extension}");
        return Err(unreadable(text));
    }
    let formats = extract::sheet_formats(&bytes, name, *wanted, &limits.extract)
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(Some((sheet, formats.unwrap_or_default())))
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

/// What was found out: rows of checks of values, or the row of a check of formatting.
struct Account<'a> {
    file: Option<&'a str>,
    values: &'a [Value],
    formatting: &'a [Value],
}

impl Account<'_> {
    fn verdict(&self, passed: bool, reason: &str, sheet: &str) -> Verdict {
        let passed_of = |rows: &[Value]| {
            let passed = rows.iter().filter(|row| row["passed"] == Value::Bool(true));
            passed.count()
        };
        let described = object(json!({
            "passed": passed,
            "reason": reason,
            "file_checked": self.file,
            "sheet_name": sheet,
            "value_checks": self.values,
            "formatting_checks": self.formatting,
            "value_passed_count": passed_of(self.values),
            "value_total_count": self.values.len(),
            "formatting_passed_count": passed_of(self.formatting),
            "formatting_total_count": self.formatting.len(),
        }));
        Verdict::new(passed, described).with_message(reason)
    }
}

/// The verdict of a check of formatting.
fn look_verdict(
    values: &SpreadsheetValues,
    file: &str,
    row: Value,
    problem: Option<String>,
) -> Verdict {
    let passed = problem.is_none();
    let reason = problem.unwrap_or_else(|| "the cells look as expected".to_owned());
    let account = Account {
        file: Some(file),
        values: &[],
        formatting: &[row],
    };
    account.verdict(passed, &reason, &values.sheet_name)
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
    let account = Account {
        file,
        values: rows,
        formatting: &[],
    };
    account.verdict(passed, &reason, &values.sheet_name)
}
