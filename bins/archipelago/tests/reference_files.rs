//! The reference's own example, its files unchanged, against a server that behaves like OpenAI's.
//! Only the MCP server's command differs, which is a Python program there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::PathBuf;

use formats::diff::WorldDiff;
use formats::grades::{Grades, GradingStatus};
use formats::trajectory::{AgentStatus, Trajectory};
use program::{archipelago, copy_files, read, root};
use serde_json::Value;
use testkit::openai::{OpenAiStub, Script};

/// The reference's files, where they are on this machine. They are not ours to keep.
fn golden() -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED")
        .map_or_else(|| root().join("../shared"), PathBuf::from);
    let golden = shared.join("golden");
    golden.is_dir().then_some(golden)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_references_example_runs_against_an_openai_compatible_server() {
    let Some(golden) = golden() else {
        eprintln!("SKIPPED: ../shared/golden is absent");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let task = folder.path().join("simple_task");
    copy_files(&golden.join("simple_task"), &task);
    let mut apps: Value = read(&task.join("mcp_config.json"));
    let server = &mut apps["mcpServers"]["filesystem_server"];
    server["command"] = "filesystem-server".into();
    server
        .as_object_mut()
        .unwrap()
        .retain(|key, _| key != "args" && key != "cwd");
    std::fs::write(task.join("mcp_config.json"), apps.to_string()).unwrap();

    // What the scripted model said in the reference's own run, turn by turn.
    let script =
        std::fs::read_to_string(golden.join("reference-run/react/llm_script.json")).unwrap();
    let script = Script::parse(&script).unwrap().answer_schemas();
    let stub = OpenAiStub::start(script).await.unwrap();
    let run = folder.path().join("run");
    let call = archipelago()
        .env("OPENAI_BASE_URL", stub.base_url())
        .env("OPENAI_API_KEY", stub.key())
        .arg("run")
        .arg(&task)
        .args([
            "--model",
            "openai/anything",
            "--judge-model",
            "openai/judge",
        ])
        .arg("--output")
        .arg(&run);
    let ended = tokio::task::spawn_blocking(|| call.end()).await.unwrap();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(
        stub.refusals(),
        [""; 0],
        "a request that OpenAI would refuse"
    );
    assert_eq!(stub.turns_left(), 0);

    let trial = run.join("trials/simple_task/1");
    let trajectory: Trajectory = read(&trial.join("trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    let reference: Trajectory = read(&golden.join("reference-run/react/trajectory.json"));
    let roles = |run: &Trajectory| -> Vec<(String, usize)> {
        run.messages
            .iter()
            .map(|message| (message.role.as_str().to_owned(), message.tool_calls.len()))
            .collect()
    };
    assert_eq!(roles(&trajectory), roles(&reference));
    assert_eq!(trajectory.answer(), reference.answer());

    let grades: Grades = read(&trial.join("grades.json"));
    assert_eq!(grades.grading_run_status, GradingStatus::Completed);
    let ours = serde_json::to_value(&grades.verifier_results).unwrap();
    assert_eq!(ours[0]["verifier_id"], "ver_001");
    assert_eq!(ours[0]["verifier_result_values"]["judge_grade"], "pass");
    let diff: WorldDiff = read(&trial.join("diff.json"));
    assert_eq!((diff.files_before, diff.changes.len()), (4, 0));
}
