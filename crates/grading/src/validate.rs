//! Everything about a plan that can be known before a judge is paid.

use std::collections::HashSet;

use formats::task::{EvalConfig, GradingSettings, Verifier};
use llm_client::Models;

use crate::input::GradingPlan;
use crate::order;
use crate::problem::{Findings, Place, Problem, Severity};
use crate::registry::Registry;

/// The eval that judges `negative_criteria` whatever the settings say (§6.4.8).
const JUDGES_NEGATIVES: &str = "response_tool_verifier";

/// What [`validate`] found out about a plan that works.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Validated {
    /// Likely mistakes that do not stand in the way, such as unknown keys.
    pub warnings: Vec<Problem>,
    /// Whether some verifier asks the judge.
    pub uses_judge: bool,
}

/// Checks a plan: ids, references, dependencies, the settings of every verifier and of the
/// scoring, that the programs are there which verifiers need, and, where some verifier needs a judge,
/// that the judge's name and credentials can work. Nothing is sent anywhere.
///
/// # Errors
/// All problems, warnings among them, in the order of the files.
pub fn validate<'a>(
    registry: &Registry,
    plan: impl Into<GradingPlan<'a>>,
    models: &Models,
) -> Result<Validated, Vec<Problem>> {
    let plan = plan.into();
    let mut problems = Vec::new();
    let mut uses_judge = false;
    let mut reported = HashSet::new();
    for verifier in plan.verifiers {
        let Some(config) = config_of(verifier, plan.eval_configs) else {
            problems.push(unknown_config(verifier, plan.eval_configs));
            continue;
        };
        let Some(eval) = registry.eval(&config.eval_defn_id) else {
            // Said below, once per config.
            continue;
        };
        let mut inspection = eval.inspect(verifier, config);
        inspection.verifier.look_for_programs(plan.program_path);
        uses_judge |= inspection.uses_judge;
        if inspection.uses_judge && config.eval_defn_id != JUDGES_NEGATIVES {
            problems.extend(unjudged_negative(verifier, plan.settings));
        }
        problems.extend(
            inspection
                .verifier
                .at(&Place::Verifier(verifier.verifier_id.clone())),
        );
        // Findings about the shared settings are the same for each verifier that uses them.
        if reported.insert(config.eval_config_id.as_str()) {
            let place = Place::EvalConfig(config.eval_config_id.clone());
            problems.extend(inspection.config.at(&place));
        }
    }
    check_eval_configs(registry, plan.eval_configs, &mut problems);
    if let Err(found) = order::levels(plan.verifiers) {
        problems.extend(found);
    }
    check_scoring(registry, plan, &mut problems);
    if uses_judge {
        check_judge(plan, models, &mut problems);
    }
    if problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
    {
        return Err(problems);
    }
    Ok(Validated {
        warnings: problems,
        uses_judge,
    })
}

/// The eval config that `verifier` names; of several with one id the first counts.
pub(crate) fn config_of<'a>(
    verifier: &Verifier,
    configs: &'a [EvalConfig],
) -> Option<&'a EvalConfig> {
    configs
        .iter()
        .find(|config| config.eval_config_id == verifier.eval_config_id)
}

fn unknown_config(verifier: &Verifier, configs: &[EvalConfig]) -> Problem {
    let known = configs.iter().map(|config| config.eval_config_id.as_str());
    Problem {
        severity: Severity::Error,
        place: Place::Verifier(verifier.verifier_id.clone()),
        key: Some("eval_config_id".to_owned()),
        rule: format!("no eval config has this id; there are {}", list(known)),
        value: Some(verifier.eval_config_id.clone().into()),
    }
}

/// A fault that the verifier describes and the settings leave unjudged.
fn unjudged_negative(verifier: &Verifier, settings: Option<&GradingSettings>) -> Option<Problem> {
    let key = "negative_criteria";
    let text = verifier.verifier_values.get(key)?.as_str()?;
    let judged = settings.and_then(|settings| settings.llm_judge_negative_criteria);
    if text.trim().is_empty() || judged == Some(true) {
        return None;
    }
    Some(Problem {
        severity: Severity::Warning,
        place: Place::Verifier(verifier.verifier_id.clone()),
        key: Some(key.to_owned()),
        rule: "is judged only if the grading settings say `llm_judge_negative_criteria`".to_owned(),
        value: Some(text.into()),
    })
}

fn check_eval_configs(registry: &Registry, configs: &[EvalConfig], problems: &mut Vec<Problem>) {
    let mut seen = HashSet::new();
    for config in configs {
        let mut findings = Findings::default();
        if !seen.insert(config.eval_config_id.as_str()) {
            findings.warning(
                "eval_config_id",
                "stands twice; the first one counts",
                config.eval_config_id.as_str(),
            );
        }
        if registry.eval(&config.eval_defn_id).is_none() {
            findings.error(
                "eval_defn_id",
                format!("unknown eval; known are {}", list(registry.eval_ids())),
                config.eval_defn_id.as_str(),
            );
        }
        problems.extend(findings.at(&Place::EvalConfig(config.eval_config_id.clone())));
    }
}

fn check_scoring(registry: &Registry, plan: GradingPlan<'_>, problems: &mut Vec<Problem>) {
    let mut findings = Findings::default();
    match registry.scoring(&plan.scoring.scoring_defn_id) {
        Some(method) => method.inspect(
            &plan.scoring.scoring_config_values,
            plan.verifiers,
            &mut findings,
        ),
        None => findings.error(
            "scoring_defn_id",
            unknown_scoring(registry),
            plan.scoring.scoring_defn_id.as_str(),
        ),
    }
    problems.extend(findings.at(&Place::ScoringConfig));
}

pub(crate) fn unknown_scoring(registry: &Registry) -> String {
    let known = list(registry.scoring_ids());
    format!("unknown scoring method; known are {known}")
}

fn check_judge(plan: GradingPlan<'_>, models: &Models, problems: &mut Vec<Problem>) {
    let mut findings = Findings::default();
    match plan.settings {
        None => findings.missing(
            "llm_judge_model",
            "a verifier asks the judge, and no judge is set",
        ),
        Some(settings) => {
            for problem in judge::check_settings(settings, models) {
                if problem.is_error {
                    findings.error(&problem.key, problem.rule, problem.value);
                } else {
                    findings.warning(&problem.key, problem.rule, problem.value);
                }
            }
        }
    }
    problems.extend(findings.at(&Place::GradingSettings));
}

fn list<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<String> = ids.map(|id| format!("`{id}`")).collect();
    if ids.is_empty() {
        "none".to_owned()
    } else {
        ids.join(", ")
    }
}
