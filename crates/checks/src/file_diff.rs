//! `file_diff_check`: a file that matches a pattern was created, modified or deleted (§6.3.7).

use formats::diff::ChangeKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{object, path_pattern};
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::Artifact;
use settings::NoSettings;
use settings::problem::Findings;

/// Settings of `file_diff_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FileDiffValues {
    /// Without wildcards, a part of the path in any case; with them, a pattern for the last
    /// components of the path.
    file_pattern: String,
    /// Which changes count: `created`, `modified`, `deleted`. Empty: the first two.
    #[serde(default)]
    change_types: Vec<String>,
}

impl FileDiffValues {
    fn kinds(&self) -> Result<Vec<ChangeKind>, &str> {
        let mut kinds = Vec::new();
        for word in &self.change_types {
            kinds.push(match word.trim().to_lowercase().as_str() {
                "created" => ChangeKind::Created,
                "modified" => ChangeKind::Modified,
                "deleted" => ChangeKind::Deleted,
                _ => return Err(word),
            });
        }
        if kinds.is_empty() {
            kinds = vec![ChangeKind::Created, ChangeKind::Modified];
        }
        Ok(kinds)
    }

    fn matches(&self, artifact: &Artifact) -> bool {
        let pattern = self.file_pattern.trim();
        if path_pattern::has_wildcards(pattern) {
            path_pattern::matches(pattern, &artifact.path)
        } else {
            let path = artifact.path.to_lowercase();
            path.contains(&pattern.to_lowercase())
        }
    }
}

pub(crate) struct FileDiffCheck;

impl Eval for FileDiffCheck {
    type Values = FileDiffValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "file_diff_check"
    }

    fn about(&self) -> &'static str {
        "a file that matches a pattern was created, modified or deleted"
    }

    fn check(&self, values: &FileDiffValues, _: &NoSettings, findings: &mut Findings) {
        path_pattern::check("file_pattern", &values.file_pattern, findings);
        if let Err(word) = values.kinds() {
            let rule = "must be of `created`, `modified`, `deleted`";
            findings.error("change_types", rule, word);
        }
    }

    async fn evaluate(
        &self,
        values: &FileDiffValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let kinds = values
            .kinds()
            .map_err(|word| EvalError::config(format!("unknown change type `{word}`")))?;
        let changes = case.evidence.changes().await?;
        let matching: Vec<&Artifact> = changes
            .artifacts
            .iter()
            .filter(|artifact| kinds.contains(&artifact.change) && values.matches(artifact))
            .collect();
        let wanted: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let rationale = if matching.is_empty() {
            format!(
                "no {} file matches `{}`; {} changed artifacts were looked at",
                wanted.join(" or "),
                values.file_pattern.trim(),
                changes.artifacts.len()
            )
        } else {
            let counts: Vec<String> = kinds
                .iter()
                .map(|kind| {
                    let count = matching.iter().filter(|a| a.change == *kind).count();
                    format!("{count} {}", kind.as_str())
                })
                .collect();
            format!(
                "{} changed artifacts match `{}` ({}): {}",
                matching.len(),
                values.file_pattern.trim(),
                counts.join(", "),
                paths(&matching)
            )
        };
        let passed = !matching.is_empty();
        Ok(Verdict::new(
            passed,
            object(json!({
                "passed": passed,
                "evaluated_artifacts": paths(&matching),
                "rationale": rationale,
            })),
        ))
    }
}

fn paths(artifacts: &[&Artifact]) -> String {
    let paths: Vec<&str> = artifacts.iter().map(|a| a.path.as_str()).collect();
    paths.join(", ")
}
