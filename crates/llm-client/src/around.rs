//! What stands around the attempts of a model: limits, budgets, recording, kept answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::budget::{Amount, Budget, SetAside, amount_of, estimated_input, reply_limit};
use crate::cache::Cache;
use crate::rate::{Lane, Pass, WaitNotice, WaitReason};
use crate::recording::{Question, Tape};
use llm_wire::secrets::Secrets;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, ChatResponse};

/// Tokens of a reply that the rate limits reckon with where the request sets no limit; corrected
/// when the reply is there.
const USUAL_REPLY: u64 = 1024;

/// All of it; nothing by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    /// Held while an attempt is in flight.
    pub(crate) slots: Option<Arc<Semaphore>>,
    /// The line in front of the provider.
    pub(crate) lane: Option<Arc<Lane>>,
    /// What pays for the calls, the narrowest first.
    pub(crate) budgets: Vec<Budget>,
    /// Where the exchanges are written down.
    pub(crate) tape: Option<Tape>,
    /// Where answers are kept.
    pub(crate) cache: Option<Cache>,
    /// What must not be written down.
    pub(crate) secrets: Arc<Secrets>,
}

/// The leave to make one attempt. What it holds is given back when it is dropped.
pub(crate) struct Admission<'m> {
    set_aside: Vec<SetAside>,
    pass: Option<Pass>,
    _slot: Option<SemaphorePermit<'m>>,
}

impl Around {
    /// What `request` asks, where somebody wants to know.
    pub(crate) fn question(&self, request: &ChatRequest<'_>) -> Option<Question> {
        let wanted = self.tape.is_some() || self.cache.is_some();
        wanted.then(|| Question::new(request, &self.secrets))
    }

    /// Waits for budgets, a slot and the provider's limits, in this order: who waits for a later one
    /// never keeps those from ending who hold an earlier one.
    pub(crate) async fn admit(
        &self,
        request: &ChatRequest<'_>,
        worst: &(dyn Fn() -> Amount + Send + Sync),
        on_wait: &(dyn Fn(WaitNotice) + Send + Sync),
    ) -> Result<Admission<'_>, (ChatErrorKind, String)> {
        let mut set_aside = Vec::new();
        if !self.budgets.is_empty() {
            let worst = worst();
            for budget in &self.budgets {
                let asked_at = Instant::now();
                let (part, waited) = budget
                    .set_aside(worst)
                    .await
                    .map_err(|error| (ChatErrorKind::Budget, error.to_string()))?;
                set_aside.push(part);
                if waited {
                    on_wait(WaitNotice {
                        waited: asked_at.elapsed(),
                        reason: WaitReason::Budget,
                    });
                }
            }
        }
        let slot = match &self.slots {
            None => None,
            Some(slots) => {
                let closed = |_| (ChatErrorKind::Budget, "no more calls are made".to_owned());
                Some(slots.acquire().await.map_err(closed)?)
            }
        };
        let pass = match &self.lane {
            None => None,
            Some(lane) => {
                let tokens = if lane.counts_tokens() {
                    let reply = reply_limit(request.extra_args).unwrap_or(USUAL_REPLY);
                    estimated_input(request).saturating_add(reply)
                } else {
                    0
                };
                let (pass, notice) = lane
                    .enter(tokens)
                    .await
                    .map_err(|error| (ChatErrorKind::RateLimit, error.to_string()))?;
                if let Some(notice) = notice {
                    on_wait(notice);
                }
                Some(pass)
            }
        };
        Ok(Admission {
            set_aside,
            pass,
            _slot: slot,
        })
    }
}

impl Admission<'_> {
    /// The attempt was answered.
    pub(crate) fn answered(self, response: &ChatResponse) {
        let amount = amount_of(response);
        if let Some(pass) = &self.pass {
            pass.answered(
                response
                    .usage
                    .as_ref()
                    .map(|usage| usage.prompt_tokens.saturating_add(usage.completion_tokens)),
            );
        }
        for part in self.set_aside {
            part.settle(amount);
        }
    }

    /// The attempt failed; nobody waits longer than `longest_wait` for it.
    pub(crate) fn failed(self, error: &ChatError, longest_wait: Duration) {
        let Some(pass) = &self.pass else { return };
        let wait = error.retry_after.map(|asked| asked.min(longest_wait));
        match error.kind {
            ChatErrorKind::RateLimit => pass.refused(wait),
            // Overload that says for how long is a limit too.
            ChatErrorKind::Overloaded if wait.is_some() => pass.refused(wait),
            _ => {}
        }
    }
}
