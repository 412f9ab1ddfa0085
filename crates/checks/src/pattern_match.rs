//! `pattern_match_check`: a regular expression is found in the answer or in files (§6.3.8).
//!
//! The dialect is that of `fancy-regex`: Perl-like, with look-around and back-references, and a
//! limit on the steps of a search. `.` does not match a line break, `^` and `$` match at the ends
//! of the text only, unless inline flags say otherwise.

use std::sync::Arc;

use fancy_regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{object, path_pattern};
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::FinalFile;
use settings::problem::Findings;
use settings::{NoSettings, flag};

/// Steps after which a search is given up.
const STEP_LIMIT: usize = 1_000_000;

/// Where to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchTarget {
    /// The agent's answer.
    #[default]
    FinalAnswer,
    /// The files of the final world, unchanged ones included.
    Files,
}

/// Settings of `pattern_match_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PatternMatchValues {
    /// The regular expression.
    pattern: String,
    /// Where to search.
    #[serde(default)]
    search_target: SearchTarget,
    /// Which files to search, as a pattern for the last components of their paths.
    #[serde(default)]
    file_pattern: String,
    /// Whether case counts.
    #[serde(default, deserialize_with = "flag")]
    case_sensitive: bool,
}

impl PatternMatchValues {
    fn regex(&self) -> Result<Regex, String> {
        let pattern = self.pattern.trim();
        if pattern.is_empty() {
            return Err("must not be empty".to_owned());
        }
        RegexBuilder::new(pattern)
            .case_insensitive(!self.case_sensitive)
            .backtrack_limit(STEP_LIMIT)
            .build()
            .map_err(|error| format!("must be a regular expression ({error})"))
    }

    fn file_pattern(&self) -> &str {
        match self.file_pattern.trim() {
            "" => "*.txt",
            pattern => pattern,
        }
    }
}

pub(crate) struct PatternMatchCheck;

impl Eval for PatternMatchCheck {
    type Values = PatternMatchValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "pattern_match_check"
    }

    fn about(&self) -> &'static str {
        "a regular expression is found in the answer or in files of the final world"
    }

    fn needs_transcript(&self, values: &PatternMatchValues, _: &NoSettings) -> bool {
        values.search_target == SearchTarget::FinalAnswer
    }

    fn check(&self, values: &PatternMatchValues, _: &NoSettings, findings: &mut Findings) {
        if let Err(rule) = values.regex() {
            findings.error("pattern", rule, values.pattern.as_str());
        }
        if values.search_target == SearchTarget::Files {
            path_pattern::check("file_pattern", values.file_pattern(), findings);
        }
    }

    async fn evaluate(
        &self,
        values: &PatternMatchValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let regex = values.regex().map_err(EvalError::config)?;
        match values.search_target {
            SearchTarget::FinalAnswer => in_answer(&regex, case),
            SearchTarget::Files => in_files(regex, values.file_pattern(), case).await,
        }
    }
}

fn search(regex: &Regex, text: &str, place: &str) -> Result<bool, EvalError> {
    regex.is_match(text).map_err(|error| {
        EvalError::config(format!(
            "`pattern` cannot be searched for in {place} within {STEP_LIMIT} steps ({error}), got `{}`",
            regex.as_str()
        ))
    })
}

fn in_answer(regex: &Regex, case: &Case) -> Result<Verdict, EvalError> {
    let found = search(regex, case.evidence.answer(), "the final answer")?;
    let pattern = regex.as_str();
    let rationale = if found {
        format!("`{pattern}` is found in the final answer")
    } else {
        format!("`{pattern}` is not found in the final answer")
    };
    Ok(verdict(found, "final_answer", &rationale))
}

fn verdict(passed: bool, artifacts: &str, rationale: &str) -> Verdict {
    Verdict::new(
        passed,
        object(json!({
            "passed": passed,
            "evaluated_artifacts": artifacts,
            "rationale": rationale,
        })),
    )
}

async fn in_files(regex: Regex, file_pattern: &str, case: &Case) -> Result<Verdict, EvalError> {
    let wanted = file_pattern.to_owned();
    let files = case
        .evidence
        .final_files(move |display_path| path_pattern::matches(&wanted, display_path))
        .await?;
    if files.is_empty() {
        let rationale = format!("no file of the final world matches `{file_pattern}`");
        return Ok(verdict(false, "", &rationale));
    }
    let pattern = regex.as_str().to_owned();
    let files = Arc::new(files);
    let searched = Arc::clone(&files);
    // A search may take its whole step limit in each file.
    let found = tokio::task::spawn_blocking(move || {
        let mut found = Vec::new();
        for (at, file) in searched.iter().enumerate() {
            if search(&regex, &file.text, &format!("`{}`", file.path))? {
                found.push(at);
            }
        }
        Ok::<_, EvalError>(found)
    })
    .await
    .map_err(|error| EvalError::helper(format!("the search was ended: {error}")))??;
    let names: Vec<&str> = found.iter().map(|at| files[*at].path.as_str()).collect();
    let mut rationale = format!(
        "`{pattern}` is found in {} of {} files that match `{file_pattern}`",
        names.len(),
        files.len()
    );
    for note in files.iter().filter_map(unreadable) {
        rationale.push_str(&note);
    }
    Ok(verdict(!names.is_empty(), &names.join(", "), &rationale))
}

/// A file without text is searched as an empty one, and the rationale says so.
fn unreadable(file: &FinalFile) -> Option<String> {
    let problem = file.problem.as_ref()?;
    Some(format!("; `{}` was read as empty: {problem}", file.path))
}
