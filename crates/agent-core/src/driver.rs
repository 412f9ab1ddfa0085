//! A whole run: before, during, after.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use formats::Object;
use formats::chat::Message;
use formats::event::EventKind;
use formats::owner::{Failure, Owner};
use formats::trajectory::{AgentStatus, Trajectory};
use futures::FutureExt;
use llm_client::tokens;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::checkpoint::Restored;
use crate::events::Recorder;
use crate::images::ImagePolicy;
use crate::input::RunInput;
use crate::registry::{AgentConfigError, Agents, ResolvedAgent};
use crate::run::{Answer, ContextSize, Run, RunContext, status_of};
use crate::spans;
use crate::subagent::Surroundings;
use crate::tools::{ToolSources, Toolbox};

/// Runs an agent to its end.
///
/// Whatever happens after the start, time limits, cancellation, failures and panics of the agent
/// included, is in [`Trajectory::status`] and [`Trajectory::error`], beside everything that was
/// said and done until then.
///
/// # Errors
/// [`AgentConfigError`] for what is found before anything is done.
pub async fn run(agents: &Agents, mut input: RunInput) -> Result<Trajectory, AgentConfigError> {
    let agent = agents.resolve(&input.config)?;
    let messages = read_messages(&input)?;
    for endpoint in &input.tools.endpoints {
        endpoint.check()?;
    }
    let (recorder, start) = match begin(&agent, messages, &mut input)? {
        Beginning::At(begun) => *begun,
        Beginning::Over(trajectory) => return Ok(*trajectory),
    };
    for warning in &agent.warnings {
        recorder.warn(warning.as_str());
    }
    let limits = Limits::start(input.limit, agent.timeout, input.cancel);

    let surroundings = Surroundings {
        agents: agents.clone(),
        sources: input.tools.clone(),
        cancel: limits.cancel.clone(),
    };
    let sources = if agent.uses_tools {
        input.tools
    } else {
        ToolSources::new()
    };
    let toolbox = match limits.hold(Box::pin(Toolbox::open(sources))).await {
        Ok(Ok(toolbox)) => toolbox,
        Ok(Err(failure)) | Err(failure) => {
            return Ok(without_tools(&recorder, start, failure));
        }
    };
    let tools = toolbox.definitions();
    recorder.emit(EventKind::Configured {
        tools: tools
            .iter()
            .map(|tool| tool.function.name.clone())
            .collect(),
    });
    for warning in &toolbox.warnings {
        recorder.warn(warning.as_str());
    }

    let mut size = ContextSize::default();
    size.add(tokens::of_tools(&tools));
    size.add(tokens::of_messages(start.conversation.context()));
    let mut run = Run {
        model: input.model,
        context: RunContext {
            trajectory_id: input.trajectory_id,
            extra_args: input.extra_args,
            parent_trajectory_output: input.parent_trajectory_output,
            custom_args: input.custom_args,
            task_custom_fields: input.task_custom_fields,
            inner_agent_config: input.inner_agent_config,
        },
        recorder: Arc::new(recorder),
        conversation: start.conversation,
        usage: start.usage,
        toolbox,
        size,
        deferred: Vec::new(),
        finished: Mutex::default(),
        unusable: 0,
        unanswered: 0,
        earlier: start.earlier,
        pictures: ImagePolicy::default(),
        between_steps: input.between_steps,
        surroundings,
    };
    run.settle_lost_calls();
    let worked_before = run.earlier.worked;
    let started = Instant::now();
    let span = spans::invoke_agent(agent.id, &run.context.trajectory_id, &run.model);
    let driving = limits.hold(drive(&agent, &mut run));
    let outcome = match driving.instrument(span.clone()).await {
        Ok(outcome) => outcome,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = &outcome {
        spans::failed(&span, &failure.kind);
    }
    let elapsed = worked_before + started.elapsed();
    let trajectory = Box::pin(finish(run, outcome, elapsed)).await;
    Ok(trajectory)
}

/// Where a run begins.
enum Beginning {
    /// With the task, or where an earlier run ended.
    At(Box<(Recorder, Restored)>),
    /// The earlier run came to its end.
    Over(Box<Trajectory>),
}

/// Opens the record, with what an earlier run left if there was one.
fn begin(
    agent: &ResolvedAgent,
    messages: Vec<Message>,
    input: &mut RunInput,
) -> Result<Beginning, AgentConfigError> {
    let observer = Arc::clone(&input.observer);
    let model = input.model.name().to_owned();
    let Some(checkpoint) = input.checkpoint.take() else {
        let recorder = Recorder::new(observer);
        recorder.emit(EventKind::RunStarted {
            trajectory_id: input.trajectory_id.clone(),
            agent_config_id: agent.id.to_owned(),
            model,
            messages: messages.clone(),
        });
        return Ok(Beginning::At(Box::new((
            recorder,
            Restored::fresh(messages),
        ))));
    };
    checkpoint
        .fits(agent.id, &messages)
        .map_err(AgentConfigError::Continue)?;
    if checkpoint.is_complete() {
        return Ok(Beginning::Over(Box::new(checkpoint.into_trajectory())));
    }
    let recorder = Recorder::go_on(
        observer,
        checkpoint.next_seq(),
        checkpoint.steps(),
        checkpoint.elapsed(),
    );
    recorder.emit(EventKind::RunContinued { model });
    Ok(Beginning::At(Box::new((recorder, checkpoint.restore()))))
}

async fn drive(agent: &ResolvedAgent, run: &mut Run) -> Result<Answer, Failure> {
    match AssertUnwindSafe(agent.drive(run)).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(Failure::new(
                Owner::Infrastructure,
                "agent_panicked",
                format!("the agent `{}` panicked: {text}", agent.id),
            ))
        }
    }
}

/// Closes the record and the sessions.
async fn finish(mut run: Run, outcome: Result<Answer, Failure>, elapsed: Duration) -> Trajectory {
    let (status, failure) = match &outcome {
        Ok(answer) => {
            run.usage.add_answer(&answer.text);
            run.recorder.emit(EventKind::FinalAnswer {
                answer: answer.text.clone(),
                answer_status: answer.status.clone(),
            });
            (AgentStatus::Completed, None)
        }
        Err(failure) => {
            run.close_calls(&format!("No result: the run ended ({}).", failure.message));
            tracing::info!(owner = %failure.owner, kind = failure.kind, "{failure}");
            (status_of(failure), Some(failure.clone()))
        }
    };
    run.recorder.emit(EventKind::RunEnded {
        status,
        failure: failure.clone(),
    });
    run.toolbox.close().await;
    let answer = outcome.ok();
    Trajectory {
        messages: run.conversation.into_record(),
        output: output_with(answer.as_ref().and_then(|answer| answer.status.as_deref())),
        status,
        time_elapsed: elapsed.as_secs_f64(),
        usage: Some(run.usage.to_object()),
        final_answer: answer.map(|answer| answer.text),
        error: failure,
        extra: Object::new(),
    }
}

/// The `output` of a trajectory whose agent says something about its answer.
pub(crate) fn output_with(answer_status: Option<&str>) -> Option<Object> {
    let status = answer_status?.to_owned();
    Some(Object::from_iter([(
        "final_answer_status".to_owned(),
        status.into(),
    )]))
}

/// The end of a run whose tools could not be had: the clock of the agent never started.
fn without_tools(recorder: &Recorder, mut start: Restored, failure: Failure) -> Trajectory {
    start.conversation.close_calls();
    let status = status_of(&failure);
    recorder.emit(EventKind::RunEnded {
        status,
        failure: Some(failure.clone()),
    });
    Trajectory {
        messages: start.conversation.into_record(),
        output: None,
        status,
        time_elapsed: start.earlier.worked.as_secs_f64(),
        usage: Some(start.usage.to_object()),
        final_answer: None,
        error: Some(failure),
        extra: Object::new(),
    }
}

fn read_messages(input: &RunInput) -> Result<Vec<Message>, AgentConfigError> {
    input
        .initial_messages
        .iter()
        .enumerate()
        .map(|(index, value)| {
            serde_json::from_value(value.clone()).map_err(|error| {
                AgentConfigError::InitialMessage {
                    index,
                    reason: error.to_string(),
                }
            })
        })
        .collect()
}

/// What can end a run from outside.
struct Limits {
    cancel: CancellationToken,
    outer: (tokio::time::Instant, Duration),
    agent: (tokio::time::Instant, Duration),
}

impl Limits {
    fn start(outer: Duration, agent: Duration, cancel: CancellationToken) -> Self {
        let now = tokio::time::Instant::now();
        Self {
            cancel,
            outer: (now + outer, outer),
            agent: (now + agent, agent),
        }
    }

    /// Runs `work` until it is done or a limit is met; then it is dropped.
    async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                Err(Failure::new(Owner::Cancelled, "cancelled", "the run was cancelled"))
            }
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.agent.0) => {
                Err(timed_out("run_timeout", "the agent's `timeout`", self.agent.1))
            }
            () = tokio::time::sleep_until(self.outer.0) => {
                Err(timed_out("outer_limit", "the limit around the run", self.outer.1))
            }
        }
    }
}

fn timed_out(kind: &str, which: &str, limit: Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    Failure::new(
        Owner::Infrastructure,
        kind,
        format!("{which} of {seconds} s is over"),
    )
    .retryable(true)
}
