//! `react_toolbelt_agent`: a loop with a toolbelt that the model fills itself, todos, an explicit
//! answer, and a context that is summarised when it fills up (`spec/agents.md` §12).

mod belt;
mod config;
mod final_answer;
mod meta_tools;
mod todos;
mod truncate;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use formats::chat::{Message, ToolCall};
use formats::event::ToolOutcome;
use formats::owner::{Failure, Owner};
use llm_client::{ChatErrorKind, FinishReason, known_model};
use serde_json::{Value, json};

use crate::compaction::Compactor;
use crate::registry::Agent;
use crate::run::{Answer, CallLimits, Run, Turn, TurnKind, model_failure};
use crate::tools::Arguments;
use belt::Belt;
use todos::Todos;

pub use config::ReactToolbeltConfig;

/// The agent of the APEX-Agents benchmark.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReactToolbeltAgent;

/// What the model is asked after a reply that cannot be used.
const CONTINUE: &str = "Please continue with the task, and call `final_answer` when you are done.";

/// What the model is told after a reply without a call.
const NO_CALL: &str = "You called no tool. Your answer counts only when you hand it in with `final_answer`. Please continue with the task, or call `final_answer` if you are done.";

/// Limit of one tool call.
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);

/// The context of a model of which nothing is known.
const UNKNOWN_CONTEXT: u64 = 128_000;

impl Agent for ReactToolbeltAgent {
    type Config = ReactToolbeltConfig;

    fn id(&self) -> &'static str {
        "react_toolbelt_agent"
    }

    fn timeout(&self, config: &ReactToolbeltConfig) -> Duration {
        config.timeout.get()
    }

    async fn drive(&self, config: &ReactToolbeltConfig, run: &mut Run) -> Result<Answer, Failure> {
        let context_tokens = config
            .context_tokens
            .or_else(|| known_model(run.model().name()).map(|model| model.max_input_tokens))
            .unwrap_or(UNKNOWN_CONTEXT);
        let mut work = Work {
            belt: Belt::new(run.tools()),
            todos: Todos::default(),
            compactor: Compactor::of(context_tokens, run),
        };
        work.remember(run);
        run.set_concurrency(config.concurrent_calls, &config.concurrent_tools);
        if let Some(turn) = run.take_open_turn()
            && let Some(answer) = work.take(&turn, run).await?
        {
            return Ok(answer);
        }
        for _ in run.steps_done()..config.max_steps {
            if let Some(answer) = work.step(config.llm_response_timeout.get(), run).await? {
                return Ok(answer);
            }
        }
        Err(Failure::new(
            Owner::Model,
            "step_limit",
            format!("no answer within the limit of {} steps", config.max_steps),
        ))
    }
}

/// What the agent keeps during one run.
struct Work {
    belt: Belt,
    todos: Todos,
    compactor: Compactor,
}

impl Work {
    /// Carries out once more what the agent's own tools did in a conversation that goes on, so that
    /// belt and todos are as the model knows them.
    fn remember(&mut self, run: &Run) {
        let answered: HashSet<&str> = run
            .record()
            // Other answers say that the call was not carried out.
            .filter(|message| message.text().starts_with(['{', '[']))
            .filter_map(|message| message.tool_call_id.as_deref())
            .collect();
        let calls = run.record().flat_map(|message| &message.tool_calls);
        for call in calls.filter(|call| meta_tools::is_own(&call.function.name)) {
            if answered.contains(call.id.as_str()) {
                self.meta(call);
            }
        }
    }

    async fn step(&mut self, limit: Duration, run: &mut Run) -> Result<Option<Answer>, Failure> {
        run.begin_step();
        if self.compactor.is_due(run)
            && let Err(failure) = Box::pin(self.compactor.compact(run)).await
        {
            run.warn(format!(
                "the conversation could not be summarised: {failure}"
            ));
        }
        let turn = match run.ask(self.belt.offered(), limit).await {
            Ok(turn) => turn,
            Err(error) if error.kind == ChatErrorKind::ContextWindow => {
                // The step is used up; what does not get shorter would fail again for ever.
                run.warn(format!("the context is full: {error}"));
                return match Box::pin(self.compactor.compact(run)).await {
                    Ok(true) => Ok(None),
                    Ok(false) => Err(model_failure(&error)),
                    Err(failure) => Err(failure),
                };
            }
            Err(error) => return run.survive(&error, CONTINUE).map(|()| None),
        };
        self.take(&turn, run).await
    }

    /// Does what a reply asks for; gives the answer where it is one.
    async fn take(&mut self, turn: &Turn, run: &mut Run) -> Result<Option<Answer>, Failure> {
        match turn.kind {
            TurnKind::Unusable(why) => run.ask_to_continue(why, CONTINUE).map(|()| None),
            TurnKind::Text => {
                run.say(Message::user(NO_CALL));
                Ok(None)
            }
            TurnKind::Calls => self.handle(turn, run).await,
        }
    }

    /// Handles the calls of a turn in order, each with exactly one result. The first
    /// `final_answer` ends the turn: what comes behind it is skipped.
    async fn handle(&mut self, turn: &Turn, run: &mut Run) -> Result<Option<Answer>, Failure> {
        let end = turn
            .calls
            .iter()
            .position(|call| call.function.name == meta_tools::FINAL_ANSWER);
        let (before, rest) = turn.calls.split_at(end.unwrap_or(turn.calls.len()));
        self.carry_out(before, rest, run).await?;
        let Some((call, behind)) = rest.split_first() else {
            run.flush_deferred();
            return Ok(None);
        };
        let cut_off = turn.finish_reason == FinishReason::Length;
        let answer = match final_answer::objection(&self.todos) {
            Some(objection) => Err(objection),
            None => final_answer::parse(&call.function.arguments, cut_off)
                .map_err(|reason| format!("Refused: {reason}. Call `final_answer` again.")),
        };
        let skipped = "Skipped: it came behind `final_answer` in the same turn.";
        match answer {
            Ok(answer) => {
                for call in behind {
                    run.skip_call(call, skipped);
                }
                // The record ends with the answer; pictures of this turn would come behind it.
                run.drop_deferred();
                run.accept_answer(call, &answer);
                Ok(Some(answer))
            }
            Err(objection) => {
                run.warn(format!("the final answer was refused: {objection}"));
                run.answer_call(call, objection, ToolOutcome::Refused);
                for call in behind {
                    run.skip_call(call, skipped);
                }
                run.flush_deferred();
                Ok(None)
            }
        }
    }

    /// Carries out `calls`. The agent's own tools take effect first, so that a tool can be put into
    /// the belt and called in one turn; results are in the order of the calls. When the tools are
    /// lost, `rest` is skipped too.
    async fn carry_out(
        &mut self,
        calls: &[ToolCall],
        rest: &[ToolCall],
        run: &mut Run,
    ) -> Result<(), Failure> {
        let mut own: HashMap<&str, Value> = calls
            .iter()
            .filter(|call| meta_tools::is_own(&call.function.name))
            .map(|call| (call.id.as_str(), self.meta(call)))
            .collect();
        let limits = CallLimits {
            time: TOOL_TIMEOUT,
            shorten: Some(truncate::shortened),
        };
        let mut open = calls;
        while let Some((call, behind)) = open.split_first() {
            if let Some(result) = own.remove(call.id.as_str()) {
                let outcome = match result.get("error") {
                    Some(_) => ToolOutcome::ToolError,
                    None => ToolOutcome::Ok,
                };
                run.answer_call(call, result.to_string(), outcome);
                open = behind;
            } else if self.belt.holds(&call.function.name) {
                let together = open
                    .iter()
                    .take_while(|call| self.belt.holds(&call.function.name))
                    .count();
                let (called, behind) = open.split_at(together);
                if let Err(failure) = run.call_in_order(called, limits).await {
                    for call in behind.iter().chain(rest) {
                        run.skip_call(call, "Skipped: the connection to the tools is lost.");
                    }
                    run.flush_deferred();
                    return Err(failure);
                }
                open = behind;
            } else {
                let name = &call.function.name;
                run.answer_call(
                    call,
                    format!("Not called: `{name}` is not in your toolbelt. Add it with `toolbelt_add_tool` first."),
                    ToolOutcome::Refused,
                );
                open = behind;
            }
        }
        Ok(())
    }

    fn meta(&mut self, call: &ToolCall) -> Value {
        let arguments = match Arguments::parse(&call.function.arguments) {
            Ok(arguments) => arguments.object,
            Err(error) => return json!({"error": error.to_string()}),
        };
        let name = arguments.get("tool_name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        match call.function.name.as_str() {
            meta_tools::LIST => self.belt.list(),
            meta_tools::INSPECT => self.belt.inspect(name),
            meta_tools::ADD => self.belt.add(name),
            meta_tools::REMOVE => self.belt.remove(name),
            _ => self.todos.write(&arguments),
        }
    }
}
