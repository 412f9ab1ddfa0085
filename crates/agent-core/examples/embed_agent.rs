//! `cargo run -p agent-core --example embed_agent`: an agent inside a program, with one function as a tool.

use agent_core::{Agents, FunctionTool, RunInput, ToolSources, run};
use formats::Object;
use llm_client::Models;
use serde_json::json;

/// Arguments of `add`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (folder, call) = (tempfile::tempdir()?, json!({"a": 2, "b": 40}));
    let script = json!([{"tool_calls": [{"name": "add", "arguments": call}]}, {"content": "42"}]);
    std::fs::write(folder.path().join("sum.json"), script.to_string())?;
    let models = Models::new(|_| None).with_script_folder(folder.path());

    let add = |n: Numbers| async move { Ok((n.a + n.b).to_string()) };
    let input = RunInput::new(models.resolve("scripted/sum.json", &Object::new())?)
        .agent("loop_agent", json!({"max_steps": 5}))
        .user("What is 2 + 40?")
        .tools(ToolSources::new().with_tool(FunctionTool::typed("add", "Adds.", add)));
    let trajectory = run(&Agents::builtin(), input).await?;
    assert_eq!(trajectory.final_answer.as_deref(), Some("42"));
    Ok(())
}
