//! The settings of the loop agent (`spec/agents.md` §6.2).

use schemars::JsonSchema;
use serde::Deserialize;

use crate::run::Concurrency;
use crate::settings::Seconds;

/// Settings of `loop_agent`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoopAgentConfig {
    /// Limit of the whole run in seconds, listing the tools included.
    #[schemars(with = "f64", range(min = 300.0, max = 28800.0))]
    pub timeout: Seconds,
    /// Most steps; a step is one model call and the calls that it asks for.
    #[schemars(range(min = 1, max = 1000))]
    pub max_steps: u64,
    /// Limit of one tool call in seconds.
    #[schemars(with = "f64", range(min = 10.0, max = 600.0))]
    pub tool_call_timeout: Seconds,
    /// Limit of one attempt of a model call in seconds.
    #[schemars(with = "f64", range(min = 30.0, max = 1200.0))]
    pub llm_response_timeout: Seconds,
    /// Which calls of one turn are made side by side.
    pub concurrent_calls: Concurrency,
    /// Names of tools whose calls are made side by side in any case.
    pub concurrent_tools: Vec<String>,
    /// What is counted. Absent with a `token_budget` above 0 means `token_accounting`.
    #[schemars(extend("x-lenient" = true))]
    pub accounting_mode: Option<AccountingMode>,
    /// Prompt and completion tokens that the run may use; 0 means no limit. Only in the mode
    /// `token_accounting`.
    #[schemars(extend("x-lenient" = true), range(min = 0))]
    pub token_budget: u64,
    /// Whether the model is told before each step how many are left.
    #[schemars(extend("x-lenient" = true))]
    pub turn_warnings_enabled: bool,
    /// US dollars per input token, in place of the price table.
    #[schemars(extend("x-lenient" = true), range(min = 0.0))]
    pub input_cost_per_token: Option<f64>,
    /// US dollars per output token, in place of the price table.
    #[schemars(extend("x-lenient" = true), range(min = 0.0))]
    pub output_cost_per_token: Option<f64>,
    /// US dollars per input token read from the provider's cache, in place of the price table.
    #[schemars(extend("x-lenient" = true), range(min = 0.0))]
    pub cached_input_cost_per_token: Option<f64>,
    /// US dollars per input token written to the provider's cache, in place of the price table.
    #[schemars(extend("x-lenient" = true), range(min = 0.0))]
    pub cache_creation_cost_per_token: Option<f64>,
    /// US dollars that the run may cost; 0 means no limit. Only in the mode `cost_accounting`.
    #[schemars(extend("x-lenient" = true), range(min = 0.0))]
    pub cost_budget_usd: f64,
}

/// What a run is limited by beside its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AccountingMode {
    /// Nothing.
    Default,
    /// Tokens.
    TokenAccounting,
    /// US dollars.
    CostAccounting,
}

impl AccountingMode {
    /// The word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::TokenAccounting => "token_accounting",
            Self::CostAccounting => "cost_accounting",
        }
    }
}

impl Default for LoopAgentConfig {
    fn default() -> Self {
        Self {
            timeout: Seconds::from_secs(10_800),
            max_steps: 100,
            tool_call_timeout: Seconds::from_secs(60),
            llm_response_timeout: Seconds::from_secs(600),
            concurrent_calls: Concurrency::default(),
            concurrent_tools: Vec::new(),
            accounting_mode: None,
            token_budget: 0,
            turn_warnings_enabled: false,
            input_cost_per_token: None,
            output_cost_per_token: None,
            cached_input_cost_per_token: None,
            cache_creation_cost_per_token: None,
            cost_budget_usd: 0.0,
        }
    }
}

impl LoopAgentConfig {
    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> AccountingMode {
        match self.accounting_mode {
            Some(mode) => mode,
            None if self.token_budget > 0 => AccountingMode::TokenAccounting,
            None => AccountingMode::Default,
        }
    }

    /// The token budget in force; 0 means none.
    #[must_use]
    pub fn effective_token_budget(&self) -> u64 {
        match self.mode() {
            AccountingMode::TokenAccounting => self.token_budget,
            AccountingMode::Default | AccountingMode::CostAccounting => 0,
        }
    }

    /// The cost budget in force in US dollars; 0 means none.
    #[must_use]
    pub fn effective_cost_budget(&self) -> f64 {
        match self.mode() {
            AccountingMode::CostAccounting => self.cost_budget_usd,
            AccountingMode::Default | AccountingMode::TokenAccounting => 0.0,
        }
    }
}
