//! The programs one by one, as `docs/by-hand.md` and scripts of the reference use them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::Path;
use std::process::Command;

use formats::grades::{Grades, GradingStatus};
use formats::trajectory::{AgentStatus, Trajectory};
use program::{example, read, root, wait_for_no_process};

/// What the script needs: our programs, built beside this one by `cargo test --workspace`, and
/// tools of the system.
fn missing(bin: &Path) -> Vec<String> {
    let ours = [
        "archipelago-env",
        "archipelago-runner",
        "archipelago-grader",
        "filesystem-server",
    ]
    .into_iter()
    .map(|name| bin.join(name))
    .filter(|path| !path.exists())
    .map(|path| path.display().to_string());
    let tools = ["bash", "curl", "unzip", "tar"].into_iter().filter(|tool| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {tool}")])
            .output();
        !found.unwrap().status.success()
    });
    ours.chain(tools.map(str::to_owned)).collect()
}

#[test]
fn the_programs_work_one_by_one() {
    let bin = Path::new(env!("CARGO_BIN_EXE_archipelago"))
        .parent()
        .unwrap();
    let missing = missing(bin);
    if !testkit::available(&missing.join(", "), missing.is_empty()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let done = Command::new("bash")
        .arg(root().join("docs/by-hand.sh"))
        .arg(example("simple_task"))
        .arg(&work)
        .env("PATH", path)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{log}");

    let trajectory: Trajectory = read(&work.join("trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    let grades: Grades = read(&work.join("grades.json"));
    assert_eq!(grades.grading_run_id, "gr1");
    assert_eq!(grades.grading_run_status, GradingStatus::Completed);
    assert!((grades.scoring_results.final_score - 1.0).abs() < 1e-9);
    let left = wait_for_no_process(work.to_str().unwrap());
    assert!(left.is_empty(), "left behind: {left:?}");
}
