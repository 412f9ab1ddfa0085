//! Counting what an agent does, from its events.

use std::sync::Mutex;

use formats::event::{Event, EventKind};

/// What an agent used so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) steps: u64,
    pub(crate) tool_calls: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) cost_usd: f64,
    /// Calls whose price is not known: with one of them the cost of the trial is not known.
    pub(crate) unpriced_calls: u64,
}

impl Usage {
    /// The cost, if every call has a known price.
    pub(crate) fn known_cost(&self) -> Option<f64> {
        (self.unpriced_calls == 0).then_some(self.cost_usd)
    }
}

/// Adds up the events of one agent run.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Usage>);

impl Meter {
    pub(crate) fn count(&self, event: &Event) {
        let mut usage = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        usage.steps = usage.steps.max(event.step.unwrap_or(0));
        match spent_by(&event.kind) {
            EventKind::ToolCall { .. } => usage.tool_calls += 1,
            EventKind::Response {
                usage: tokens,
                cost_usd,
                ..
            } => {
                if let Some(tokens) = tokens {
                    usage.prompt_tokens += tokens.prompt_tokens;
                    usage.completion_tokens += tokens.completion_tokens;
                }
                match cost_usd {
                    Some(cost) => usage.cost_usd += cost,
                    None => usage.unpriced_calls += 1,
                }
            }
            EventKind::Compacted {
                usage: Some(tokens),
                ..
            } => {
                usage.prompt_tokens += tokens.prompt_tokens;
                usage.completion_tokens += tokens.completion_tokens;
            }
            _ => {}
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

/// What a subagent does is spent by its run, but for its steps.
fn spent_by(kind: &EventKind) -> &EventKind {
    match kind {
        EventKind::Subagent { event, .. } => spent_by(&event.kind),
        kind => kind,
    }
}
