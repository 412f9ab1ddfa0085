//! `loop_agent`: ask, call, until a reply has no calls (`spec/agents.md` §11).

mod budget;
mod config;
mod cost;

use std::time::Duration;

use formats::owner::{Failure, Owner};

use crate::registry::Agent;
use crate::run::{Answer, CallLimits, Run, Turn, TurnKind};
use budget::{Account, Notice};

pub use config::{AccountingMode, LoopAgentConfig};

/// A plain loop: all tools, no care for the size of the context, the last text is the answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopAgent;

/// What the model is asked after a reply that is no answer.
const CONTINUE: &str = "Please continue with the task, or give your final answer as plain text.";

impl Agent for LoopAgent {
    type Config = LoopAgentConfig;

    fn id(&self) -> &'static str {
        "loop_agent"
    }

    fn timeout(&self, config: &LoopAgentConfig) -> Duration {
        config.timeout.get()
    }

    async fn drive(&self, config: &LoopAgentConfig, run: &mut Run) -> Result<Answer, Failure> {
        run.set_concurrency(config.concurrent_calls, &config.concurrent_tools);
        let mut account = Account::open(config, run);
        if let Some(turn) = run.take_open_turn()
            && let Some(answer) = self.take(config, run, turn).await?
        {
            return Ok(answer);
        }
        for step in run.steps_done()..config.max_steps {
            let said = run.take_begun_step();
            let notice = account.notice(step, run, said);
            if let Notice::Final(failure) = notice {
                // One more turn for an answer, and no further.
                return match self.step(config, run, &mut account).await? {
                    Some(answer) => Ok(answer),
                    None => Err(failure),
                };
            }
            if let Some(answer) = self.step(config, run, &mut account).await? {
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
    ) -> Result<Option<Answer>, Failure> {
        run.begin_step();
        let tools = run.tools();
        let turn = match run.ask(&tools, config.llm_response_timeout.get()).await {
            Ok(turn) => turn,
            Err(error) => return run.survive(&error, CONTINUE).map(|()| None),
        };
        account.count(&turn, run);
        self.take(config, run, turn).await
    }

    /// Does what a reply asks for; gives the answer where it is one.
    async fn take(
        &self,
        config: &LoopAgentConfig,
        run: &mut Run,
        turn: Turn,
    ) -> Result<Option<Answer>, Failure> {
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
