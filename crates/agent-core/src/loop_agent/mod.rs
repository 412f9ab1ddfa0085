//! `loop_agent`: ask, call, until a reply has no calls (`spec/agents.md` §11).

mod budget;
mod config;
mod cost;

use std::time::Duration;

use formats::owner::{Failure, Owner};
use llm_client::{ChatError, ChatErrorKind};

use crate::registry::Agent;
use crate::run::{Answer, CallLimits, Run, TurnKind, model_failure};
use budget::{Account, Notice};

pub use config::{AccountingMode, LoopAgentConfig};

/// A plain loop: all tools, no care for the size of the context, the last text is the answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopAgent;

/// What the model is asked after a reply that is no answer.
const CONTINUE: &str = "Please continue with the task, or give your final answer as plain text.";

/// So many model calls in a row that time out, repetitions included, end the run.
const MAX_MODEL_TIMEOUTS: u32 = 3;

impl Agent for LoopAgent {
    type Config = LoopAgentConfig;

    fn id(&self) -> &'static str {
        "loop_agent"
    }

    fn timeout(&self, config: &LoopAgentConfig) -> Duration {
        config.timeout.get()
    }

    async fn drive(&self, config: &LoopAgentConfig, run: &mut Run) -> Result<Answer, Failure> {
        let mut account = Account::open(config, run);
        let mut timeouts = 0;
        for step in 0..config.max_steps {
            let notice = account.notice(step, run);
            if let Notice::Final(failure) = notice {
                // One more turn for an answer, and no further.
                return match self.step(config, run, &mut account, &mut timeouts).await? {
                    Some(answer) => Ok(answer),
                    None => Err(failure),
                };
            }
            if let Some(answer) = self.step(config, run, &mut account, &mut timeouts).await? {
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

impl LoopAgent {
    async fn step(
        &self,
        config: &LoopAgentConfig,
        run: &mut Run,
        account: &mut Account,
        timeouts: &mut u32,
    ) -> Result<Option<Answer>, Failure> {
        run.begin_step();
        let tools = run.tools();
        let turn = match run.ask(&tools, config.llm_response_timeout.get()).await {
            Ok(turn) => turn,
            Err(error) => {
                return used_up(run, &error, timeouts).map(|()| None);
            }
        };
        *timeouts = 0;
        account.count(&turn, run);
        match turn.kind {
            TurnKind::Text => Ok(Some(Answer::new(turn.text))),
            TurnKind::Unusable(why) => run.ask_to_continue(why, CONTINUE).map(|()| None),
            TurnKind::Calls => {
                let limits = CallLimits {
                    time: config.tool_call_timeout.get(),
                    shorten: None,
                };
                run.call_tools(&turn.calls, limits).await?;
                Ok(None)
            }
        }
    }
}

/// A model call that timed out uses up its step; any other failure ends the run.
fn used_up(run: &Run, error: &ChatError, timeouts: &mut u32) -> Result<(), Failure> {
    *timeouts += 1;
    if error.kind == ChatErrorKind::Timeout && *timeouts < MAX_MODEL_TIMEOUTS {
        run.warn(format!("the step is used up: {error}"));
        return Ok(());
    }
    Err(model_failure(error))
}
