//! `single_shot`: one question, one answer, no tools.

use std::time::Duration;

use formats::owner::{Failure, Owner};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::registry::Agent;
use crate::run::{Answer, Run, TurnKind, model_failure};
use crate::settings::Seconds;

/// Asks the model once, without tools; its text is the answer. Tool servers are not contacted.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleShot;

/// Settings of `single_shot`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SingleShotConfig {
    /// Limit of the whole run in seconds, repetitions of the model call included.
    #[schemars(with = "f64", range(min = 300.0, max = 28800.0))]
    pub timeout: Seconds,
    /// Limit of one attempt of the model call in seconds.
    #[schemars(with = "f64", range(min = 30.0, max = 10800.0))]
    pub llm_response_timeout: Seconds,
}

impl Default for SingleShotConfig {
    fn default() -> Self {
        Self {
            timeout: Seconds::from_secs(10_800),
            llm_response_timeout: Seconds::from_secs(600),
        }
    }
}

impl Agent for SingleShot {
    type Config = SingleShotConfig;

    fn id(&self) -> &'static str {
        "single_shot"
    }

    fn timeout(&self, config: &SingleShotConfig) -> Duration {
        config.timeout.get()
    }

    fn uses_tools(&self) -> bool {
        false
    }

    async fn drive(&self, config: &SingleShotConfig, run: &mut Run) -> Result<Answer, Failure> {
        run.begin_step();
        let turn = run
            .ask(&[], config.llm_response_timeout.get())
            .await
            .map_err(|error| model_failure(&error))?;
        match turn.kind {
            TurnKind::Text => Ok(Answer::new(turn.text)),
            TurnKind::Unusable(why) => Err(Failure::new(Owner::Model, why.kind(), why.reason())),
            TurnKind::Calls => Err(Failure::new(
                Owner::Model,
                "unexpected_calls",
                "the model called tools, and there are none",
            )),
        }
    }
}
