//! An agent of one's own: it asks for a draft, then for a better one, and takes the second.
//!
//! `cargo run -p agent-core --example custom_agent`

use std::time::Duration;

use agent_core::{Agent, Agents, Answer, Run, RunInput, model_failure, run};
use formats::Object;
use formats::chat::Message;
use formats::owner::Failure;
use llm_client::Models;
use serde_json::json;

struct TwoDrafts;

/// Settings of `two_drafts`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct TwoDraftsConfig {
    /// Limit of one model call in seconds.
    #[schemars(range(min = 1, max = 600))]
    seconds: u64,
    /// What is asked after the first draft.
    review: String,
}

impl Default for TwoDraftsConfig {
    fn default() -> Self {
        Self {
            seconds: 60,
            review: "What is missing? Write it again, complete.".to_owned(),
        }
    }
}

impl Agent for TwoDrafts {
    type Config = TwoDraftsConfig;

    fn id(&self) -> &'static str {
        "two_drafts"
    }

    fn timeout(&self, config: &TwoDraftsConfig) -> Duration {
        Duration::from_secs(3 * config.seconds)
    }

    fn uses_tools(&self) -> bool {
        false
    }

    async fn drive(&self, config: &TwoDraftsConfig, run: &mut Run) -> Result<Answer, Failure> {
        let limit = Duration::from_secs(config.seconds);
        run.begin_step();
        run.ask(&[], limit).await.map_err(|e| model_failure(&e))?;
        run.say(Message::user(config.review.as_str()));
        run.begin_step();
        let second = run.ask(&[], limit).await.map_err(|e| model_failure(&e))?;
        Ok(Answer::new(second.text))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let script = json!([{"content": "Hello."}, {"content": "Hello, reader."}]);
    std::fs::write(folder.path().join("hi.json"), script.to_string())?;
    let models = Models::new(|_| None).with_script_folder(folder.path());
    let mut agents = Agents::builtin();
    agents.register(TwoDrafts);
    let input = RunInput::new(models.resolve("scripted/hi.json", &Object::new())?)
        .agent("two_drafts", json!({"seconds": 5}))
        .user("Greet the reader.");
    let trajectory = run(&agents, input).await?;
    assert_eq!(trajectory.final_answer.as_deref(), Some("Hello, reader."));
    Ok(())
}
