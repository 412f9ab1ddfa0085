//! The `output_llm` family: a judge model decides a criterion on the answer and the changed files
//! (`spec/grading.md` §5).

mod address;
mod exhibit;
mod pages;
mod prompt;
mod reference;
mod selection;
mod target;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::exhibit::Exhibit;
pub(super) use self::pages::Pages;
use self::prompt::Material;
pub(super) use self::reference::Reference;
pub(super) use self::target::{ExpectedFileType, Target};
use super::db_diff::{RowExamination, Sight};
use super::object;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::evals::prompts::OUTPUT_LLM;
use crate::problem::Findings;
use crate::settings::{NoSettings, flag};
use evidence::{Artifact, Changes, InitialFile, RowSources};
use judge::Context;
use judge::{Shape, reply};

/// Ids that share this implementation; they differ in the fields that editors offer for them.
pub(super) const IDS: [&str; 6] = [
    "output_llm",
    "output_llm_lite",
    "output_llm_weighted",
    "output_llm_difficulty_weighted",
    "basic_llm_judge",
    "jupiter_text_based_criterion",
];

/// Settings of a verifier of the family.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct OutputLlmValues {
    /// What must be true of the agent's output.
    criteria: String,
    /// What of the output is looked at; everything if absent.
    #[serde(default)]
    expected_file_type: Option<ExpectedFileType>,
    /// Only these files, by name or by the end of their path.
    #[serde(default)]
    expected_output_files: Vec<String>,
    /// Files of the initial world that the judge is shown as context.
    #[serde(default)]
    artifacts_to_reference: Vec<Reference>,
    /// What the author adds to the criterion; shown to the judge only if the eval config says so.
    #[serde(default)]
    criteria_explanation: String,
    /// A fault that costs the score -1 where the criterion is not met; judged only if the grading
    /// settings say `llm_judge_negative_criteria`.
    #[serde(default)]
    negative_criteria: String,
    /// Whether the judge sees documents as pictures of their pages too
    /// (`output_llm_multi_representation` only). They are shown as text in any case.
    #[serde(default, deserialize_with = "flag")]
    enable_visual_grading: bool,
}

/// Settings of an eval config of the family.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct OutputLlmConfig {
    /// `true`: an answer that hedges between candidates does not meet the criterion.
    #[serde(default)]
    scattergunning_guard: Value,
    /// Whether the judge is shown `criteria_explanation`.
    #[serde(default, deserialize_with = "flag")]
    include_criteria_explanation: bool,
}

/// `output_llm_multi_representation`: the family with a choice of how references are shown (§6.4.2).
pub(crate) struct MultiRepresentation;

impl Eval for MultiRepresentation {
    type Values = OutputLlmValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "output_llm_multi_representation"
    }

    fn about(&self) -> &'static str {
        "as `output_llm`, with a choice of how files are shown: as text, or as pictures of their pages too"
    }

    fn uses_judge(&self, _: &OutputLlmValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, values: &OutputLlmValues, _: &NoSettings) -> bool {
        values.is_about_the_answer_alone()
    }

    fn check(&self, values: &OutputLlmValues, _: &NoSettings, findings: &mut Findings) {
        values.check(findings);
        if values.enable_visual_grading {
            values
                .target()
                .check_drawn("enable_visual_grading", findings);
        }
    }

    async fn evaluate(
        &self,
        values: &OutputLlmValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let target = values.target();
        let pages = Pages::screenshots(values.enable_visual_grading);
        let examination = values.examination(&target, pages);
        values.verdict(examination, case).await
    }
}

pub(crate) struct OutputLlm {
    pub(super) id: &'static str,
}

impl Eval for OutputLlm {
    type Values = OutputLlmValues;
    type Config = OutputLlmConfig;

    fn id(&self) -> &str {
        self.id
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on the answer and the changed files"
    }

    fn uses_judge(&self, _: &OutputLlmValues, _: &OutputLlmConfig) -> bool {
        true
    }

    fn needs_transcript(&self, values: &OutputLlmValues, _: &OutputLlmConfig) -> bool {
        // Files can be judged without one.
        values.is_about_the_answer_alone()
    }

    fn check(&self, values: &OutputLlmValues, _: &OutputLlmConfig, findings: &mut Findings) {
        values.check(findings);
        if values.enable_visual_grading {
            let rule = "only `output_llm_multi_representation` shows documents as pictures";
            findings.warning("enable_visual_grading", rule, true);
        }
    }

    async fn evaluate(
        &self,
        values: &OutputLlmValues,
        config: &OutputLlmConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let target = values.target();
        let mut examination = values.examination(&target, Pages::screenshots(false));
        if config.include_criteria_explanation {
            examination.explanation = values.criteria_explanation.trim();
        }
        examination.guard = config.scattergunning_guard == Value::Bool(true);
        examination.own_prompt = true;
        values.verdict(examination, case).await
    }
}

impl OutputLlmValues {
    fn check(&self, findings: &mut Findings) {
        if self.criteria.trim().is_empty() {
            findings.missing("criteria", "must not be empty");
        }
        Target::check(self.expected_file_type.as_ref(), findings);
        Reference::check(
            "artifacts_to_reference",
            &self.artifacts_to_reference,
            findings,
        );
    }

    fn is_about_the_answer_alone(&self) -> bool {
        self.target() == Target::AnswerOnly
    }

    /// What is judged; everything where the name is not known, which `check` warns of.
    fn target(&self) -> Target {
        Target::of(self.expected_file_type.as_ref()).unwrap_or(Target::All)
    }

    fn examination<'a>(&'a self, target: &'a Target, pages: Pages) -> Examination<'a> {
        Examination {
            criterion: self.criteria.trim(),
            explanation: "",
            target,
            files: &self.expected_output_files,
            references: &self.artifacts_to_reference,
            pages,
            guard: false,
            own_prompt: false,
            negative: false,
            whole_conversation: true,
        }
    }

    /// The verdict on the criterion, and, where it is not met, on the negative one.
    async fn verdict(
        &self,
        examination: Examination<'_>,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let mut verdict = examination.verdict(case).await?;
        let negative = self.negative_criteria.trim();
        if verdict.score > 0.0 || negative.is_empty() || !negatives_are_judged(case) {
            return Ok(verdict);
        }
        let fault = Examination {
            criterion: negative,
            explanation: "",
            negative: true,
            ..examination
        };
        let found = fault.verdict(case).await?;
        let violated = found.score > 0.0;
        // The words are the reference's: a negative criterion that "passes" is violated (§5.11).
        let grade = grade(violated).into();
        verdict.values.insert("negative_grade".to_owned(), grade);
        let rationale = found.values.get("grade_rationale").cloned();
        verdict.values.insert(
            "negative_grade_rationale".to_owned(),
            rationale.unwrap_or_default(),
        );
        if violated {
            verdict.score = -1.0;
        }
        Ok(verdict)
    }
}

/// Whether the settings want negative criteria judged. Without a judge there was none to fail.
fn negatives_are_judged(case: &Case) -> bool {
    case.judge()
        .is_ok_and(|judge| judge.settings().negative_criteria)
}

/// One question of the family: a criterion, and what of the output it is about.
#[derive(Clone, Copy)]
pub(super) struct Examination<'a> {
    pub(super) criterion: &'a str,
    pub(super) explanation: &'a str,
    pub(super) target: &'a Target,
    /// Names of files; empty for all.
    pub(super) files: &'a [String],
    pub(super) references: &'a [Reference],
    /// Which documents are shown as pictures.
    pub(super) pages: Pages,
    pub(super) guard: bool,
    /// Whether the settings may replace the system prompt.
    pub(super) own_prompt: bool,
    /// Whether the criterion describes a fault.
    pub(super) negative: bool,
    /// Whether the task is told with what user and assistant said after it.
    pub(super) whole_conversation: bool,
}

impl Examination<'_> {
    /// Asks the judges, unless it is clear without them.
    pub(super) async fn verdict(&self, case: &Case) -> Result<Verdict, EvalError> {
        if *self.target == Target::Database {
            return Box::pin(self.on_rows(case)).await;
        }
        let changes = if self.target.has_files() {
            Some(case.evidence.changes().await?)
        } else {
            None
        };
        let artifacts = match self.filter(changes.as_deref()) {
            Ok(artifacts) => artifacts,
            Err(failed) => return Ok(failed),
        };
        let judge = case.judge()?;
        let context = Context::of_all(judge.model_names());
        let task = if self.whole_conversation {
            case.evidence.conversation_text()
        } else {
            case.evidence.task_text()
        };
        let selection = selection::select(judge, context, &task, self.criterion, artifacts).await;
        let references = references(self.references, case).await?;
        let mut exhibits: Vec<Exhibit> =
            selection.artifacts.iter().map(|a| Exhibit::of(a)).collect();
        let mut shown: Vec<Exhibit> = references.iter().map(Exhibit::reference).collect();
        let pictures = self
            .pages
            .add(
                case,
                context,
                (&selection.artifacts[..], &mut exhibits[..]),
                (self.references, &references[..], &mut shown[..]),
            )
            .await?;
        let system_prompt = judge.settings().system_prompt.as_deref();
        let system_prompt = system_prompt.filter(|_| self.own_prompt);
        let may_abstain = judge.settings().cannot_assess;
        let material = Material {
            target: self.target,
            task: &task,
            answer: case.evidence.answer(),
            criterion: self.criterion,
            explanation: self.explanation,
            artifacts: exhibits,
            references: shown,
            system_prompt,
            guard: self.guard,
            cannot_assess: may_abstain,
            negative: self.negative,
        };
        let addressing = material.addressing();
        let (question, cut) = material.question(context)?;
        let ruling = judge
            .decide(question, &shape(may_abstain), |reply| {
                reply::criterion_verdict(reply, may_abstain)
            })
            .await?;
        let mut described = object(json!({
            "judge_grade": grade(ruling.met),
            "grade_rationale": ruling.rationale,
            "evaluated_artifacts": names(&selection.artifacts),
            "judge_prompt": OUTPUT_LLM.provenance(),
        }));
        described.extend(ruling.votes);
        if !addressing.is_empty() {
            described.insert("addresses_judge".to_owned(), addressing.into());
        }
        let missing = missing(self.references, &references);
        if !missing.is_empty() {
            described.insert("references_missing".to_owned(), missing.into());
        }
        if let Some(pictures) = pictures {
            described.insert("document_pictures".to_owned(), pictures);
        }
        if let Some(account) = selection.account {
            described.insert("artifact_selection".to_owned(), account);
        }
        if cut {
            described.insert("evidence_cut".to_owned(), true.into());
        }
        Ok(Verdict::new(ruling.met, described))
    }

    /// The verdict on the changed rows of databases.
    async fn on_rows(&self, case: &Case) -> Result<Verdict, EvalError> {
        let names = self.files.iter().map(|name| name.trim());
        let names: Vec<&str> = names.filter(|n| extract::extension(n) == "db").collect();
        let examination = RowExamination {
            criterion: self.criterion,
            sources: RowSources::default(),
            databases: &names,
            sight: Sight::Tools,
        };
        examination.verdict(case).await
    }

    /// The artifacts that the criterion is about. Where it asks for files and there are none, the
    /// verdict is clear without a judge.
    fn filter<'a>(&self, changes: Option<&'a Changes>) -> Result<Vec<&'a Artifact>, Verdict> {
        let mut artifacts: Vec<&Artifact> = changes
            .map_or(&[][..], |changes| &changes.artifacts)
            .iter()
            .filter(|artifact| self.target.accepts(artifact))
            .collect();
        if let Target::Files { label, .. } = self.target
            && artifacts.is_empty()
        {
            let reason =
                format!("The criterion is about {label}, and the agent changed no such file.");
            return Err(auto_fail(&reason, "no_matching_file_type"));
        }
        let wanted: Vec<&str> = self
            .files
            .iter()
            .map(|name| name.trim().trim_start_matches('/'))
            .filter(|name| !name.is_empty())
            .collect();
        if self.target.has_files() && !wanted.is_empty() {
            artifacts.retain(|artifact| target::is_named(&artifact.path, &wanted));
            if artifacts.is_empty() {
                let reason = format!("The agent changed none of the files {}.", wanted.join(", "));
                return Err(auto_fail(&reason, "no_matching_expected_output_file"));
            }
        }
        Ok(artifacts)
    }
}

const fn grade(passed: bool) -> &'static str {
    if passed { "pass" } else { "fail" }
}

fn names(artifacts: &[&Artifact]) -> String {
    let names: Vec<String> = artifacts.iter().map(|artifact| artifact.name()).collect();
    names.join(", ")
}

fn shape(may_abstain: bool) -> Shape {
    let decision = if may_abstain {
        json!(["boolean", "null"])
    } else {
        json!("boolean")
    };
    Shape {
        name: "criterion_verdict",
        schema: json!({
            "type": "object",
            "title": "CriterionVerdict",
            "properties": {
                "rationale": {
                    "type": "string",
                    "title": "Rationale",
                    "description": "The evidence and the assessment",
                },
                "is_criteria_true": {
                    "type": decision,
                    "title": "Is Criteria True",
                    "description": "Whether the criterion is met",
                },
            },
            "required": ["rationale", "is_criteria_true"],
            "additionalProperties": false,
        }),
    }
}

fn auto_fail(rationale: &str, reason: &str) -> Verdict {
    Verdict::new(
        false,
        object(json!({
            "judge_grade": "fail",
            "grade_rationale": rationale,
            "evaluated_artifacts": "",
            "auto_failed": true,
            "auto_fail_reason": reason,
        })),
    )
}

/// The names of references that the initial world does not have.
fn missing(wanted: &[Reference], found: &[InitialFile]) -> Vec<String> {
    let is_missing = |reference: &&Reference| !found.iter().any(|file| reference.is_of(file));
    let missing = wanted.iter().filter(is_missing);
    missing.map(Reference::name).collect()
}

async fn references(wanted: &[Reference], case: &Case) -> Result<Vec<InitialFile>, EvalError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = wanted.iter().map(Reference::wanted).collect();
    Ok(case.evidence.initial_files(wanted).await?)
}
