//! The example with a Gemini model, against `archipelago stub gemini`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use formats::trajectory::{AgentStatus, Trajectory};
use program::{archipelago, example, example_for, read};

#[test]
fn the_example_runs_with_gemini_against_the_stub_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let task = example_for("gemini/gemini-3.5-flash", "simple_task", folder.path());

    let mut stub = archipelago()
        .args(["stub", "gemini", "--script"])
        .arg(example("simple_task").join("agent_script.json"))
        .start();
    let hint = stub.line_with("GEMINI_API_BASE=");
    let (_, address) = hint.split_once("GEMINI_API_BASE=").unwrap();
    let address = address.split(' ').next().unwrap();
    assert!(address.ends_with("/v1beta"), "{hint}");

    let run = folder.path().join("run");
    let ended = archipelago()
        .env("GEMINI_API_BASE", address)
        .env("GEMINI_API_KEY", "any")
        .arg("run")
        .arg(&task)
        .arg("--output")
        .arg(&run)
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let trajectory: Trajectory = read(&run.join("trials/simple_task/1/trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    let answer = trajectory.final_answer.unwrap();
    assert!(answer.contains("/pictures/m8gt4/d6lqx.png"), "{answer}");
    // The first call of each step is signed by the stub, which takes back nothing else.
    let signed = trajectory.messages.iter().filter(|message| {
        message.tool_calls.first().is_some_and(|call| {
            let fields = call.extra.get("provider_specific_fields");
            fields
                .and_then(|fields| fields["thought_signature"].as_str())
                .is_some()
        })
    });
    assert_eq!(signed.count(), 7);
    stub.signal("INT");
    assert_eq!(stub.end().code, 0);
}
