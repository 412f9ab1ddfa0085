//! One grading run: verifiers by dependency level, then the score.

use std::collections::HashMap;
use std::sync::Arc;

use formats::Object;
use formats::grades::{
    Coverage, Grades, GradingStatus, JudgeUsage, ScoringResults, VerifierResult, VerifierStatus,
};
use formats::task::{EvalConfig, ScoringConfig, Verifier};
use llm_client::Models;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::{ErrorKind, EvalError};
use crate::eval::{AnyEval, Case, Verdict, result_of};
use crate::input::{GradeOptions, GradingInput};
use crate::registry::Registry;
use crate::scoring::{self, AnyScoring};
use crate::validate::{config_of, unknown_scoring};
use crate::{order, problem, skip};
use evidence::Evidence;
use judge::{Judge, JudgeError};

/// Grades one trajectory with the default [`GradeOptions`]. See [`grade_with`].
pub async fn grade(
    registry: &Registry,
    input: GradingInput,
    models: &Models,
    cancel: CancellationToken,
    on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
) -> Grades {
    let options = GradeOptions::default();
    Box::pin(grade_with(
        registry, input, models, options, cancel, on_result,
    ))
    .await
}

/// Grades one trajectory.
///
/// `on_result` hears of each result as soon as it is there, in the order in which they come; the
/// grades hold them in the order of the verifiers. A verifier that cannot be judged gives a result
/// with status `error`, and there is no score then; the others keep theirs. Ending by `cancel`
/// keeps what is finished. The status of the trajectory makes no difference.
///
/// Plans that cannot work as a whole (duplicate ids, a dependency that is unknown or circular, an
/// unknown scoring method) end at once, before anything is read or asked. Use
/// [`validate`](crate::validate) to hear of all problems beforehand.
///
/// With [`GradeOptions::only`], results of the former grades that are no errors are kept (of
/// verifiers with the same version), and `judge_usage` goes on from the former one.
pub async fn grade_with(
    registry: &Registry,
    input: GradingInput,
    models: &Models,
    options: GradeOptions,
    cancel: CancellationToken,
    on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
) -> Grades {
    let Some(method) = registry.scoring(&input.scoring.scoring_defn_id) else {
        let id = &input.scoring.scoring_defn_id;
        let rule = unknown_scoring(registry);
        return refused(&input, &format!("`scoring_defn_id`: {rule}, got {id:?}"));
    };
    let levels = match order::levels(&input.verifiers) {
        Ok(levels) => levels,
        Err(problems) => return refused(&input, &sentences(&problems)),
    };
    let mut run = Run::new(registry, input, models, options);
    run.skip(on_result);
    let mut end = End::Done;
    for level in levels {
        let todo = run.todo(level, on_result);
        end = Box::pin(run.level(&todo, &cancel, on_result)).await;
        if end != End::Done {
            break;
        }
    }
    if end == End::TimeUp {
        run.time_up(on_result);
    }
    run.finish(method.as_ref(), end == End::Cancelled)
}

/// How a level ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Cancelled,
    TimeUp,
}

fn sentences(problems: &[problem::Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

/// The grades of a plan that cannot work as a whole.
fn refused(input: &GradingInput, error: &str) -> Grades {
    Grades {
        grading_run_id: input.grading_run_id.clone(),
        grading_run_status: GradingStatus::Error,
        verifier_results: Vec::new(),
        scoring_results: no_score(error),
        coverage: Some(Coverage {
            total: input.verifiers.len(),
            ..Coverage::default()
        }),
        judge_usage: Some(JudgeUsage::default()),
        judge_agreement: None,
    }
}

fn no_score(error: &str) -> ScoringResults {
    let mut values = Object::new();
    values.insert("error".to_owned(), error.into());
    ScoringResults {
        final_score: 0.0,
        scoring_method_result_values: values,
    }
}

struct Run<'a> {
    registry: &'a Registry,
    grading_run_id: String,
    verifiers: Vec<Verifier>,
    eval_configs: Vec<EvalConfig>,
    scoring: ScoringConfig,
    options: GradeOptions,
    evidence: Arc<Evidence>,
    judge: Result<Judge, JudgeError>,
    slots: Arc<Semaphore>,
    /// One place for each verifier, in the order of the input.
    results: Vec<Option<VerifierResult>>,
    usage: JudgeUsage,
    /// When the time for all verifiers is up.
    deadline: Option<tokio::time::Instant>,
}

impl<'a> Run<'a> {
    fn new(
        registry: &'a Registry,
        input: GradingInput,
        models: &Models,
        mut options: GradeOptions,
    ) -> Self {
        let former = options.only.take();
        let usage = former
            .as_ref()
            .and_then(|grades| grades.judge_usage)
            .unwrap_or_default();
        let mut kept: HashMap<String, VerifierResult> = former
            .into_iter()
            .flat_map(|grades| grades.verifier_results)
            // What was left out may have become possible.
            .filter(|result| result.status == VerifierStatus::Ok && !result.skipped())
            .map(|result| (result.verifier_id.clone(), result))
            .collect();
        let results = input
            .verifiers
            .iter()
            .map(|verifier| {
                kept.remove(&verifier.verifier_id)
                    .filter(|result| result.verifier_version == verifier.verifier_version)
            })
            .collect();
        let mut evidence = options.evidence.clone();
        let pages = input.settings.as_ref().and_then(|s| s.llm_judge_pdf_pages);
        if let Some(pages) = pages {
            evidence.extract.page_pictures = usize::try_from(pages).unwrap_or(usize::MAX);
        }
        let programs = &mut evidence.extract;
        programs.program_path.clone_from(&options.program_path);
        programs.isolation = options.isolation;
        let judge = Judge::resolve(
            input.settings.as_ref(),
            models,
            &input.trajectory_id,
            &options.judge,
        );
        Self {
            registry,
            grading_run_id: input.grading_run_id,
            verifiers: input.verifiers,
            eval_configs: input.eval_configs,
            scoring: input.scoring,
            // Moved, not copied: a trajectory may hold hundreds of megabytes of pictures.
            evidence: Arc::new(
                Evidence::new(
                    input.trajectory,
                    input.initial_snapshot,
                    input.final_snapshot,
                    evidence,
                )
                .with_goldens(input.golden_snapshots),
            ),
            judge,
            deadline: options
                .total_timeout
                .map(|limit| tokio::time::Instant::now() + limit),
            slots: Arc::new(Semaphore::new(options.concurrency.max(1))),
            options,
            results,
            usage,
        }
    }

    /// Leaves out what cannot be judged without a transcript.
    fn skip(&mut self, on_result: &(dyn Fn(&VerifierResult) + Send + Sync)) {
        let skipped = if self.options.golden_state {
            skip::without_answer(self.registry, &self.verifiers, &self.eval_configs)
        } else if self.options.skip_trajectory_verifiers {
            skip::without_transcript(self.registry, &self.verifiers, &self.eval_configs)
        } else {
            return;
        };
        for (at, reason) in skipped {
            let result = skip::result(&self.verifiers[at], &reason);
            on_result(&result);
            self.results[at] = Some(result);
        }
    }

    /// The verifiers of `level` that are still to be judged.
    fn todo(
        &mut self,
        level: Vec<usize>,
        on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
    ) -> Vec<usize> {
        let mut todo = Vec::new();
        for at in level {
            if self.results[at].is_some() {
                continue;
            }
            let dependencies = self.dependencies(&self.verifiers[at]);
            match skip::after_failure(&dependencies).filter(|_| self.options.only_after_passed) {
                Some(reason) => {
                    let result = skip::result(&self.verifiers[at], &reason);
                    on_result(&result);
                    self.results[at] = Some(result);
                }
                None => todo.push(at),
            }
        }
        todo
    }

    /// Makes an error of each verifier that was not judged in time.
    fn time_up(&mut self, on_result: &(dyn Fn(&VerifierResult) + Send + Sync)) {
        let limit = self.options.total_timeout.unwrap_or_default().as_secs_f64();
        for at in 0..self.verifiers.len() {
            if self.results[at].is_none() {
                let text = format!("not judged within {limit} s (limit `total_timeout`)");
                let error = EvalError::new(ErrorKind::Timeout, text);
                self.keep(at, Err(error), None, on_result);
            }
        }
    }

    /// Judges the verifiers at `todo` at the same time.
    async fn level(
        &mut self,
        todo: &[usize],
        cancel: &CancellationToken,
        on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
    ) -> End {
        let mut running = JoinSet::new();
        let mut meters = HashMap::new();
        let mut at_of = HashMap::new();
        for at in todo {
            match self.case(*at) {
                Ok((eval, case)) => {
                    if let Ok(judge) = &case.judge {
                        meters.insert(*at, judge.clone());
                    }
                    let slots = Arc::clone(&self.slots);
                    let own_slots = eval.slots();
                    let limit = self.options.verifier_timeout;
                    let task = running.spawn(async move {
                        let ended = |_| EvalError::new(ErrorKind::Cancelled, "grading has ended");
                        // First the slot of its kind: one that waits for it keeps no other out.
                        let _own = match own_slots {
                            Some(slots) => Some(slots.acquire_owned().await.map_err(ended)?),
                            None => None,
                        };
                        let _slot = slots.acquire_owned().await.map_err(ended)?;
                        let seconds = limit.as_secs_f64();
                        match tokio::time::timeout(limit, eval.run(case)).await {
                            Ok(outcome) => outcome,
                            Err(_) => Err(EvalError::new(
                                ErrorKind::Timeout,
                                format!("not judged within {seconds} s (limit `verifier_timeout`)"),
                            )),
                        }
                    });
                    at_of.insert(task.id(), *at);
                }
                Err(error) => self.keep(*at, Err(error), None, on_result),
            }
        }
        let deadline = self.deadline;
        let time_up = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_up);
        let mut end = if cancel.is_cancelled() {
            End::Cancelled
        } else {
            End::Done
        };
        while end == End::Done {
            let joined = tokio::select! {
                biased;
                joined = running.join_next_with_id() => joined,
                () = cancel.cancelled() => {
                    end = End::Cancelled;
                    continue;
                }
                () = &mut time_up => {
                    end = End::TimeUp;
                    continue;
                }
            };
            let Some(joined) = joined else { break };
            self.joined(joined, &at_of, &meters, on_result);
        }
        if end != End::Done {
            running.abort_all();
            // What was finished at that moment still counts.
            while let Some(joined) = running.join_next_with_id().await {
                self.joined(joined, &at_of, &meters, on_result);
            }
        }
        for judge in meters.values() {
            self.usage = judge::sum(self.usage, judge.usage());
        }
        end
    }

    /// Takes the outcome of one task.
    fn joined(
        &mut self,
        joined: Result<(tokio::task::Id, Result<Verdict, EvalError>), tokio::task::JoinError>,
        at_of: &HashMap<tokio::task::Id, usize>,
        meters: &HashMap<usize, Judge>,
        on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
    ) {
        let (task, outcome) = match joined {
            Ok((task, outcome)) => (task, outcome),
            // Ended by us: there is no result.
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                let text = format!("the eval failed in a way it should not: {error}");
                (error.id(), Err(EvalError::new(ErrorKind::Internal, text)))
            }
        };
        if let Some(at) = at_of.get(&task) {
            self.keep(*at, outcome, meters.get(at), on_result);
        }
    }

    /// The eval of the verifier at `at`, and what it looks at.
    fn case(&self, at: usize) -> Result<(Arc<dyn AnyEval>, Case), EvalError> {
        let verifier = &self.verifiers[at];
        let config = config_of(verifier, &self.eval_configs).ok_or_else(|| {
            let id = &verifier.eval_config_id;
            EvalError::config(format!(
                "`eval_config_id`: no eval config has this id, got {id:?}"
            ))
        })?;
        let eval = self.registry.eval(&config.eval_defn_id).ok_or_else(|| {
            let id = &config.eval_defn_id;
            EvalError::config(format!("`eval_defn_id`: unknown eval, got {id:?}"))
        })?;
        let case = Case {
            verifier: verifier.clone(),
            eval_config: config.clone(),
            evidence: Arc::clone(&self.evidence),
            dependencies: self.dependencies(verifier),
            judge: self
                .judge
                .as_ref()
                .map(Judge::metered)
                .map_err(|error| EvalError::from(error.clone())),
            task_folder: self.options.task_folder.clone(),
            program_path: self.options.program_path.clone(),
            isolation: self.options.isolation,
        };
        Ok((eval, case))
    }

    fn dependencies(&self, verifier: &Verifier) -> Vec<VerifierResult> {
        let ids = verifier.verifier_dependencies.iter().flatten();
        ids.filter_map(|id| {
            let mut results = self.results.iter().flatten();
            results.find(|result| result.verifier_id == *id).cloned()
        })
        .collect()
    }

    fn keep(
        &mut self,
        at: usize,
        outcome: Result<Verdict, EvalError>,
        judge: Option<&Judge>,
        on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
    ) {
        let verifier = &self.verifiers[at];
        let mut result = result_of(verifier, outcome);
        if let Some(judge) = judge {
            let usage = judge.usage();
            if usage.calls + usage.cached_answers > 0 {
                let values = &mut result.verifier_result_values;
                let models: Vec<&str> = judge.model_names().collect();
                values.insert("judge_model".to_owned(), models.join(", ").into());
                values.insert("judge_usage".to_owned(), json!(usage));
            }
        }
        tracing::debug!(verifier = %result.verifier_id, score = result.score, status = ?result.status, "judged");
        on_result(&result);
        self.results[at] = Some(result);
    }

    fn finish(self, method: &dyn AnyScoring, cancelled: bool) -> Grades {
        let results: Vec<VerifierResult> = self.results.into_iter().flatten().collect();
        let coverage = Coverage {
            total: self.verifiers.len(),
            ..Coverage::of(&results)
        };
        let judge_agreement = judge::agreement(results.iter());
        let config = &self.scoring.scoring_config_values;
        let (grading_run_status, scoring_results) = if cancelled {
            let text = format!(
                "grading was cancelled after {} of {} verifiers",
                results.len(),
                coverage.total
            );
            (GradingStatus::Cancelled, no_score(&text))
        } else {
            let on_error = self.options.on_verifier_error;
            match scoring::score(method, config, &self.verifiers, &results, on_error) {
                Ok(scored) => (GradingStatus::Completed, scored),
                Err(error) => (GradingStatus::Error, no_score(&error)),
            }
        };
        Grades {
            grading_run_id: self.grading_run_id,
            grading_run_status,
            verifier_results: results,
            scoring_results,
            coverage: Some(coverage),
            judge_usage: Some(self.usage),
            judge_agreement,
        }
    }
}
