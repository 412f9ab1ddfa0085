//! Verifiers on a state that is known to be right, without a trajectory (§3.9): what does not pass
//! there is wrong itself.

use formats::Object;
use formats::grades::VerifierResult;
use formats::task::ScoringConfig;
use formats::trajectory::{AgentStatus, Trajectory};
use llm_client::Models;
use tokio_util::sync::CancellationToken;

use crate::input::{GradeOptions, GradingInput};
use crate::registry::Registry;
use crate::run::grade_with;

/// A trajectory in which nothing was said.
#[must_use]
pub fn no_trajectory() -> Trajectory {
    Trajectory {
        messages: Vec::new(),
        output: None,
        status: AgentStatus::Completed,
        time_elapsed: 0.0,
        usage: None,
        final_answer: None,
        error: None,
        extra: Object::new(),
    }
}

/// Judges the verifiers of `input`, whose final world is one that is right. Those that look at the
/// answer are left out; those that look at tool calls are not, so that they do not seem to be
/// checked. One whose eval config is not known is an error. There is no score.
pub async fn check_golden_state(
    registry: &Registry,
    input: GradingInput,
    models: &Models,
    options: GradeOptions,
    cancel: CancellationToken,
    on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
) -> Vec<VerifierResult> {
    let input = GradingInput {
        trajectory: no_trajectory(),
        scoring: ScoringConfig::default(),
        ..input
    };
    let options = GradeOptions {
        golden_state: true,
        ..options
    };
    let graded = grade_with(registry, input, models, options, cancel, on_result);
    Box::pin(graded).await.verifier_results
}
