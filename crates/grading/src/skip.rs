//! Verifiers that are left out: without a transcript, or after a failed dependency.

use std::collections::HashMap;

use formats::Object;
use formats::grades::{VerifierResult, VerifierStatus};
use formats::task::{EvalConfig, Verifier};

use crate::registry::Registry;
use crate::validate::config_of;

/// Why verifiers cannot be judged without a transcript, by their positions (§3.4): those whose
/// settings look at it, those whose eval is not known, and all that depend on one of these.
pub(crate) fn without_transcript(
    registry: &Registry,
    verifiers: &[Verifier],
    configs: &[EvalConfig],
) -> HashMap<usize, String> {
    let mut skipped = HashMap::new();
    for (at, verifier) in verifiers.iter().enumerate() {
        let Some(config) = config_of(verifier, configs) else {
            skipped.insert(at, "its eval config is not known".to_owned());
            continue;
        };
        let Some(eval) = registry.eval(&config.eval_defn_id) else {
            let id = &config.eval_defn_id;
            skipped.insert(at, format!("its eval `{id}` is not known"));
            continue;
        };
        if eval.inspect(verifier, config).needs_transcript {
            let id = &config.eval_defn_id;
            let reason = format!("`{id}` needs a transcript here, and there is none");
            skipped.insert(at, reason);
        }
    }
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
