//! Which agent runs, and with which settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Object;

/// `agent_config.json`: the agent implementation and its settings (`spec/agents.md` §4.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentConfig {
    /// The registered id, such as `loop_agent` or `react_toolbelt_agent`.
    pub agent_config_id: String,
    /// A name for people.
    pub agent_name: String,
    /// The settings; the agent's own schema says which there are.
    pub agent_config_values: Object,
}

impl Default for AgentConfig {
    /// The agent that runs when a task names none.
    fn default() -> Self {
        Self {
            agent_config_id: "react_toolbelt_agent".to_owned(),
            agent_name: "React Toolbelt Agent".to_owned(),
            agent_config_values: Object::new(),
        }
    }
}
