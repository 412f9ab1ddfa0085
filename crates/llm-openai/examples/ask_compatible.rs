//! Asks a compatible server one question, such as Ollama on this machine:
//! `cargo run -p llm-openai --example ask_compatible -- http://localhost:11434/v1 MODEL "Why?"`.
#![allow(clippy::print_stdout, reason = "an example program")]

use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use llm_openai::{Dialect, OpenAi};
use llm_wire::exchange::Server;
use llm_wire::{CallLabels, ChatRequest, Endpoint, Provider as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, model, question] = arguments.as_slice() else {
        return Err("give a base URL, a model and a question".into());
    };
    let key = std::env::var("OPENAI_API_KEY").ok();
    let endpoint = Endpoint::new(base, key.map(Into::into))?;
    let dialect = Dialect::of_host(endpoint.host());
    let server = Server {
        provider: "openai".to_owned(),
        endpoint,
        http: reqwest::Client::new(),
    };
    let reply = OpenAi::new(server, model, dialect)
        .send(ChatRequest {
            messages: &[Message::user(question.as_str())],
            tools: &[],
            extra_args: &Object::new(),
            timeout: Duration::from_secs(120),
            labels: CallLabels::default(),
        })
        .await?;
    println!("{}", reply.message.text());
    Ok(())
}
