//! Budgets that stop: no call is sent whose worst case would cross one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formats::Object;
use serde_json::Value;
use tokio::sync::Notify;

use llm_wire::{ChatRequest, ChatResponse, Price, known_model, tokens};

/// What a call counts where the price of its model is not known (`spec/llm.md` §12.1), in US dollars
/// for a million tokens. It never stands in results.
const ASSUMED: Price = Price::new(10.0, 30.0);

/// Longest reply of a model that is not in the table, in tokens, where the request sets no limit.
const ASSUMED_REPLY: u64 = 4096;

/// Parameters that limit the length of a reply.
const REPLY_LIMITS: &[&str] = &["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// What may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens of requests and replies together.
    pub tokens: Option<u64>,
}

impl BudgetLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.cost_usd.is_none() && self.tokens.is_none()
    }
}

/// What was spent of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// US dollars; calls of unknown price count as 10 dollars per million tokens of requests and 30
    /// of replies, calls of unknown length as their worst case.
    pub cost_usd: f64,
    /// Tokens of requests and replies.
    pub tokens: u64,
    /// Calls that were refused.
    pub refused: u64,
}

/// An amount of money and tokens that several models spend together. Cloning is cheap, and clones
/// are the same budget.
///
/// Before an attempt its worst case is set aside: the estimated tokens of the request, and the
/// longest reply that the request or the model allows. An attempt for which there is room only once
/// others have ended waits for them; one for which there is no room at all is refused with
/// [`ChatErrorKind::Budget`](crate::ChatErrorKind::Budget). What a failed attempt costs is not
/// known and not counted.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whose it is, such as `run`.
    name: String,
    limits: BudgetLimits,
    state: Mutex<State>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    spent: Spent,
    set_aside: Amount,
}

/// Money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) cost_usd: f64,
    pub(crate) tokens: u64,
}

/// A call that a budget has no room for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the budget of the {name} has no room for this call: {reason}")]
pub(crate) struct NoRoom {
    name: String,
    reason: String,
}

impl Budget {
    /// A budget of `name` (such as `run` or `trial`), of which nothing is spent.
    pub fn new(name: impl Into<String>, limits: BudgetLimits) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            limits,
            state: Mutex::default(),
            settled: Notify::new(),
        }))
    }

    /// What may be spent.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.0.limits
    }

    /// What was spent so far, calls in flight left out.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.0.state().spent
    }

    /// Counts what was spent before, such as by the part of a run that is not repeated.
    pub fn count(&self, cost_usd: f64, tokens: u64) {
        self.0.state().add(Amount { cost_usd, tokens });
    }

    /// Sets `worst` aside, as soon as there is room for it. The second value says whether it had to wait.
    pub(crate) async fn set_aside(&self, worst: Amount) -> Result<(SetAside, bool), NoRoom> {
        let mut waited = false;
        loop {
            // Enlisted before looking, or the last one to settle in between would be missed.
            let settled = self.0.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if self.0.try_set_aside(worst)? {
                let set_aside = SetAside {
                    budget: self.clone(),
                    worst,
                };
                return Ok((set_aside, waited));
            }
            waited = true;
            settled.await;
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for `worst` now, which is then set aside; an error where there will
    /// never be.
    fn try_set_aside(&self, worst: Amount) -> Result<bool, NoRoom> {
        let mut state = self.state();
        let State { spent, set_aside } = &*state;
        let mut room = true;
        let mut reason = None;
        if let Some(limit) = self.limits.cost_usd {
            let total = spent.cost_usd + worst.cost_usd;
            if total > limit {
                reason = Some(format!(
                    "{:.6} US dollars are spent, it may cost {:.6}, the limit is {limit}",
                    spent.cost_usd, worst.cost_usd
                ));
            }
            room &= total + set_aside.cost_usd <= limit;
        }
        if let Some(limit) = self.limits.tokens {
            let total = spent.tokens.saturating_add(worst.tokens);
            if total > limit {
                reason = Some(format!(
                    "{} tokens are spent, it may take {}, the limit is {limit}",
                    spent.tokens, worst.tokens
                ));
            }
            room &= total.saturating_add(set_aside.tokens) <= limit;
        }
        if let Some(reason) = reason {
            state.spent.refused += 1;
            return Err(NoRoom {
                name: self.name.clone(),
                reason,
            });
        }
        if room {
            state.set_aside.cost_usd += worst.cost_usd;
            state.set_aside.tokens = state.set_aside.tokens.saturating_add(worst.tokens);
        }
        Ok(room)
    }
}

impl State {
    fn add(&mut self, amount: Amount) {
        self.spent.cost_usd += amount.cost_usd;
        self.spent.tokens = self.spent.tokens.saturating_add(amount.tokens);
    }
}

/// The worst case of a call in flight; given back when dropped.
#[derive(Debug)]
pub(crate) struct SetAside {
    budget: Budget,
    worst: Amount,
}

impl SetAside {
    /// The call cost `amount`; its worst case where that is not known.
    pub(crate) fn settle(self, amount: Option<Amount>) {
        self.budget.0.state().add(amount.unwrap_or(self.worst));
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        let mut state = self.budget.0.state();
        let rest = state.set_aside.cost_usd - self.worst.cost_usd;
        // Sums of fractions leave crumbs.
        state.set_aside.cost_usd = rest.max(0.0);
        state.set_aside.tokens = state.set_aside.tokens.saturating_sub(self.worst.tokens);
        drop(state);
        self.budget.0.settled.notify_waiters();
    }
}

/// The estimated tokens of `request`.
pub(crate) fn estimated_input(request: &ChatRequest<'_>) -> u64 {
    tokens::of_messages(request.messages) + tokens::of_tools(request.tools)
}

/// The limit on the reply's tokens that `extra_args` set.
pub(crate) fn reply_limit(extra_args: &Object) -> Option<u64> {
    REPLY_LIMITS
        .iter()
        .find_map(|name| extra_args.get(*name).and_then(Value::as_u64))
}

/// The most that an attempt at `request` can cost (`spec/llm.md` §12.3).
#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
pub(crate) fn worst_case(request: &ChatRequest<'_>, model: &str, price: Option<Price>) -> Amount {
    let input = estimated_input(request);
    let output = reply_limit(request.extra_args)
        .or_else(|| known_model(model).map(|known| known.max_output_tokens))
        .unwrap_or(ASSUMED_REPLY);
    let price = price.unwrap_or(ASSUMED);
    Amount {
        cost_usd: (input as f64 * price.input + output as f64 * price.output) / 1_000_000.0,
        tokens: input + output,
    }
}

/// What an answered call cost, if its tokens are known.
pub(crate) fn amount_of(response: &ChatResponse) -> Option<Amount> {
    let usage = response.usage.as_ref()?;
    let cost_usd = response.cost_usd.or_else(|| ASSUMED.cost(usage))?;
    Some(Amount {
        cost_usd,
        tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn dollars(cost_usd: f64) -> Amount {
        Amount {
            cost_usd,
            tokens: 0,
        }
    }

    fn budget(cost_usd: Option<f64>, tokens: Option<u64>) -> Budget {
        Budget::new("run", BudgetLimits { cost_usd, tokens })
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_those_in_flight_and_is_refused_only_by_what_is_spent() {
        let budget = budget(Some(1.0), None);
        let (first, waited) = budget.set_aside(dollars(0.75)).await.unwrap();
        assert!(!waited);
        let second = tokio::spawn({
            let budget = budget.clone();
            async move { budget.set_aside(dollars(0.5)).await }
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!second.is_finished(), "0.75 + 0.5 is more than 1");
        // It cost far less than its worst case: now there is room.
        first.settle(Some(dollars(0.25)));
        let (second, waited) = second.await.unwrap().unwrap();
        assert!(waited);
        second.settle(Some(dollars(0.5)));
        let error = budget.set_aside(dollars(0.5)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the budget of the run has no room for this call: 0.750000 US dollars are spent, it may cost \
             0.500000, the limit is 1"
        );
        // A cheaper one still fits, and a failed one costs nothing.
        drop(budget.set_aside(dollars(0.25)).await.unwrap());
        assert_eq!(budget.spent().cost_usd, 0.75);
        assert_eq!(budget.spent().refused, 1);
    }

    #[tokio::test]
    async fn tokens_are_limited_too_and_an_unknown_usage_counts_as_the_worst_case() {
        let budget = budget(None, Some(1000));
        let worst = Amount {
            cost_usd: 5.0,
            tokens: 600,
        };
        let (call, _) = budget.set_aside(worst).await.unwrap();
        call.settle(None);
        assert_eq!((budget.spent().tokens, budget.spent().cost_usd), (600, 5.0));
        let error = budget.set_aside(worst).await.unwrap_err().to_string();
        assert!(
            error.contains("600 tokens are spent, it may take 600, the limit is 1000"),
            "{error}"
        );
    }

    #[test]
    fn the_worst_case_is_the_longest_reply() {
        let messages = [formats::chat::Message::user("a".repeat(388))];
        let mut extra_args = Object::new();
        let mut worst = |args: &[(&str, u64)], model: &str, price| {
            extra_args = args
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect();
            let request = ChatRequest {
                messages: &messages,
                tools: &[],
                extra_args: &extra_args,
                timeout: Duration::from_secs(1),
                labels: crate::CallLabels::default(),
            };
            worst_case(&request, model, price)
        };
        // 97 tokens of text, 3 around the message, 3 around the request.
        let given = worst(
            &[("max_tokens", 1000)],
            "openai/gpt-4.1",
            Some(Price::new(2.0, 8.0)),
        );
        assert_eq!(given.tokens, 1103);
        assert!((given.cost_usd - (103.0 * 2.0 + 1000.0 * 8.0) / 1e6).abs() < 1e-12);
        let by_table = worst(&[], "openai/gpt-4.1", Some(Price::new(2.0, 8.0)));
        assert_eq!(by_table.tokens, 103 + 32768);
        let unknown = worst(&[], "ollama/mine", None);
        assert_eq!(unknown.tokens, 103 + 4096);
        assert!((unknown.cost_usd - (103.0 * 10.0 + 4096.0 * 30.0) / 1e6).abs() < 1e-12);
    }
}
