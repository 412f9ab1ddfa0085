//! Makes calls of a model and ends; what a call costs is measured from outside (`benches/llm`).
//!
//! `OPENAI_BASE_URL=… OPENAI_API_KEY=… overhead REQUEST.json CALLS AT_ONCE`, where the request has
//! `messages` and `tools`.

use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use futures::StreamExt as _;
use llm_client::{CallLabels, ChatRequest, Models};

#[derive(serde::Deserialize)]
struct Request {
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, calls, at_once] = arguments.as_slice() else {
        return Err("give a request, the number of calls and how many are made at once".into());
    };
    let (calls, at_once): (usize, usize) = (calls.parse()?, at_once.parse()?);
    let asked: Request = serde_json::from_slice(&std::fs::read(file)?)?;
    let extra_args = Object::new();
    let models = Models::new(|name| std::env::var(name).ok());
    let model = models.resolve("openai/gpt-4.1", &extra_args)?;
    let request = ChatRequest {
        messages: &asked.messages,
        tools: &asked.tools,
        extra_args: &extra_args,
        timeout: Duration::from_secs(60),
        labels: CallLabels::default(),
    };
    let mut answers = futures::stream::iter(0..calls)
        .map(|_| model.chat(request, &|_| {}))
        .buffer_unordered(at_once);
    while let Some(answer) = answers.next().await {
        if answer?.message.text().is_empty() {
            return Err("an answer is empty".into());
        }
    }
    Ok(())
}
