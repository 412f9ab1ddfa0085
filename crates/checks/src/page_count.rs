//! `page_count_check`: pages, slides or sheets of files of the final world (§6.3.10).

use std::panic::catch_unwind;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use snapshot::{Entry, World};

use crate::{object, shell_pattern};
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::EvidenceLimits;
use evidence::Side;
use settings::problem::Findings;
use settings::{NoSettings, optional_number};

/// Stands in a pattern for the first file that the trajectory names.
const FROM_TRAJECTORY: &str = "{{trajectory}}";

static FILE_NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[\w\-./\\]+\.(?:pdf|pptx|xlsx|xlsm|docx)\b").ok());

/// Whether each file has to be in range, or all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CountMode {
    /// The sum.
    Total,
    /// Every file.
    #[default]
    #[serde(other)]
    Each,
}

/// Settings of `page_count_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PageCountValues {
    /// Which files, as a shell pattern for the name or the whole path; `*.pdf` if empty.
    #[serde(default)]
    file_pattern: String,
    /// Wins over `file_pattern`; `{{trajectory}}` is the first file that the trajectory names.
    #[serde(default)]
    file_name: String,
    /// The least number.
    #[serde(default, deserialize_with = "optional_number")]
    min_count: Option<f64>,
    /// The greatest number.
    #[serde(default, deserialize_with = "optional_number")]
    max_count: Option<f64>,
    /// `each` file, or the `total`.
    #[serde(default)]
    count_mode: CountMode,
}

impl PageCountValues {
    fn pattern(&self) -> &str {
        match (self.file_name.trim(), self.file_pattern.trim()) {
            ("", "") => "*.pdf",
            ("", pattern) => pattern,
            (name, _) => name,
        }
    }

    fn holds(&self, count: f64) -> bool {
        self.min_count.is_none_or(|min| count >= min.trunc())
            && self.max_count.is_none_or(|max| count <= max.trunc())
    }
}

/// What was found out about one file.
enum Counted {
    Units(usize, &'static str),
    Skipped(String),
    Failed(String),
}

pub(crate) struct PageCountCheck;

impl Eval for PageCountCheck {
    type Values = PageCountValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "page_count_check"
    }

    fn about(&self) -> &'static str {
        "the number of pages, slides or sheets of files is in a range"
    }

    fn check(&self, values: &PageCountValues, _: &NoSettings, findings: &mut Findings) {
        match (values.min_count, values.max_count) {
            (None, None) => findings.missing("min_count", "`min_count` or `max_count` is needed"),
            (Some(min), Some(max)) if min.trunc() > max.trunc() => {
                findings.error("min_count", "must not be above `max_count`", min);
            }
            _ => {}
        }
    }

    async fn evaluate(
        &self,
        values: &PageCountValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let mut pattern = values.pattern().to_owned();
        if pattern.contains(FROM_TRAJECTORY)
            && let Some(name) = named_in_trajectory(case)
        {
            pattern = pattern.replace(FROM_TRAJECTORY, &name);
        }
        let wanted = pattern.clone();
        let files = case
            .evidence
            .in_world::<_, EvalError>(Side::Final, move |world, limits| {
                let files = world.entries().iter().filter(|entry| {
                    entry.is_file() && shell_pattern::matches(&wanted, entry.path())
                });
                let mut layouts = limits.conversions;
                Ok(files
                    .map(|entry| {
                        let counted = count(world, entry, limits, &mut layouts);
                        (entry.path().to_owned(), counted)
                    })
                    .collect::<Vec<_>>())
            })
            .await?;
        Ok(verdict(values, &pattern, &files))
    }
}

fn named_in_trajectory(case: &Case) -> Option<String> {
    let regex = FILE_NAME.as_ref()?;
    let mut messages = case.evidence.trajectory().messages.iter();
    messages.find_map(|message| {
        let text = message.text();
        let path = regex.find(&text)?.as_str();
        path.rsplit(['/', '\\']).next().map(str::to_owned)
    })
}

/// Counts what a file has. `layouts` is how many text documents may still be laid out, which takes seconds each.
fn count(world: &World, entry: &Entry, limits: &EvidenceLimits, layouts: &mut usize) -> Counted {
    let extension = extract::extension(entry.path());
    let unit = match extension.as_str() {
        "pdf" | "docx" => "pages",
        "pptx" => "slides",
        "xlsx" | "xlsm" => "sheets",
        other => return Counted::Skipped(format!("`.{other}` has no pages to count")),
    };
    let bytes = match world.read_entry(entry, limits.file_bytes) {
        Ok(bytes) => bytes,
        Err(error) => return Counted::Failed(error.to_string()),
    };
    if extension == "docx" {
        let Some(left) = layouts.checked_sub(1) else {
            return Counted::Failed(format!(
                "only {} text documents are laid out (limit `conversions`)",
                limits.conversions
            ));
        };
        *layouts = left;
        return match extract::laid_out_pages(entry.path(), &bytes, &limits.extract) {
            Ok(pages) => Counted::Units(pages, unit),
            Err(error) => Counted::Failed(error.to_string()),
        };
    }
    if unit == "pages" {
        // The parser may panic on broken files.
        return match catch_unwind(|| lopdf::Document::load_mem(&bytes)) {
            Ok(Ok(document)) => Counted::Units(document.get_pages().len(), unit),
            Ok(Err(error)) => Counted::Failed(format!("cannot be read: {error}")),
            Err(_) => Counted::Failed("cannot be read: the parser gave up".to_owned()),
        };
    }
    match extract::extract(entry.path(), &bytes, &limits.extract) {
        Ok(document) if document.truncated => Counted::Failed("too long to be counted".to_owned()),
        Ok(document) => Counted::Units(document.parts.len(), unit),
        Err(error) => Counted::Failed(error.to_string()),
    }
}

fn verdict(values: &PageCountValues, pattern: &str, files: &[(String, Counted)]) -> Verdict {
    let mut by_unit = Map::new();
    let (mut total, mut all_hold, mut failed) = (0, true, 0);
    let mut checked = Vec::new();
    for (path, counted) in files {
        checked.push(match counted {
            Counted::Units(count, unit) => {
                let sum = by_unit.get(*unit).and_then(Value::as_u64).unwrap_or(0);
                by_unit.insert((*unit).to_owned(), (sum + *count as u64).into());
                total += count;
                all_hold &= values.holds(as_float(*count));
                json!({ "file": path, "count": count, "unit": unit })
            }
            Counted::Skipped(reason) => json!({ "file": path, "skipped": true, "reason": reason }),
            Counted::Failed(error) => {
                failed += 1;
                json!({ "file": path, "error": error })
            }
        });
    }
    let mut described = object(json!({
        "passed": false,
        "reason": "",
        "files_checked": checked,
        "file_pattern": pattern,
        "min_count": values.min_count,
        "max_count": values.max_count,
    }));
    if by_unit.is_empty() {
        let reason = if files.is_empty() {
            format!("no file matches `{pattern}`")
        } else {
            format!("none of {} matching files could be counted", files.len())
        };
        described.insert("reason".to_owned(), reason.into());
        return Verdict::new(false, described);
    }
    let (passed, reason) = match values.count_mode {
        CountMode::Each => (
            all_hold && failed == 0,
            format!(
                "{} files were counted, {failed} could not be",
                files.len() - failed
            ),
        ),
        CountMode::Total => (
            values.holds(as_float(total)),
            format!("together the files have {total}"),
        ),
    };
    described.insert("passed".to_owned(), passed.into());
    described.insert("reason".to_owned(), reason.into());
    let unit = match by_unit.keys().next() {
        Some(unit) if by_unit.len() == 1 => unit.clone(),
        _ => "items".to_owned(),
    };
    described.insert("counts_by_unit".to_owned(), Value::Object(by_unit));
    match values.count_mode {
        CountMode::Each => described.insert("count_mode".to_owned(), "each".into()),
        CountMode::Total => {
            described.insert("total_count".to_owned(), total.into());
            described.insert("unit".to_owned(), unit.into());
            described.insert("count_mode".to_owned(), "total".into())
        }
    };
    Verdict::new(passed, described)
}

#[expect(clippy::cast_precision_loss, reason = "pages are far below 2^53")]
fn as_float(count: usize) -> f64 {
    count as f64
}
