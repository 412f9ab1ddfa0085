//! What a run may use, and what the model is told about it (`spec/agents.md` §11.4).

use formats::Object;
use formats::chat::Message;
use formats::owner::{Failure, Owner};
use serde_json::json;

use super::config::{AccountingMode, LoopAgentConfig};
use super::cost::Rates;
use crate::run::{Run, Turn};

/// The account of one run.
pub(super) struct Account {
    mode: AccountingMode,
    max_steps: u64,
    turn_warnings: bool,
    token_budget: u64,
    cost: Option<Cost>,
}

/// The account in dollars.
struct Cost {
    rates: Rates,
    budget: f64,
    spent: f64,
    unpriced_calls: u64,
}

/// What was said before a step.
pub(super) enum Notice {
    /// The run goes on.
    Going,
    /// This is the last step; without an answer the run ends with this failure.
    Final(Failure),
}

impl Cost {
    /// The account with what an earlier process of the run spent.
    fn open(config: &LoopAgentConfig, run: &Run) -> Self {
        let mut cost = Self {
            rates: Rates::new(config, run.model().price()),
            budget: config.effective_cost_budget(),
            spent: 0.0,
            unpriced_calls: 0,
        };
        for call in &run.earlier.calls {
            match cost.rates.price(call.cost_usd, call.usage.as_ref()) {
                Some(usd) => cost.spent += usd,
                None => cost.unpriced_calls += 1,
            }
        }
        cost
    }
}

impl Account {
    pub(super) fn open(config: &LoopAgentConfig, run: &mut Run) -> Self {
        let mode = config.mode();
        let account = Self {
            mode,
            max_steps: config.max_steps,
            turn_warnings: config.turn_warnings_enabled,
            token_budget: config.effective_token_budget(),
            cost: (mode == AccountingMode::CostAccounting).then(|| Cost::open(config, run)),
        };
        account.publish(run);
        account
    }

    /// The keys of the `usage` object that only this agent has.
    fn publish(&self, run: &mut Run) {
        run.set_usage("accounting_mode", self.mode.as_str());
        if self.token_budget > 0 {
            run.set_usage("token_budget", self.token_budget);
            run.set_usage("tokens_spent", run.tokens_spent());
        }
        if let Some(cost) = &self.cost {
            run.set_usage("cost_rate_overrides", cost.rates.overrides().clone());
            run.set_usage("cost_usd_spent", cost.spent);
            run.set_usage("cost_budget_usd", cost.budget);
            run.set_usage("cost_unpriced_calls", cost.unpriced_calls);
        }
    }

    /// Counts a reply.
    pub(super) fn count(&mut self, turn: &Turn, run: &mut Run) {
        if let Some(cost) = &mut self.cost {
            let details = match cost.rates.price(turn.cost_usd, turn.usage.as_ref()) {
                Some(usd) => {
                    cost.spent += usd;
                    json!({"kind": "step_cost", "call_cost_usd": usd,
                           "cumulative_cost_usd": cost.spent})
                }
                None => {
                    cost.unpriced_calls += 1;
                    run.warn("the cost of a call is not known: the provider reported no usage");
                    json!({"kind": "step_cost", "unpriced_calls": cost.unpriced_calls})
                }
            };
            run.report_budget(object(details));
        }
        self.publish(run);
    }

    /// Tells the model before step `step` (counted from 0) what is left, unless that was `said`.
    pub(super) fn notice(&self, step: u64, run: &mut Run, said: bool) -> Notice {
        let remaining = self.max_steps - step;
        let mut details = object(json!({"kind": "turn_warning", "remaining_turns": remaining}));
        let mut parts = Vec::new();
        if self.turn_warnings {
            parts.push(turns_left(remaining));
        }
        let mut exhausted = None;
        if self.token_budget > 0 {
            let spent = run.tokens_spent();
            let left = self.token_budget.saturating_sub(spent);
            details.insert("remaining_tokens".to_owned(), left.into());
            if left == 0 {
                exhausted = Some(out_of_tokens(self.token_budget, spent));
            } else {
                parts.push(format!(
                    "{left} of {} tokens of the budget are left.",
                    self.token_budget
                ));
            }
        }
        if let Some(cost) = self.cost.as_ref().filter(|cost| cost.budget > 0.0) {
            let left = (cost.budget - cost.spent).max(0.0);
            details.insert("remaining_cost_usd".to_owned(), left.into());
            if cost.spent >= cost.budget {
                exhausted = Some(out_of_dollars(cost.budget, cost.spent));
            } else {
                parts.push(format!(
                    "${left:.4} of the ${:.4} budget are left.",
                    cost.budget
                ));
            }
        }
        let (text, notice) = match exhausted {
            Some((text, failure)) => (text, Notice::Final(failure)),
            None => (parts.join(" "), Notice::Going),
        };
        if !text.is_empty() && !said {
            run.report_budget(details);
            run.say(Message::user(text));
        }
        notice
    }
}

fn turns_left(remaining: u64) -> String {
    match remaining {
        1 => "This is the last step before the run ends: give your final answer now.".to_owned(),
        more => format!(
            "{more} steps are left before the run ends; give your final answer before they are used up."
        ),
    }
}

fn out_of_tokens(budget: u64, spent: u64) -> (String, Failure) {
    (
        format!(
            "The token budget is used up: {spent} of {budget} tokens are spent. This is the final turn: give your answer now."
        ),
        Failure::new(
            Owner::Model,
            "token_budget",
            format!("no answer within the budget of {budget} tokens ({spent} spent)"),
        ),
    )
}

fn out_of_dollars(budget: f64, spent: f64) -> (String, Failure) {
    (
        format!(
            "The cost budget is used up: ${spent:.4} of ${budget:.4} are spent. This is the final turn: give your answer now."
        ),
        Failure::new(
            Owner::Model,
            "cost_budget",
            format!("no answer within the budget of ${budget:.4} (${spent:.4} spent)"),
        ),
    )
}

/// The object that a `json!` literal of braces always is.
fn object(value: serde_json::Value) -> Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => Object::new(),
    }
}
