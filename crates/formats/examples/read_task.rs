//! Reads the verifiers of a task folder and prints their ids.
//!
//! `cargo run -p formats --example read_task -- examples/simple_task`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use formats::{document, task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "examples/simple_task".into());
    let path = std::path::Path::new(&folder).join(task::file::VERIFIERS);
    let verifiers: task::Verifiers = document::read("verifiers", &path)?;
    for verifier in verifiers {
        println!("{} by {}", verifier.verifier_id, verifier.eval_config_id);
    }
    Ok(())
}
