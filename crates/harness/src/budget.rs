//! What the models of a run and of its trials may cost.

use std::sync::atomic::{AtomicU64, Ordering};

use formats::run::{BudgetSummary, TrialSummary};
use llm_client::{Budget, Model, Models};

use crate::run::RunBudget;

/// The budget of a run, from which those of its trials come.
#[derive(Debug)]
pub(crate) struct Budgets {
    limits: RunBudget,
    run: Budget,
    not_begun: AtomicU64,
}

impl Budgets {
    pub(crate) fn new(limits: RunBudget) -> Self {
        Self {
            limits,
            run: Budget::new("run", limits.run),
            not_begun: AtomicU64::new(0),
        }
    }

    /// Counts a trial of an earlier part of the run.
    pub(crate) fn count(&self, kept: &TrialSummary) {
        let tokens = kept.prompt_tokens.saturating_add(kept.completion_tokens);
        self.run.count(kept.cost_usd.unwrap_or_default(), tokens);
    }

    /// Whether no further trial may begin; it is asked once for each.
    pub(crate) fn stops(&self) -> bool {
        let stops = self.run.spent().refused > 0;
        if stops {
            self.not_begun.fetch_add(1, Ordering::Relaxed);
        }
        stops
    }

    /// What one trial is paid from.
    pub(crate) fn of_trial(&self) -> TrialBudget {
        if self.limits == RunBudget::default() {
            return TrialBudget::default();
        }
        let trial = Budget::new("trial", self.limits.trial);
        TrialBudget(vec![self.run.clone(), trial])
    }

    /// How it stands, if anything is limited.
    pub(crate) fn summary(&self) -> Option<BudgetSummary> {
        if self.limits == RunBudget::default() {
            return None;
        }
        let spent = self.run.spent();
        Some(BudgetSummary {
            max_cost_usd: self.limits.run.cost_usd,
            max_tokens: self.limits.run.tokens,
            max_cost_usd_per_trial: self.limits.trial.cost_usd,
            max_tokens_per_trial: self.limits.trial.tokens,
            spent_usd: spent.cost_usd,
            spent_tokens: spent.tokens,
            refused_calls: spent.refused,
            trials_not_begun: self.not_begun.load(Ordering::Relaxed),
        })
    }
}

/// What one trial is paid from: the run's budget and its own, if one of them is limited.
#[derive(Debug, Default)]
pub(crate) struct TrialBudget(Vec<Budget>);

impl TrialBudget {
    pub(crate) fn model(&self, model: &Model) -> Model {
        let add = |model: Model, budget: &Budget| model.with_budget(budget.clone());
        self.0.iter().fold(model.clone(), add)
    }

    pub(crate) fn models(&self, models: &Models) -> Models {
        let add = |models: Models, budget: &Budget| models.with_budget(budget.clone());
        self.0.iter().fold(models.clone(), add)
    }
}
