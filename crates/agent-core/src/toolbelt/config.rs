//! The settings of the toolbelt agent (`spec/agents.md` §6.3).

use schemars::JsonSchema;
use serde::Deserialize;

use crate::run::Concurrency;
use crate::settings::Seconds;

/// Settings of `react_toolbelt_agent`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReactToolbeltConfig {
    /// Limit of the whole run in seconds, listing the tools included.
    #[schemars(with = "f64", range(min = 300.0, max = 28800.0))]
    pub timeout: Seconds,
    /// Most steps; a step is one model call and the calls that it asks for.
    #[schemars(range(min = 1, max = 1000))]
    pub max_steps: u64,
    /// Limit of one attempt of a model call in seconds.
    #[schemars(with = "f64", range(min = 30.0, max = 10800.0))]
    pub llm_response_timeout: Seconds,
    /// Which calls of one turn are made side by side.
    pub concurrent_calls: Concurrency,
    /// Names of tools whose calls are made side by side in any case.
    pub concurrent_tools: Vec<String>,
    /// Tokens that the model's context takes; by default what is known of the model, else 128,000.
    #[schemars(range(min = 1000))]
    pub context_tokens: Option<u64>,
}

impl Default for ReactToolbeltConfig {
    fn default() -> Self {
        Self {
            timeout: Seconds::from_secs(10_800),
            max_steps: 250,
            llm_response_timeout: Seconds::from_secs(600),
            concurrent_calls: Concurrency::default(),
            concurrent_tools: Vec::new(),
            context_tokens: None,
        }
    }
}
