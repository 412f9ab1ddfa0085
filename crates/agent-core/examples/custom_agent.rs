//! An agent of one's own: it asks once, without tools, and takes what it gets.
//!
//! `cargo run -p agent-core --example custom_agent`

use std::time::Duration;

use agent_core::{Agent, Agents, Answer, Run, RunInput, model_failure, run};
use formats::Object;
use formats::owner::Failure;
use llm_client::Models;
use serde_json::json;

struct SingleShot;

/// Settings of `single_shot`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct SingleShotConfig {
    /// Limit of the run in seconds.
    #[schemars(range(min = 1, max = 600))]
    seconds: u64,
}

impl Default for SingleShotConfig {
    fn default() -> Self {
        Self { seconds: 60 }
    }
}

impl Agent for SingleShot {
    type Config = SingleShotConfig;

    fn id(&self) -> &'static str {
        "single_shot"
    }

    fn timeout(&self, config: &SingleShotConfig) -> Duration {
        Duration::from_secs(config.seconds)
    }

    async fn drive(&self, config: &SingleShotConfig, run: &mut Run) -> Result<Answer, Failure> {
        run.begin_step();
        let limit = Duration::from_secs(config.seconds);
        let turn = run.ask(&[], limit).await.map_err(|e| model_failure(&e))?;
        Ok(Answer::new(turn.text))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("hi.json"), r#"[{"content": "Hello."}]"#)?;
    let models = Models::new(|_| None).with_script_folder(folder.path());
    let mut agents = Agents::builtin();
    agents.register(SingleShot);
    let input = RunInput::new(models.resolve("scripted/hi.json", &Object::new())?)
        .agent("single_shot", json!({"seconds": 5}))
        .user("Say hello.");
    let trajectory = run(&agents, input).await?;
    assert_eq!(trajectory.final_answer.as_deref(), Some("Hello."));
    Ok(())
}
