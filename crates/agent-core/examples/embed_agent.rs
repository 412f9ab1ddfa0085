//! An agent inside a program: a scripted model, one function as a tool.
//!
//! `cargo run -p agent-core --example embed_agent`

use agent_core::{Agents, FunctionTool, RunInput, ToolOutput, ToolSources, run};
use formats::Object;
use llm_client::Models;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let script = json!([
        {"tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 40}}]},
        {"content": "The sum is 42."}
    ]);
    std::fs::write(folder.path().join("sum.json"), script.to_string())?;
    let models = Models::new(|_| None).with_script_folder(folder.path());

    let numbers = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let add = FunctionTool::new("add", "Adds two numbers.", numbers, |given| async move {
        let number = |name| given.get(name).and_then(serde_json::Value::as_i64);
        let (a, b) = number("a")
            .zip(number("b"))
            .ok_or("`a` and `b` are needed")?;
        Ok(ToolOutput::text((a + b).to_string()))
    });
    let input = RunInput::new(models.resolve("scripted/sum.json", &Object::new())?)
        .agent("loop_agent", json!({"max_steps": 5}))
        .user("What is 2 + 40?")
        .tools(ToolSources::new().with_tool(add));
    let trajectory = run(&Agents::builtin(), input).await?;
    assert_eq!(trajectory.final_answer.as_deref(), Some("The sum is 42."));
    Ok(())
}
