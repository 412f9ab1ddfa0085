//! The files of a task folder besides the world itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// Names of the files of a task folder. Any of them may be absent where a default makes sense.
pub mod file {
    /// The world before the agent works: a zip with `filesystem/` and `.apps_data/`.
    pub const ORIGINAL_SNAPSHOT: &str = "original_snapshot.zip";
    /// The conversation that the agent starts from.
    pub const INITIAL_MESSAGES: &str = "initial_messages.json";
    /// Which agent, with which settings.
    pub const AGENT_CONFIG: &str = "agent_config.json";
    /// Which model, with which parameters.
    pub const ORCHESTRATOR_CONFIG: &str = "orchestrator_config.json";
    /// The MCP servers of the world.
    pub const MCP_CONFIG: &str = "mcp_config.json";
    /// What is checked.
    pub const VERIFIERS: &str = "verifiers.json";
    /// How it is checked.
    pub const EVAL_CONFIGS: &str = "eval_configs.json";
    /// How the checks make one score.
    pub const SCORING_CONFIG: &str = "scoring_config.json";
    /// The judge model.
    pub const GRADING_SETTINGS: &str = "grading_settings.json";
    /// What the environment needs of the machine that it runs on.
    pub const SANDBOX_CONFIG: &str = "sandbox_config.json";
}

/// `orchestrator_config.json`: the model that drives the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorConfig {
    /// `provider/model`.
    pub model: String,
    /// Further parameters of every model call.
    #[serde(default)]
    pub extra_args: Option<Object>,
}

/// One configured check of a task (`spec/grading.md` §2.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verifier {
    /// Unique within the task.
    pub verifier_id: String,
    /// Echoed into the result.
    #[serde(default = "one")]
    pub verifier_version: i64,
    /// The world that the check belongs to.
    pub world_id: Option<String>,
    /// The task that it belongs to; `null` marks a universal verifier for some scoring methods.
    pub task_id: Option<String>,
    /// The [`EvalConfig`] that it uses.
    pub eval_config_id: String,
    /// Its own settings; the eval's schema says which there are.
    pub verifier_values: Object,
    /// Free metadata; read by gate and weight scoring.
    #[serde(default)]
    pub verifier_custom_field_values: Option<Object>,
    /// Position, for numbering in messages.
    pub verifier_index: i64,
    /// Whom it judges: `target_agent` or `virtual_coworker_agent`.
    #[serde(default = "target_agent")]
    pub evaluation_target: String,
    /// The virtual coworker, if it judges one.
    #[serde(default)]
    pub vca_id: Option<String>,
    /// Verifiers that must have been judged first.
    #[serde(default)]
    pub verifier_dependencies: Option<Vec<String>>,
}

/// A named instance of an eval with settings shared by several verifiers (`spec/grading.md` §2.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalConfig {
    /// The id that verifiers refer to.
    pub eval_config_id: String,
    /// A name for people.
    pub eval_config_name: String,
    /// The registered eval.
    pub eval_defn_id: String,
    /// Settings of the eval.
    pub eval_config_values: Object,
}

/// `grading_settings.json`: the judge (`spec/grading.md` §2.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradingSettings {
    /// `provider/model` of the judge.
    pub llm_judge_model: String,
    /// Further parameters of every judge call.
    #[serde(default)]
    pub llm_judge_extra_args: Option<Object>,
    /// Replaces the built-in system prompt of the `output_llm` family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_system_prompt: Option<String>,
    /// Prices per token in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_model_rates: Option<Object>,
    /// How often each judge is asked for each verdict, from 1 to 25; 1 if absent. The majority of
    /// all votes decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_votes: Option<u32>,
    /// Further judges, which vote beside `llm_judge_model`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub llm_judge_panel: Vec<PanelJudge>,
    /// Whether the judge may answer that it cannot tell, where something was cut or cannot be
    /// shown; `false` if absent, as judges of the reference may not. Such a verdict is an error of
    /// the verifier, not a fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_cannot_assess: Option<bool>,
    /// Whether `negative_criteria` of verifiers are judged where the criterion is not met; `false`
    /// if absent. A violated one scores -1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_negative_criteria: Option<bool>,
    /// How many pages of each changed PDF the judge also sees as pictures, drawn by `pdftoppm`; none
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_judge_pdf_pages: Option<u32>,
}

impl GradingSettings {
    /// The judge `model` with nothing else set.
    #[must_use]
    pub fn of(model: impl Into<String>) -> Self {
        Self {
            llm_judge_model: model.into(),
            llm_judge_extra_args: None,
            llm_judge_system_prompt: None,
            llm_judge_model_rates: None,
            llm_judge_votes: None,
            llm_judge_panel: Vec::new(),
            llm_judge_cannot_assess: None,
            llm_judge_negative_criteria: None,
            llm_judge_pdf_pages: None,
        }
    }
}

/// A further judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelJudge {
    /// `provider/model`.
    pub model: String,
    /// Further parameters of its calls; those of the first judge if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_args: Option<Object>,
    /// Prices per token in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_rates: Option<Object>,
}

/// `scoring_config.json`: how verifier results make one score (`spec/grading.md` §2.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoringConfig {
    /// An id for people.
    pub scoring_config_id: String,
    /// A name for people.
    pub scoring_config_name: String,
    /// The registered scoring method.
    pub scoring_defn_id: String,
    /// Its settings.
    pub scoring_config_values: Object,
}

impl Default for ScoringConfig {
    /// The plain average of the verifier scores.
    fn default() -> Self {
        Self {
            scoring_config_id: "sc_default".to_owned(),
            scoring_config_name: "Average".to_owned(),
            scoring_defn_id: "template".to_owned(),
            scoring_config_values: Object::new(),
        }
    }
}

/// `sandbox_config.json`: what the environment of a task needs of the machine that it runs on.
///
/// The reference has no such file. What the command line says wins over it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// The image of the environment, for sandboxes that start containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Variables of the environment, by name. Its servers get those that their configuration
    /// names, like all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Parts of the task folder that the environment sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<TaskMount>,
    /// Bytes of memory of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processors of the container, in parts of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Processes and threads of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Whether the container reaches the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
}

/// A file or folder of the task inside its environment, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskMount {
    /// Where it is, relative to the task folder and inside of it.
    pub source: String,
    /// Where the environment sees it: an absolute path, such as `/app/mcp_servers`.
    pub target: String,
}

/// `verifiers.json`: the checks of a task, in order.
pub type Verifiers = Vec<Verifier>;

/// `eval_configs.json`.
pub type EvalConfigs = Vec<EvalConfig>;

/// `initial_messages.json`: chat messages, passed to the agent untouched.
pub type InitialMessages = Vec<Value>;

const fn one() -> i64 {
    1
}

fn target_agent() -> String {
    "target_agent".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_must_say_its_world_and_task_even_if_null() {
        let text = r#"{"verifier_id": "v", "world_id": null, "task_id": null,
            "eval_config_id": "e", "verifier_values": {}, "verifier_index": 0}"#;
        let verifier: Verifier = serde_json::from_str(text).unwrap();
        assert_eq!(verifier.verifier_version, 1);
        assert_eq!(verifier.evaluation_target, "target_agent");
    }

    #[test]
    fn a_missing_required_key_is_named() {
        let error = serde_json::from_str::<EvalConfig>(
            r#"{"eval_config_id": "e", "eval_config_name": "n"}"#,
        )
        .unwrap_err();
        assert!(error.to_string().contains("eval_defn_id"), "{error}");
    }
}
