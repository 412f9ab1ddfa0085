//! Verifiers that are left out: without a transcript, or after a failed dependency.

use std::collections::HashMap;

use formats::Object;
use formats::grades::{VerifierResult, VerifierStatus};
use formats::task::{EvalConfig, Verifier};

use crate::registry::Registry;
use crate::validate::config_of;

/// Evals that look at what the agent did and said on its way, whatever their settings.
const ON_THE_WAY: [&str; 5] = [
    "posttraining_tool_call_check",
    "response_tool_verifier",
    "tool_call_check",
    "tool_call_llm_check",
    "trace_milestones",
];

/// Why verifiers cannot be judged without a transcript, by their positions (§3.4): those whose
/// settings look at it, those whose eval is not known, and all that depend on one of these.
pub(crate) fn without_transcript(
    registry: &Registry,
    verifiers: &[Verifier],
    configs: &[EvalConfig],
) -> HashMap<usize, String> {
    left_out(verifiers, |verifier| {
        let Some(config) = config_of(verifier, configs) else {
            return Some("its eval config is not known".to_owned());
        };
        let id = &config.eval_defn_id;
        let Some(eval) = registry.eval(id) else {
            return Some(format!("its eval `{id}` is not known"));
        };
        let needs_it = eval.inspect(verifier, config).needs_transcript;
        needs_it.then(|| format!("`{id}` needs a transcript here, and there is none"))
    })
}

/// Why verifiers cannot be judged on a state without an answer (§3.9): those whose settings look at
/// the answer, and all that depend on one of these.
pub(crate) fn without_answer(
    registry: &Registry,
    verifiers: &[Verifier],
    configs: &[EvalConfig],
) -> HashMap<usize, String> {
    left_out(verifiers, |verifier| {
        let config = config_of(verifier, configs)?;
        let id = config.eval_defn_id.as_str();
        if ON_THE_WAY.contains(&id) {
            return None;
        }
        let needs_it = registry
            .eval(id)?
            .inspect(verifier, config)
            .needs_transcript;
        needs_it.then(|| format!("`{id}` looks at the answer, and there is none"))
    })
}

/// The positions of verifiers that are left out for a reason of their own, and of all that depend
/// on one of them.
fn left_out(
    verifiers: &[Verifier],
    reason: impl Fn(&Verifier) -> Option<String>,
) -> HashMap<usize, String> {
    let own = verifiers.iter().enumerate();
    let own = own.filter_map(|(at, verifier)| Some((at, reason(verifier)?)));
    with_dependants(verifiers, own.collect())
}

/// `skipped` with all that depend on one of them.
fn with_dependants(
    verifiers: &[Verifier],
    mut skipped: HashMap<usize, String>,
) -> HashMap<usize, String> {
    loop {
        let ids: HashMap<&str, usize> = skipped
            .keys()
            .map(|at: &usize| (verifiers[*at].verifier_id.as_str(), *at))
            .collect();
        let more: Vec<(usize, String)> = verifiers
            .iter()
            .enumerate()
            .filter(|(at, _)| !skipped.contains_key(at))
            .filter_map(|(at, verifier)| {
                let mut dependencies = verifier.verifier_dependencies.iter().flatten();
                let id = dependencies.find(|id| ids.contains_key(id.as_str()))?;
                Some((at, format!("it depends on `{id}`, which is left out")))
            })
            .collect();
        if more.is_empty() {
            return skipped;
        }
        skipped.extend(more);
    }
}

/// Why a verifier with these dependencies is left out, where one of them did not pass.
pub(crate) fn after_failure(dependencies: &[VerifierResult]) -> Option<String> {
    let failed = dependencies.iter().find(|result| !result.passed())?;
    Some(format!(
        "it depends on `{}`, which did not pass",
        failed.verifier_id
    ))
}

/// The result of a verifier that is left out.
pub(crate) fn result(verifier: &Verifier, reason: &str) -> VerifierResult {
    let mut values = Object::new();
    values.insert("skipped".to_owned(), true.into());
    values.insert("reason".to_owned(), reason.into());
    VerifierResult {
        verifier_id: verifier.verifier_id.clone(),
        verifier_version: verifier.verifier_version,
        score: 0.0,
        verifier_result_values: values,
        status: VerifierStatus::Ok,
        message: format!("left out: {reason}"),
    }
}
