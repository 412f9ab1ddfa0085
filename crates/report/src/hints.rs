//! What to do about a failure.

use formats::owner::{Failure, Owner};

/// Kinds of failure with the sentence that helps. The first words are kinds of `sandbox`, then of
/// `llm-client`, then of `agent-core`.
const HINTS: [(&str, &str); 21] = [
    (
        "servers_not_ready",
        "check `command`, `args`, `cwd` and `env` of the server in `mcp_config.json`",
    ),
    ("apps_refused", "correct the server in `mcp_config.json`"),
    (
        "populate_refused",
        "check the task's `original_snapshot.zip`",
    ),
    (
        "world_unreadable",
        "check the task's `original_snapshot.zip`",
    ),
    (
        "environment_died",
        "read `environment.log` in the trial's folder",
    ),
    (
        "environment_lost",
        "read `environment.log` in the trial's folder",
    ),
    (
        "environment_not_ready",
        "read `environment.log` in the trial's folder",
    ),
    (
        "environment_address",
        "give `--sandbox` an address such as `http://localhost:8080`",
    ),
    (
        "auth",
        "set the provider's key in the environment, and check that it is valid",
    ),
    (
        "credit",
        "the account at the provider is empty; top it up and use `--resume`",
    ),
    (
        "rate_limit",
        "wait and use `--resume`, or run fewer trials at once with `--concurrency`",
    ),
    (
        "overloaded",
        "the provider is busy; wait and use `--resume`",
    ),
    (
        "context_window",
        "choose a model with a larger context, or an agent that shortens its conversation",
    ),
    ("not_found", "check the name of the model, `provider/model`"),
    (
        "unsupported_parameter",
        "take the parameter out of `extra_args` in `orchestrator_config.json`",
    ),
    ("budget", "raise the budget, or choose a cheaper model"),
    (
        "step_limit",
        "raise `max_steps` in `agent_config.json` if the task needs more",
    ),
    (
        "run_timeout",
        "raise `timeout` in `agent_config.json` if the task needs more",
    ),
    (
        "token_budget",
        "raise the token budget in `agent_config.json` if the task needs more",
    ),
    (
        "cost_budget",
        "raise the cost budget in `agent_config.json` if the task needs more",
    ),
    (
        "ambiguous_tool",
        "rename one of the two servers in `mcp_config.json`",
    ),
];

/// What to do about `failure`, in one sentence: by its kind, else by its owner.
#[must_use]
pub fn hint(failure: &Failure) -> &'static str {
    let by_kind = HINTS.iter().find(|(kind, _)| *kind == failure.kind);
    if let Some((_, hint)) = by_kind {
        return hint;
    }
    match failure.owner {
        Owner::Model => "`events.jsonl` in the trial's folder shows each step of the model",
        Owner::Configuration => "correct what the message names and run the task again",
        Owner::Infrastructure => "run again with `--resume`; this says nothing about the model",
        Owner::Cancelled => "run again with `--resume` to go on",
    }
}
