//! The two examples, run as a user runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use formats::diff::{ChangeKind, WorldDiff};
use formats::event::Event;
use formats::grades::{Grades, GradingStatus};
use formats::run::{LedgerEntry, Summary, TrialState};
use formats::trajectory::{AgentStatus, Trajectory};
use program::{Ended, archipelago, example, lines, read};

#[test]
fn simple_task_is_worked_graded_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let Ended {
        code,
        stdout,
        stderr,
    } = archipelago()
        .args(["run"])
        .arg(example("simple_task"))
        .arg("--output")
        .arg(&run)
        .end();
    assert_eq!(code, 0, "{stdout}\n{stderr}");

    // The steps as they happened, with tool names.
    assert!(stderr.contains("read_image_file"), "{stderr}");
    // The account at the end.
    for expected in ["Answer", "World", "Score", "nothing changed"] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    let trial = run.join("trials/simple_task/1");
    let trajectory: Trajectory = read(&trial.join("trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    let answer = trajectory.final_answer.unwrap();
    assert!(stdout.contains(answer.lines().next().unwrap()), "{stdout}");

    let grades: Grades = read(&trial.join("grades.json"));
    assert_eq!(grades.grading_run_status, GradingStatus::Completed);
    assert!(grades.verifier_results.len() >= 2, "{grades:?}");
    assert!(
        (grades.scoring_results.final_score - 1.0).abs() < 1e-9,
        "{grades:?}"
    );

    let diff: WorldDiff = read(&trial.join("diff.json"));
    assert_eq!(diff.changes, []);
    assert!(diff.files_before > 0 && diff.files_before == diff.files_after);

    let summary: Summary = read(&run.join("summary.json"));
    assert_eq!(summary.mean_score, Some(1.0));
    assert!(summary.trials[0].steps > 1 && summary.trials[0].tool_calls > 1);

    let events: Vec<Event> = lines(&trial.join("events.jsonl"));
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());

    let states: Vec<TrialState> = lines::<LedgerEntry>(&run.join("ledger.jsonl"))
        .iter()
        .map(|entry| entry.state)
        .collect();
    assert_eq!(
        states,
        [
            TrialState::Started,
            TrialState::EnvironmentReady,
            TrialState::AgentEnded,
            TrialState::SnapshotSaved,
            TrialState::Graded,
            TrialState::Finished
        ]
    );
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(
        page.contains("simple_task"),
        "the run's page lacks its trial"
    );
    let page = std::fs::read_to_string(trial.join("report.html")).unwrap();
    assert!(
        page.contains("simple_task") && !page.contains("http://"),
        "the page loads something"
    );
}

#[test]
fn edit_files_changes_the_world_as_its_diff_says() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let ended = archipelago()
        .args(["run", "--format", "json"])
        .arg(example("edit_files"))
        .arg("--output")
        .arg(&run)
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let summary: Summary = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary.mean_score, Some(1.0));

    let trial = run.join("trials/edit_files/1");
    let diff: WorldDiff = read(&trial.join("diff.json"));
    for kind in [
        ChangeKind::Created,
        ChangeKind::Modified,
        ChangeKind::Deleted,
    ] {
        assert!(diff.count(kind) > 0, "nothing {}: {diff:?}", kind.as_str());
    }
    // The zip holds what the diff says: the created file is in it, the deleted one is not.
    let zip = std::fs::File::open(trial.join("final_snapshot.zip")).unwrap();
    let zip = zip::ZipArchive::new(zip).unwrap();
    let names: Vec<String> = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    for change in &diff.changes {
        assert_eq!(
            names.contains(&change.path),
            change.kind != ChangeKind::Deleted,
            "{change:?} in {names:?}"
        );
    }
    // The same as the program shows on its own.
    let shown = archipelago()
        .arg("diff")
        .arg(example("edit_files").join("original_snapshot.zip"))
        .arg(trial.join("final_snapshot.zip"))
        .args(["--format", "json"])
        .end();
    assert_eq!(
        serde_json::from_str::<WorldDiff>(&shown.stdout).unwrap(),
        diff
    );
}

/// The same task, the same outcome: grades and diff do not depend on the attempt, on what runs
/// beside it, or on the port and the folders that it got.
#[test]
fn attempts_side_by_side_come_out_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let ended = archipelago()
        .args([
            "run",
            "--attempts",
            "3",
            "--concurrency",
            "3",
            "--format",
            "json",
        ])
        .arg(example("edit_files"))
        .arg("--output")
        .arg(&run)
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let summary: Summary = serde_json::from_str(&ended.stdout).unwrap();
    let attempts: Vec<u32> = summary.trials.iter().map(|trial| trial.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let diffs: Vec<WorldDiff> = (1..=3)
        .map(|attempt| read(&run.join(format!("trials/edit_files/{attempt}/diff.json"))))
        .collect();
    assert!(diffs.windows(2).all(|pair| pair[0] == pair[1]), "{diffs:?}");
}

#[test]
fn every_example_is_valid_and_schemas_are_printed() {
    let ended = archipelago()
        .arg("validate")
        .arg(example("simple_task"))
        .arg(example("edit_files"))
        .end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stderr, "", "warnings about our own examples");

    let names = archipelago().arg("schema").end().stdout;
    for name in names.lines() {
        let schema = archipelago().args(["schema", name]).end();
        assert_eq!(schema.code, 0);
        let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
        assert!(schema.get("$schema").is_some(), "{name}");
    }
    assert_eq!(archipelago().args(["schema", "nonsense"]).end().code, 2);
}
