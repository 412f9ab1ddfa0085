//! The runner with a gateway and a model of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use testkit::mcp::{HttpStub, StubServer};
use testkit::openai::{OpenAiStub, Script, Turn};

/// A gateway, a model and a folder with the runner's input files.
pub(crate) struct Bench {
    pub(crate) gateway: HttpStub,
    pub(crate) model: OpenAiStub,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let bench = Self {
            gateway: HttpStub::start(StubServer::default(), true).await,
            model: OpenAiStub::start(Script::new(turns)).await.unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        bench.write(
            "messages.json",
            &json!([{"role": "user", "content": "Say it."}]),
        );
        bench.write(
            "agent.json",
            &json!({"agent_config_id": "loop_agent", "agent_name": "Loop", "agent_config_values": {}}),
        );
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.path(name), content.to_string()).unwrap();
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.path("trajectory.json")
    }

    /// The runner with all required flags, the stub's credentials and its output file.
    pub(crate) fn runner(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-runner"));
        command
            .env_clear()
            .env("OPENAI_BASE_URL", self.model.base_url())
            .env("OPENAI_API_KEY", self.model.key())
            .current_dir(self.folder.path())
            .args([
                "--trajectory-id",
                "t1",
                "--orchestrator-model",
                "openai/stub",
            ])
            .args([
                "--initial-messages",
                "messages.json",
                "--agent-config",
                "agent.json",
            ])
            .args(["--mcp-gateway-url", &self.gateway.url])
            .args(["--output", "trajectory.json"])
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn trajectory(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.output()).unwrap()).unwrap()
    }
}

/// Runs to the end, away from the runtime that serves the stubs.
pub(crate) async fn end(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
