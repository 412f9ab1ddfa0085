//! Where in the files of a task a problem stands.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use formats::task::file;
use serde_json::value::RawValue;

use crate::problem::{Place, Problem};

/// Keys that stand beside the settings of a verifier, not among them.
const OF_VERIFIERS: [&str; 3] = ["eval_config_id", "verifier_dependencies", "verifier_id"];

/// The files of a task that hold what problems are about, as text.
#[derive(Debug, Default)]
pub struct Sources {
    /// By the name that the file has in the folder of a task.
    texts: HashMap<&'static str, (PathBuf, String)>,
}

impl Sources {
    /// Reads the files in the folder of a task.
    #[must_use]
    pub fn of_task(folder: &Path) -> Self {
        let names = [
            file::VERIFIERS,
            file::EVAL_CONFIGS,
            file::SCORING_CONFIG,
            file::GRADING_SETTINGS,
        ];
        Self::read(names.map(|name| (name, folder.join(name))))
    }

    /// Reads files that are elsewhere: each with the name that it has in the folder of a task. One
    /// that is absent or no text holds no place.
    #[must_use]
    pub fn read(files: impl IntoIterator<Item = (&'static str, PathBuf)>) -> Self {
        let texts = files.into_iter().filter_map(|(name, path)| {
            let text = std::fs::read_to_string(&path).ok()?;
            Some((name, (path, text)))
        });
        Self {
            texts: texts.collect(),
        }
    }

    /// The file and the line, from 1, at which `problem` has to be mended: that of its key where
    /// the key is there, else that of what the key is missing in.
    #[must_use]
    pub fn place(&self, problem: &Problem) -> Option<(&Path, usize)> {
        let (name, mut steps, settings) = match &problem.place {
            Place::Verifier(id) => (
                file::VERIFIERS,
                vec![Step::With("verifier_id", id)],
                "verifier_values",
            ),
            Place::EvalConfig(id) => (
                file::EVAL_CONFIGS,
                vec![Step::With("eval_config_id", id)],
                "eval_config_values",
            ),
            Place::ScoringConfig => (file::SCORING_CONFIG, Vec::new(), "scoring_config_values"),
            Place::GradingSettings => (file::GRADING_SETTINGS, Vec::new(), ""),
        };
        let key = problem.key.as_deref().unwrap_or_default();
        let is_beside = match &problem.place {
            Place::Verifier(_) => OF_VERIFIERS.contains(&key),
            Place::EvalConfig(_) => key.starts_with("eval_"),
            Place::ScoringConfig => key.starts_with("scoring_"),
            Place::GradingSettings => true,
        };
        if !is_beside {
            steps.push(Step::Key(settings));
        }
        let names = key.split(['.', '[']).map(|part| part.trim_end_matches(']'));
        steps.extend(
            names
                .filter(|part| !part.is_empty())
                .map(|part| part.parse().map_or(Step::Key(part), Step::At)),
        );
        let (path, text) = self.texts.get(name)?;
        Some((path, line(text, &steps)))
    }
}

/// One step into a document.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The member of this name.
    Key(&'a str),
    /// The entry at this position, from 0.
    At(usize),
    /// The first entry whose member of this name is this text.
    With(&'a str, &'a str),
}

impl Step<'_> {
    fn inside(self, text: &str) -> Option<&str> {
        let found: &RawValue = match self {
            Self::Key(key) => {
                let members: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                members.get(key).copied()?
            }
            Self::At(position) => {
                let entries: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                entries.get(position).copied()?
            }
            Self::With(key, wanted) => {
                let entries: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                entries.into_iter().find(|entry| {
                    let member = Step::Key(key).inside(entry.get());
                    let value = member.and_then(|text| serde_json::from_str::<String>(text).ok());
                    value.as_deref() == Some(wanted)
                })?
            }
        };
        Some(found.get())
    }
}

/// The line at which the last of `steps` that can be taken leads.
fn line(text: &str, steps: &[Step<'_>]) -> usize {
    let mut at = text.trim_start();
    for step in steps {
        match step.inside(at) {
            Some(inside) => at = inside,
            None => break,
        }
    }
    // What was found is a part of the text: its place is the distance of both.
    let before = at.as_ptr().addr() - text.as_ptr().addr();
    1 + text.as_bytes()[..before]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Severity;

    const VERIFIERS: &str = r#"[
  {
    "verifier_id": "a",
    "verifier_values": {"pattern": "x"}
  },
  {
    "verifier_values": {
      "criteria": "c",
      "expected_args": {
        "city": 1,
        "list": [
          {"name": "x"},
          {"name":
            "y"}
        ]
      }
    },
    "verifier_id": "b\u0021",
    "eval_config_id": "lost"
  }
]
"#;

    fn place(place: Place, key: Option<&str>) -> Option<(String, usize)> {
        let text = |name, text: &str| (name, (PathBuf::from(name), text.to_owned()));
        let sources = Sources {
            texts: HashMap::from([
                text(file::VERIFIERS, VERIFIERS),
                text(file::SCORING_CONFIG, "\n{\n\"scoring_defn_id\": \"x\"}"),
                text(file::GRADING_SETTINGS, "no JSON"),
            ]),
        };
        let problem = Problem {
            severity: Severity::Error,
            place,
            key: key.map(str::to_owned),
            rule: String::new(),
            value: None,
        };
        let (path, line) = sources.place(&problem)?;
        Some((path.display().to_string(), line))
    }

    #[test]
    fn a_problem_has_the_line_of_its_key_or_of_what_the_key_is_missing_in() {
        let b = || Place::Verifier("b!".to_owned());
        for (key, line) in [
            (Some("criteria"), 8),
            (Some("expected_args.city"), 10),
            (Some("expected_args.list[1].name"), 14),
            // Not there: the place where it belongs.
            (Some("expected_args.town"), 9),
            (None, 7),
            (Some("patern"), 7),
            (Some("eval_config_id"), 19),
            (Some("verifier_dependencies"), 6),
        ] {
            let at = Some((file::VERIFIERS.to_owned(), line));
            assert_eq!(place(b(), key), at, "{key:?}");
        }
        let lost = Place::Verifier("nobody".to_owned());
        for (there, key, name, line) in [
            (lost, "", file::VERIFIERS, 1),
            (
                Place::ScoringConfig,
                "scoring_defn_id",
                file::SCORING_CONFIG,
                3,
            ),
            (
                Place::GradingSettings,
                "llm_judge_model",
                file::GRADING_SETTINGS,
                1,
            ),
        ] {
            assert_eq!(place(there, Some(key)), Some((name.to_owned(), line)));
        }
        assert_eq!(place(Place::EvalConfig("e".to_owned()), None), None);
    }
}
