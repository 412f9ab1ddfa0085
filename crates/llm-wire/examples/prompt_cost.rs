//! What a prompt takes of a model's window, and what it costs:
//! `cargo run -p llm-wire --example prompt_cost -- openai/gpt-4.1 FILE`.
#![allow(clippy::print_stdout, reason = "an example program")]

use formats::chat::{Message, Usage};
use llm_wire::{known_model, tokens};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, file] = arguments.as_slice() else {
        return Err("give a model and a file".into());
    };
    let prompt = Message::user(std::fs::read_to_string(file)?);
    let estimate = tokens::of_messages(&[prompt]);
    let known = known_model(model).ok_or("the table does not know this model")?;
    let usage = Usage {
        prompt_tokens: estimate,
        ..Usage::default()
    };
    let cost = known.price.cost(&usage).unwrap_or_default();
    println!(
        "about {estimate} of {} tokens, ${cost:.4}",
        known.max_input_tokens
    );
    Ok(())
}
