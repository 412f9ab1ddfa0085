//! Asks a model one question: `cargo run -p llm-client --example chat -- openai/gpt-4.1 "Why?"`.
#![allow(clippy::print_stdout, reason = "an example program")]

use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use llm_client::{CallLabels, ChatRequest, Models};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("which model?")?;
    let question = arguments.next().unwrap_or_else(|| "Say hello.".to_owned());

    // A program decides where credentials come from; here it is the environment.
    let models = Models::new(|variable| std::env::var(variable).ok());
    let extra_args = Object::new();
    let model = models.resolve(&name, &extra_args)?;

    let request = ChatRequest {
        messages: &[Message::user(question)],
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(120),
        labels: CallLabels::default(),
    };
    let answer = model
        .chat(request, &|retry| {
            println!(
                "attempt {} failed, waiting {:?}: {}",
                retry.attempt, retry.wait, retry.error
            );
        })
        .await?;

    println!("{}", answer.message.text());
    if let Some(usage) = answer.usage {
        println!(
            "({} + {} tokens, {}, {:.1?})",
            usage.prompt_tokens,
            usage.completion_tokens,
            answer
                .cost_usd
                .map_or("cost unknown".to_owned(), |cost| format!("${cost:.6}")),
            answer.duration
        );
    }
    Ok(())
}
