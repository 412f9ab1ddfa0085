//! A stand-in for OpenAI that answers one request and tells what it was asked.
//!
//! `cargo run -p testkit --example stub_openai`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use testkit::openai::{OpenAiStub, Script, Turn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stub = OpenAiStub::start(Script::new([Turn::says("Hello.")])).await?;
    println!(
        "OPENAI_BASE_URL={} OPENAI_API_KEY={}",
        stub.base_url(),
        stub.key()
    );
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    println!(
        "{} requests, refused: {:?}",
        stub.requests().len(),
        stub.refusals()
    );
    Ok(())
}
