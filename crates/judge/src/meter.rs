//! What judge calls use, and the limit on what they may cost.

use std::sync::{Mutex, PoisonError};

use formats::grades::JudgeUsage;
use llm_client::{ChatResponse, Price};

use crate::error::{JudgeError, JudgeErrorKind};

/// What a call counts for the budget where its price is not known (§3.8), in US dollars for a
/// million tokens. It never stands in results.
const ASSUMED: Price = Price::new(10.0, 30.0);

/// The account of one verifier.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<JudgeUsage>);

impl Meter {
    pub(crate) fn usage(&self) -> JudgeUsage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cached(&self) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.cached_answers += 1;
    }

    pub(crate) fn add(&self, response: &ChatResponse) {
        let mut meter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        meter.calls += 1;
        if let Some(usage) = &response.usage {
            meter.prompt_tokens += usage.prompt_tokens;
            meter.completion_tokens += usage.completion_tokens;
        }
        match response.cost_usd {
            Some(cost) => meter.cost_usd += cost,
            None => meter.unpriced_calls += 1,
        }
    }
}

/// The money of one grading run.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Option<f64>,
    spent: Mutex<f64>,
}

impl Budget {
    pub(crate) const fn new(limit: Option<f64>) -> Self {
        Self {
            limit,
            spent: Mutex::new(0.0),
        }
    }

    /// Whether there is money for another call. Calls in flight are not reckoned with, so the
    /// limit may be crossed by them.
    pub(crate) fn check(&self) -> Result<(), JudgeError> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent < limit {
            return Ok(());
        }
        let text = format!(
            "the budget for judging is used up: spent {spent:.6} US dollars, limit {limit} (`max_judge_usd`)"
        );
        Err(JudgeError::new(JudgeErrorKind::Budget, text))
    }

    pub(crate) fn add(&self, response: &ChatResponse) {
        if self.limit.is_none() {
            return;
        }
        let assumed = || ASSUMED.cost(response.usage.as_ref()?);
        if let Some(cost) = response.cost_usd.or_else(assumed) {
            *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += cost;
        }
    }
}

/// The sum of two accounts.
#[must_use]
pub fn sum(a: JudgeUsage, b: JudgeUsage) -> JudgeUsage {
    JudgeUsage {
        calls: a.calls + b.calls,
        prompt_tokens: a.prompt_tokens + b.prompt_tokens,
        completion_tokens: a.completion_tokens + b.completion_tokens,
        cost_usd: a.cost_usd + b.cost_usd,
        unpriced_calls: a.unpriced_calls + b.unpriced_calls,
        cached_answers: a.cached_answers + b.cached_answers,
    }
}
