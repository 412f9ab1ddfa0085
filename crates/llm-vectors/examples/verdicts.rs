//! Lists the cases of a provider that have a verdict, with what is right instead:
//! `cargo run -p llm-vectors --example verdicts -- gemini wrong`.
#![allow(clippy::print_stdout, reason = "an example program")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [provider, verdict] = arguments.as_slice() else {
        return Err("give openai, anthropic or gemini, and ok, note, lossy or wrong".into());
    };
    for (name, vector) in llm_vectors::vectors(provider) {
        if vector["verdict"] == verdict.as_str() {
            println!("{name}: {}", vector["remark"].as_str().unwrap_or_default());
        }
    }
    Ok(())
}
