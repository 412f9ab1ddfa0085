//! A stand-in for OpenAI that gives every request the same answer, until Ctrl-C.
//!
//! `cargo run -p testkit --example stub_openai [MILLISECONDS]`: how long an answer takes.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use testkit::openai::{OpenAiStub, Script, Turn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let milliseconds = std::env::args().nth(1).unwrap_or_default();
    let turn = Turn::says("Hello.").after_ms(milliseconds.parse().unwrap_or_default());
    let stub = OpenAiStub::start(Script::new([turn]).repeat_last()).await?;
    println!(
        "OPENAI_BASE_URL={} OPENAI_API_KEY={}",
        stub.base_url(),
        stub.key()
    );
    tokio::signal::ctrl_c().await?;
    println!("refused: {:?}", stub.refusals());
    Ok(())
}
