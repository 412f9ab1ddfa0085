//! Runs one task in an environment that runs already, and prints its score.
//!
//! `cargo run -p harness --example run_tasks -- http://127.0.0.1:8080 examples/simple_task /tmp/run`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;

use agent_core::Agents;
use grading::{GradeOptions, Registry};
use harness::{RunBudget, RunRequest, Services, Silent};
use llm_client::Models;
use sandbox::UrlSandbox;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(task), Some(output)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("give the environment's address, a task folder and a run folder".into());
    };
    let services = Services {
        models: Models::new(|name| std::env::var(name).ok()),
        agents: Agents::builtin(),
        registry: Registry::builtin(),
        grading: GradeOptions::default(),
        sandbox: Arc::new(UrlSandbox::new(address)),
    };
    let request = RunRequest {
        tasks: vec![task.into()],
        output: output.into(),
        model: None,
        judge_model: None,
        agent: None,
        attempts: 1,
        concurrency: 1,
        resume: false,
        budget: RunBudget::default(),
        recording: None,
        checkpoint_steps: None,
        blobs: false,
    };
    let cancel = CancellationToken::new();
    let ran = Box::pin(harness::run(&request, &services, Arc::new(Silent), &cancel)).await?;
    for trial in &ran.summary.trials {
        println!("{}: {:?}", trial.task, trial.outcome.score);
    }
    Ok(())
}
