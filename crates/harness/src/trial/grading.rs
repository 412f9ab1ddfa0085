//! Grading a trial that just ended.

use std::time::Instant;

use formats::run::TrialState;
use formats::trajectory::Trajectory;

use super::{Stopped, Trial};
use crate::grade;
use crate::progress::{News, Stage};

impl Trial<'_> {
    /// Judges the verifiers of the task and leaves `grades.json`.
    pub(super) async fn grade(&mut self, trajectory: Trajectory) -> Result<(), Stopped> {
        self.stage(Stage::Grading);
        let started = Instant::now();
        let grades = grade::grade_folder(
            self.context.services,
            self.plan,
            &self.budget.models(&self.plan.models),
            &self.folder,
            trajectory,
            None,
            self.context.cancel,
            &|result| self.context.progress.news(self.id, News::Verdict(result)),
        )
        .await?;
        self.seconds.grading = started.elapsed().as_secs_f64();
        if let Some(usage) = grades.judge_usage {
            self.judge_cost = (usage.unpriced_calls == 0).then_some(usage.cost_usd);
        }
        grade::apply(&grades, &mut self.outcome);
        self.record(TrialState::Graded)?;
        Ok(())
    }
}
