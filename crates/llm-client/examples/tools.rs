//! Lets a model call a tool until it is done:
//! `cargo run -p llm-client --example tools -- openai/gpt-4.1`.
#![allow(clippy::print_stdout, reason = "an example program")]

use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use llm_client::{CallLabels, ChatRequest, Models};
use serde_json::{Value, json};

/// Most calls of the model.
const MOST_STEPS: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("which model?")?;
    let models = Models::new(|variable| std::env::var(variable).ok());
    let extra_args = Object::new();
    let model = models.resolve(&name, &extra_args)?;

    let tools = [ToolDefinition::new(
        "add",
        "Adds two numbers.",
        json!({
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"]
        }),
    )];
    let mut messages = vec![Message::user("What is 17.5 + 24.5? Use the tool.")];
    for _ in 0..MOST_STEPS {
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            extra_args: &extra_args,
            timeout: Duration::from_secs(120),
            labels: CallLabels::default(),
        };
        let answer = model.chat(request, &|_| {}).await?;
        let calls = answer.message.tool_calls.clone();
        println!("{}", answer.message.text());
        messages.push(answer.message);
        if calls.is_empty() {
            return Ok(());
        }
        for call in calls {
            let result = add(&call.function.arguments);
            println!(
                "{}({}) = {result}",
                call.function.name, call.function.arguments
            );
            messages.push(Message::tool(call.id, call.function.name, result));
        }
    }
    Err("the model did not come to an end".into())
}

/// The tool. What goes wrong is told to the model, which can mend it.
fn add(arguments: &str) -> String {
    let arguments: Value = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return format!("error: the arguments are no JSON: {error}"),
    };
    match (arguments["a"].as_f64(), arguments["b"].as_f64()) {
        (Some(a), Some(b)) => (a + b).to_string(),
        _ => "error: `a` and `b` must be numbers".to_owned(),
    }
}
