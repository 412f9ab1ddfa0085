//! `pptx_style_verifier`: a list of style criteria on a slide deck (§6.4.10). Judges see a
//! description of the shapes and texts; criteria that need rendered slides are not judged.

use std::collections::BTreeMap;

use evidence::Side;
use extract::SlideLook;
use formats::{Object, lenient};
use judge::{Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use snapshot::{FILESYSTEM, World};

use super::object;
use super::prompts::SECTIONS;
use super::sections::{Section, SectionQuestion};
use crate::error::{ErrorKind, EvalError};
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Settings of `pptx_style_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SlideStyleValues {
    /// What is judged.
    pptx_style_criteria: Vec<Criterion>,
    /// The deck, with or without `filesystem/` in front; the first `.pptx` file if empty.
    #[serde(default)]
    agent_result_path: String,
}

/// One criterion.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Criterion {
    /// What it is called in results.
    criteria_name: String,
    /// What must be true.
    criteria_prompt: String,
    /// Whether a judge reads a description (`text`) or sees the slides (`image`).
    judge_mode: Mode,
    /// Whether it is about the whole deck or about each slide.
    criteria_scope: Scope,
    /// For people.
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    criteria_tag: Value,
    /// More for the judge.
    #[serde(default)]
    judge_prompt: String,
}

/// What a judge looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// A description.
    Text,
    /// Rendered slides, which are not made.
    Image,
}

/// What a criterion is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// The whole deck.
    Deck,
    /// Each slide.
    Slide,
}

pub(crate) struct SlideStyle;

impl Eval for SlideStyle {
    type Values = SlideStyleValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "pptx_style_verifier"
    }

    fn about(&self) -> &'static str {
        "a judge model decides style criteria on a slide deck, by a description of its shapes and texts"
    }

    fn uses_judge(&self, _: &SlideStyleValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &SlideStyleValues, _: &NoSettings, findings: &mut Findings) {
        let criteria = &values.pptx_style_criteria;
        let key = "pptx_style_criteria";
        if criteria.is_empty() {
            findings.missing(key, "must not be empty");
        }
        for (at, one) in criteria.iter().enumerate() {
            let name = one.criteria_name.trim();
            if name.is_empty() || one.criteria_prompt.trim().is_empty() {
                findings.missing(&format!("{key}[{at}]"), "needs a name and a prompt");
            }
            let same = |other: &&Criterion| other.criteria_name == one.criteria_name;
            if criteria[..at].iter().any(|other| same(&other)) {
                findings.error(&format!("{key}[{at}].criteria_name"), "stands twice", name);
            }
            if one.judge_mode == Mode::Image {
                let rule = "slides are not rendered; the criterion is not judged";
                findings.warning(&format!("{key}[{at}].judge_mode"), rule, "image");
            }
        }
        if !criteria.is_empty() && criteria.iter().all(|one| one.judge_mode == Mode::Image) {
            findings.missing(key, "has only criteria that need rendered slides");
        }
    }

    async fn evaluate(
        &self,
        values: &SlideStyleValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let criteria = &values.pptx_style_criteria;
        let slides = match looks(values.agent_result_path.trim(), case).await? {
            Ok(slides) => slides,
            Err(reason) => {
                let described =
                    object(json!({ "error": reason, "criteria_count": criteria.len() }));
                return Ok(Verdict::new(false, described).with_message(reason));
            }
        };
        let of = |scope: Scope| -> Vec<&Criterion> {
            let judged =
                |one: &&Criterion| one.criteria_scope == scope && one.judge_mode == Mode::Text;
            criteria.iter().filter(judged).collect()
        };
        let (deck, each) = (of(Scope::Deck), of(Scope::Slide));
        let mut questions = Vec::new();
        if !deck.is_empty() {
            questions.push(("deck".to_owned(), deck, slides.as_slice()));
        }
        if !each.is_empty() {
            questions.extend(slides.iter().map(|slide| {
                let name = format!("slide_{}", slide.slide);
                (name, each.clone(), std::slice::from_ref(slide))
            }));
        }
        let asked = questions.into_iter().map(|(name, criteria, slides)| {
            Box::pin(async move {
                let answer = ask(&criteria, slides, case).await;
                (name, answer)
            })
        });
        let answers = futures::future::join_all(asked).await;
        let mut found = Found::default();
        for (name, answer) in answers {
            // A call that failed drops its criteria only.
            match answer {
                Ok(rows) => found.add(name, rows),
                Err(error) => found.failed.push((name, error)),
            }
        }
        found.verdict(criteria.len(), slides.len())
    }
}

/// The scores of one question; `None` where there is none.
type Rows = BTreeMap<String, (Option<f64>, Value)>;

#[derive(Default)]
struct Found {
    details: Map<String, Value>,
    deck: Option<f64>,
    slides: Vec<f64>,
    failed: Vec<(String, EvalError)>,
}

impl Found {
    fn add(&mut self, name: String, rows: Rows) {
        let scores: Vec<f64> = rows.values().filter_map(|(score, _)| *score).collect();
        if name == "deck" {
            self.deck = mean(&scores);
        } else {
            self.slides.extend(mean(&scores));
        }
        let rows: Map<String, Value> = rows
            .into_iter()
            .map(|(criterion, (score, rationale))| {
                let score = score.map_or_else(|| json!("nan"), Value::from);
                (criterion, json!({ "score": score, "rationale": rationale }))
            })
            .collect();
        self.details.insert(name, rows.into());
    }

    fn verdict(mut self, criteria: usize, slides: usize) -> Result<Verdict, EvalError> {
        let slide_average = mean(&self.slides);
        let both: Vec<f64> = self.deck.into_iter().chain(slide_average).collect();
        let Some(score) = mean(&both) else {
            return Err(match self.failed.pop() {
                Some((_, error)) => error,
                None => EvalError::new(
                    ErrorKind::CannotAssess,
                    "the judge could not assess any of the criteria",
                ),
            });
        };
        let failed: Map<String, Value> = self
            .failed
            .into_iter()
            .map(|(name, error)| (name, error.message.into()))
            .collect();
        let mut values = object(json!({
            "detailed_results": self.details,
            "deck_score": self.deck,
            "slide_average": slide_average,
            "final_score": score,
            "criteria_count": criteria,
            "slide_count": slides,
            "judge_prompt": SECTIONS.provenance(),
        }));
        if !failed.is_empty() {
            values.insert("not_judged".to_owned(), failed.into());
        }
        let mut verdict = Verdict::new(false, values);
        verdict.score = score;
        Ok(verdict)
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of criteria are small")]
fn mean(scores: &[f64]) -> Option<f64> {
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Asks about `criteria` on `slides`.
async fn ask(
    criteria: &[&Criterion],
    slides: &[SlideLook],
    case: &Case,
) -> Result<Rows, EvalError> {
    let judge = case.judge()?;
    let listed: Vec<Value> = criteria
        .iter()
        .map(|one| {
            json!({
                "name": one.criteria_name, "criterion": one.criteria_prompt,
                "more": one.judge_prompt,
            })
        })
        .collect();
    let question = SectionQuestion {
        system: "style",
        values: Object::new(),
        sections: vec![
            Section::new("Criteria", "criteria", json!(listed).to_string()),
            Section::new("The slides", "slides", json!(slides).to_string()),
        ],
        closing: "Answer with the JSON object of all criteria and nothing else.",
    };
    let (question, _) = question.for_judge(judge)?;
    let names: Vec<&str> = criteria
        .iter()
        .map(|one| one.criteria_name.as_str())
        .collect();
    let rows = judge
        .ask(question, &Shape::free("style_scores"), |text| {
            read(text, &names)
        })
        .await?;
    Ok(rows)
}

fn read(text: &str, names: &[&str]) -> Result<Rows, String> {
    let object = reply::objects_with(text, names)?.pop().unwrap_or_default();
    let row = |name: &&str| {
        let answer = &object[*name];
        let score = lenient::number(&answer["score"]).map(|score| score.clamp(0.0, 1.0));
        ((*name).to_owned(), (score, answer["rationale"].clone()))
    };
    Ok(names.iter().map(row).collect())
}

/// How the slides of the deck look, or why there is nothing to judge.
async fn looks(path: &str, case: &Case) -> Result<Result<Vec<SlideLook>, String>, EvalError> {
    let path = path.trim_start_matches('/').to_owned();
    case.evidence
        .in_world::<_, EvalError>(Side::Final, move |world, limits| {
            let Some(entry) = deck(world, &path) else {
                return Ok(Err("there is no deck".to_owned()));
            };
            let bytes = world
                .read_entry(entry, limits.file_bytes)
                .map_err(|error| EvalError::helper(error.to_string()))?;
            let looks = extract::slide_looks(&bytes, &limits.extract);
            Ok(looks.map_err(|error| format!("`{}`: {error}", entry.path())))
        })
        .await
}

fn deck<'w>(world: &'w World, path: &str) -> Option<&'w snapshot::Entry> {
    if path.is_empty() {
        let is_deck = |entry: &&snapshot::Entry| {
            entry.is_file()
                && extract::extension(entry.path()) == "pptx"
                && !entry.path().contains("/~$")
        };
        return world.entries().iter().find(is_deck);
    }
    world
        .get(path)
        .or_else(|| world.get(&format!("{FILESYSTEM}/{path}")))
        .filter(|entry| entry.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_by_name_and_what_is_no_number_is_none() {
        let rows = read(
            r#"{"fonts": {"score": 1, "rationale": "r"}, "colours": {"score": "nan"}}"#,
            &["fonts", "colours"],
        )
        .unwrap();
        assert_eq!(rows["fonts"].0, Some(1.0));
        assert_eq!(rows["colours"].0, None);
        assert!(read(r#"{"fonts": {"score": 1}}"#, &["fonts", "colours"]).is_err());
    }
}
