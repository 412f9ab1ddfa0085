//! `golden_file_match`: files equal those of a correct end state (§6.6).
//!
//! Files are compared by base name and content, after times, UUIDs and long hexadecimal ids in
//! texts were made alike, since two correct runs differ in those. Of several correct end states
//! the one counts that fits best.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use snapshot::World;

use crate::{object, path_pattern};
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::EvidenceLimits;
use evidence::{Side, display_path};
use settings::NoSettings;
use settings::problem::Findings;

/// What differs between correct runs.
static VOLATILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        r"|\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?",
        r"|\b[0-9a-f]{24,64}\b",
    ))
    .ok()
});

/// Settings of `golden_file_match`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GoldenFileValues {
    /// Only these files, as a pattern for the last components of the path; all if empty.
    #[serde(default)]
    file_pattern: String,
}

pub(crate) struct GoldenFileMatch;

type Hashes = BTreeMap<String, Vec<Vec<u8>>>;

fn hashes(world: &World, pattern: &str, limits: &EvidenceLimits) -> Result<Hashes, EvalError> {
    let mut hashes = Hashes::new();
    for entry in world.entries().iter().filter(|entry| entry.is_file()) {
        let Some(display) = display_path(entry.path()) else {
            continue;
        };
        if !pattern.is_empty() && !path_pattern::matches(pattern, &display) {
            continue;
        }
        let bytes = world
            .read_entry(entry, limits.file_bytes)
            .map_err(|error| EvalError::helper(error.to_string()))?;
        let base = display.rsplit('/').next().unwrap_or(&display).to_owned();
        hashes.entry(base).or_default().push(hash(&bytes));
    }
    Ok(hashes)
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    let digest = match VOLATILE.as_ref() {
        Some(volatile) if std::str::from_utf8(bytes).is_ok() => {
            Sha256::digest(volatile.replace_all(bytes, &b"*"[..]))
        }
        _ => Sha256::digest(bytes),
    };
    digest.to_vec()
}

/// The files of the golden state that the final one has, and those that it lacks.
fn compare(golden: &Hashes, after: &Hashes) -> (usize, Vec<String>) {
    let mut matched = 0;
    let mut missing = Vec::new();
    for (name, wanted) in golden {
        let mut there = after.get(name).cloned().unwrap_or_default();
        for hash in wanted {
            match there.iter().position(|other| other == hash) {
                Some(at) => {
                    there.swap_remove(at);
                    matched += 1;
                }
                None => missing.push(name.clone()),
            }
        }
    }
    (matched, missing)
}

impl Eval for GoldenFileMatch {
    type Values = GoldenFileValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "golden_file_match"
    }

    fn about(&self) -> &'static str {
        "the share of files of a correct end state that the final world has"
    }

    fn check(&self, values: &GoldenFileValues, _: &NoSettings, findings: &mut Findings) {
        if !values.file_pattern.trim().is_empty() {
            path_pattern::check("file_pattern", &values.file_pattern, findings);
        }
    }

    async fn evaluate(
        &self,
        values: &GoldenFileValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let goldens: Vec<PathBuf> = case.evidence.golden_snapshots().to_vec();
        if goldens.is_empty() {
            return Err(EvalError::config(
                "there is no golden snapshot to compare with (`--golden-snapshot`)",
            ));
        }
        let pattern = values.file_pattern.trim().to_owned();
        let (best, of, missing, total) = case
            .evidence
            .in_world::<_, EvalError>(Side::Final, move |after, limits| {
                let after = hashes(after, &pattern, limits)?;
                let mut best: Option<(usize, usize, Vec<String>, usize)> = None;
                for (at, path) in goldens.iter().enumerate() {
                    let world = World::open(path).map_err(|error| {
                        EvalError::helper(format!("golden snapshot {}: {error}", at + 1))
                    })?;
                    let golden = hashes(&world, &pattern, limits)?;
                    let total: usize = golden.values().map(Vec::len).sum();
                    let (matched, missing) = compare(&golden, &after);
                    // matched / total, compared without dividing.
                    let better = best.as_ref().is_none_or(|(_, former, _, former_total)| {
                        matched * former_total.max(&1) > former * total.max(1)
                    });
                    if better {
                        best = Some((at, matched, missing, total));
                    }
                }
                best.ok_or_else(|| EvalError::helper("no golden snapshot was read"))
            })
            .await?;
        if total == 0 {
            return Err(EvalError::config(
                "the golden snapshots have no file that fits `file_pattern`",
            ));
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of files")]
        let score = of as f64 / total as f64;
        let mut verdict = Verdict::new(
            false,
            object(json!({
                "passed": of == total,
                "matched_files": of,
                "total_files": total,
                "missing_or_different": missing,
                "golden_snapshot": best + 1,
            })),
        )
        .with_message(format!(
            "{of} of {total} files are as in the golden snapshot"
        ));
        verdict.score = score;
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ids_make_no_difference_and_words_do() {
        let one = b"id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 at 2024-01-02T03:04:05Z: paid";
        let two = b"id 3F2504E0-4F89-11D3-9A0C-0305E82C3302 at 2025-11-12 13:14: paid";
        assert_eq!(hash(one), hash(two));
        assert_ne!(hash(one), hash(b"id x at y: paid"));
        assert_ne!(hash(b"total 41"), hash(b"total 42"));
    }
}
