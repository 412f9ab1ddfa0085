//! `golden_file_llm`: a judge model compares a file of the agent with a reference file and gives
//! one of a few scores (§6.4.11). `jupiter_excel_content` and `jupiter_pptx_content` are the same
//! for a sheet or some slides.

use evidence::Side;
use extract::Document;
use formats::lenient;
use judge::{Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::{FILESYSTEM, World};

use super::object;
use super::prompts::SECTIONS;
use super::sections::{Section, SectionQuestion};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Ids that share this implementation.
pub(super) const IDS: [&str; 3] = [
    "golden_file_llm",
    "jupiter_excel_content",
    "jupiter_pptx_content",
];

/// How far a score may be from the one that is meant.
const ROUNDING: f64 = 0.006;

/// Settings of `golden_file_llm`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ComparisonValues {
    /// The agent's file, with or without `filesystem/` in front.
    agent_result_path: String,
    /// The reference file, in a golden snapshot or, where there is none, in the initial world.
    golden_answer_path: String,
    /// What is compared, and what counts most.
    criteria: String,
    /// The sheet that is compared; all if empty.
    #[serde(default)]
    tab_to_grade: String,
    /// The slides that are compared, from 1: `1, 3`; all if empty.
    #[serde(default)]
    slides_to_grade: String,
    /// The scores that may be given, with what each means. Absent: 0, 0.33, 0.67 and 1.
    #[serde(default)]
    scores: Vec<AllowedScore>,
}

/// A score that may be given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct AllowedScore {
    /// From 0 to 1.
    score: f64,
    /// When it is given.
    meaning: String,
}

impl ComparisonValues {
    fn scores(&self) -> Vec<AllowedScore> {
        if !self.scores.is_empty() {
            return self.scores.clone();
        }
        let of = |score, meaning: &str| AllowedScore {
            score,
            meaning: meaning.to_owned(),
        };
        vec![
            of(
                0.0,
                "a value that matters most is missing or wrong, or nothing is calculated where the reference calculates",
            ),
            of(
                0.33,
                "the values that matter most are right, and much else is missing, different or typed in",
            ),
            of(0.67, "small deviations"),
            of(
                1.0,
                "everything says the same and is calculated where the reference calculates",
            ),
        ]
    }
}

pub(crate) struct GoldenComparison {
    pub(super) id: &'static str,
}

impl Eval for GoldenComparison {
    type Values = ComparisonValues;
    type Config = NoSettings;

    fn id(&self) -> &str {
        self.id
    }

    fn about(&self) -> &'static str {
        "a judge model compares a file with a reference file and gives one of a few scores"
    }

    fn uses_judge(&self, _: &ComparisonValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ComparisonValues, _: &NoSettings, findings: &mut Findings) {
        for (key, text) in [
            ("agent_result_path", &values.agent_result_path),
            ("golden_answer_path", &values.golden_answer_path),
            ("criteria", &values.criteria),
        ] {
            if text.trim().is_empty() {
                findings.missing(key, "must not be empty");
            }
        }
        if let Err(rule) = slides(&values.slides_to_grade) {
            findings.error("slides_to_grade", rule, values.slides_to_grade.as_str());
        }
        let bad = values
            .scores
            .iter()
            .find(|one| !(0.0..=1.0).contains(&one.score));
        if let Some(bad) = bad {
            findings.error("scores", "must be from 0 to 1", bad.score);
        }
    }

    async fn evaluate(
        &self,
        values: &ComparisonValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let part = Part {
            sheet: values.tab_to_grade.trim().to_owned(),
            slides: slides(&values.slides_to_grade).map_err(EvalError::config)?,
        };
        let golden = golden(values, &part, case).await?;
        let agent = agent(values, &part, case).await?;
        let agent = match agent {
            Ok(text) => text,
            Err(reason) => {
                let described = object(json!({
                    "summary": reason, "key_failures": [reason],
                    "criteria_checked": values.criteria,
                }));
                return Ok(Verdict::new(false, described));
            }
        };
        let judge = case.judge()?;
        let allowed = values.scores();
        let listed: Vec<String> = allowed
            .iter()
            .map(|one| format!("{}: {}", one.score, one.meaning))
            .collect();
        let question = SectionQuestion {
            system: "comparison",
            values: object(json!({ "scores": listed.join("; ") })),
            sections: vec![
                Section::new("Criteria", "criteria", values.criteria.trim()),
                Section::new("The reference file", "reference", golden),
                Section::new("The agent's file", "agent file", agent),
            ],
            closing: "Answer with the JSON object of `summary`, `key_failures` and `score` and nothing else.",
        };
        let (question, cut) = question.for_judge(judge)?;
        let shape = Shape::object(
            "comparison",
            &json!({
                "summary": { "type": "string" },
                "key_failures": { "type": "array", "items": { "type": "string" } },
                "score": { "type": "number" },
            }),
        );
        let found = judge
            .ask(question, &shape, |text| read(text, &allowed))
            .await?;
        let mut described = object(json!({
            "summary": found.summary,
            "key_failures": found.failures,
            "criteria_checked": values.criteria,
            "judge_prompt": SECTIONS.provenance(),
        }));
        if cut {
            described.insert("evidence_cut".to_owned(), true.into());
        }
        let mut verdict = Verdict::new(false, described);
        verdict.score = found.score;
        Ok(verdict)
    }
}

struct Found {
    score: f64,
    summary: Value,
    failures: Value,
}

fn read(text: &str, allowed: &[AllowedScore]) -> Result<Found, String> {
    let mut objects = reply::objects_with(text, &["score", "summary"])?;
    let given: Vec<Option<f64>> = objects
        .iter()
        .map(|o| lenient::number(&o["score"]))
        .collect();
    let first = given.first().copied().flatten();
    let score =
        first.ok_or_else(|| format!("`score` must be a number, got {}", objects[0]["score"]))?;
    if given.iter().any(|other| *other != Some(score)) {
        return Err("it holds scores that contradict each other".to_owned());
    }
    let meant = allowed
        .iter()
        .find(|one| (one.score - score).abs() < ROUNDING);
    let Some(meant) = meant else {
        let list: Vec<String> = allowed.iter().map(|one| one.score.to_string()).collect();
        return Err(format!(
            "`score` must be one of {}, got {score}",
            list.join(", ")
        ));
    };
    let mut object = objects.pop().unwrap_or_default();
    Ok(Found {
        score: meant.score,
        summary: object.shift_remove("summary").unwrap_or_default(),
        failures: object
            .shift_remove("key_failures")
            .unwrap_or_else(|| json!([])),
    })
}

/// Which part of a file is compared.
#[derive(Debug, Clone)]
struct Part {
    sheet: String,
    /// From 0.
    slides: Vec<usize>,
}

impl Part {
    fn of(&self, document: Document) -> Result<String, String> {
        if self.sheet.is_empty() && self.slides.is_empty() {
            return Ok(document.text);
        }
        let wanted =
            |part: &extract::Part| part.title == self.sheet || self.slides.contains(&part.index);
        let texts: Vec<String> = document
            .parts
            .into_iter()
            .filter(wanted)
            .map(|part| part.text)
            .collect();
        if texts.is_empty() {
            return Err("it has no such sheet or slide".to_owned());
        }
        Ok(texts.join("\n"))
    }
}

/// Numbers of slides from 0, as written from 1.
pub(super) fn slides(list: &str) -> Result<Vec<usize>, String> {
    list.split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty())
        .map(|number| {
            let slide = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            slide.ok_or_else(|| format!("must be numbers from 1 with commas, got {number:?}"))
        })
        .collect()
}

/// The text of the reference file.
async fn golden(values: &ComparisonValues, part: &Part, case: &Case) -> Result<String, EvalError> {
    let (name, part) = (values.golden_answer_path.trim().to_owned(), part.clone());
    let snapshot = case.evidence.golden_snapshots().first().cloned();
    let found = case
        .evidence
        .in_world::<_, EvalError>(Side::Initial, move |initial, limits| {
            let golden = snapshot
                .map(|path| World::open(&path))
                .transpose()
                .map_err(|error| EvalError::helper(format!("golden snapshot: {error}")))?;
            let found = golden
                .as_ref()
                .and_then(|world| text(world, &name, &part, limits));
            Ok(found.or_else(|| text(initial, &name, &part, limits)))
        })
        .await?;
    let name = values.golden_answer_path.trim();
    match found {
        Some(Ok(text)) => Ok(text),
        Some(Err(reason)) => Err(EvalError::config(format!(
            "reference file `{name}`: {reason}"
        ))),
        None => Err(EvalError::config(format!(
            "`golden_answer_path`: no golden snapshot and no initial world has `{name}`"
        ))),
    }
}

/// The text of the agent's file, or why there is none to compare.
async fn agent(
    values: &ComparisonValues,
    part: &Part,
    case: &Case,
) -> Result<Result<String, String>, EvalError> {
    let (name, part) = (values.agent_result_path.trim().to_owned(), part.clone());
    case.evidence
        .in_world::<_, EvalError>(Side::Final, move |world, limits| {
            Ok(match text(world, &name, &part, limits) {
                Some(Ok(text)) => Ok(text),
                Some(Err(reason)) => Err(format!("`{name}`: {reason}")),
                None => Err(format!("there is no file `{name}`")),
            })
        })
        .await
}

/// The text of a part of the file `name`; `None` where there is no such file.
fn text(
    world: &World,
    name: &str,
    part: &Part,
    limits: &evidence::EvidenceLimits,
) -> Option<Result<String, String>> {
    let name = name.trim_start_matches('/');
    let entry = world
        .get(name)
        .or_else(|| world.get(&format!("{FILESYSTEM}/{name}")))
        .filter(|entry| entry.is_file())?;
    let read = world
        .read_entry(entry, limits.file_bytes)
        .map_err(|error| error.to_string());
    Some(read.and_then(|bytes| {
        extract::extract(entry.path(), &bytes, &limits.extract)
            .map_err(|error| error.to_string())
            .and_then(|document| part.of(document))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_one_of_those_allowed() {
        let values: ComparisonValues = serde_json::from_value(json!({
            "agent_result_path": "a", "golden_answer_path": "b", "criteria": "c",
        }))
        .unwrap();
        let allowed = values.scores();
        let score = |text: &str| read(text, &allowed).map(|found| found.score);
        assert_eq!(
            score(r#"{"score": 0.67, "summary": "s", "key_failures": []}"#),
            Ok(0.67)
        );
        assert_eq!(score(r#"{"score": "1.0", "summary": "s"}"#), Ok(1.0));
        assert_eq!(score(r#"{"score": 0.333, "summary": "s"}"#), Ok(0.33));
        for bad in [
            r#"{"score": 0.5, "summary": "s"}"#,
            r#"{"score": "good", "summary": "s"}"#,
            r#"{"score": 1, "summary": "s"} {"score": 0, "summary": "s"}"#,
            r#"{"summary": "s"}"#,
        ] {
            assert!(score(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn slides_are_numbered_from_one() {
        assert_eq!(slides(" 1, 3,"), Ok(vec![0, 2]));
        assert!(slides("0").is_err());
        assert!(slides("all").is_err());
    }
}
