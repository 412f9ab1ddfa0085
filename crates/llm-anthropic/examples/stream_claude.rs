//! Prints what Claude thinks and says while it comes:
//! `ANTHROPIC_API_KEY=… cargo run -p llm-anthropic --example stream_claude -- claude-sonnet-4-5 "Why?"`.
#![allow(clippy::print_stdout, reason = "an example program")]

use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use llm_anthropic::Anthropic;
use llm_wire::{CallLabels, ChatRequest, Delta, Provider as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, question] = arguments.as_slice() else {
        return Err("give a model and a question".into());
    };
    let key = std::env::var("ANTHROPIC_API_KEY")?;
    let endpoint = Anthropic::endpoint("https://api.anthropic.com", Some(key.into()))?;
    let claude = Anthropic::new("anthropic", model, endpoint, reqwest::Client::new());
    let extra_args = Object::from_iter([("reasoning_effort".to_owned(), "low".into())]);
    let request = ChatRequest {
        messages: &[Message::user(question.as_str())],
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(300),
        labels: CallLabels::default(),
    };
    let print = |delta: Delta<'_>| match delta {
        Delta::Text(text) => print!("{text}"),
        Delta::Reasoning(thought) => print!("\x1b[2m{thought}\x1b[0m"),
        _ => {}
    };
    let reply = claude.send_streaming(request, &print).await?;
    println!("\n({})", reply.finish_reason.as_str());
    Ok(())
}
