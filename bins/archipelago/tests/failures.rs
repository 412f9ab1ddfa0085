//! What users get wrong and what breaks: one clear message, the right exit code, no process left,
//! and what was produced stays on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use formats::owner::Owner;
use formats::run::{LedgerEntry, Summary, TrialState};
use formats::trajectory::{AgentStatus, Trajectory};
use program::{Ended, archipelago, copy_files, example, lines, read};
use serde_json::{Value, json};

/// A copy of `examples/simple_task` that a test may spoil.
struct Task {
    folder: tempfile::TempDir,
}

impl Task {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy_files(&example("simple_task"), folder.path());
        Self { folder }
    }

    fn with(self, file: &str, content: &Value) -> Self {
        self.with_text(file, &content.to_string())
    }

    fn with_text(self, file: &str, text: &str) -> Self {
        std::fs::write(self.path().join(file), text).unwrap();
        self
    }

    fn without(self, file: &str) -> Self {
        std::fs::remove_file(self.path().join(file)).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A run of the task with its output in `run`.
    fn run(&self, run: &Path, more: &[&str]) -> Ended {
        archipelago()
            .arg("run")
            .arg(self.path())
            .arg("--output")
            .arg(run)
            .args(more)
            .end()
    }

    /// Runs the task, which must be refused before anything is made.
    fn refused(&self, more: &[&str]) -> String {
        let output = tempfile::tempdir().unwrap();
        let run = output.path().join("run");
        let ended = self.run(&run, more);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(!run.exists(), "a refused run leaves a folder");
        ended.stderr
    }
}

/// Where a run leaves its one trial.
fn trial(run: &Path) -> PathBuf {
    let tasks = std::fs::read_dir(run.join("trials")).unwrap();
    let task = tasks.map(|entry| entry.unwrap().path()).next().unwrap();
    task.join("1")
}

fn says(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn a_task_that_is_no_folder_is_named() {
    let ended = archipelago().args(["run", "no/such/task"]).end();
    assert_eq!(ended.code, 2);
    says(
        &ended.stderr,
        &["error: task `no/such/task` is not a folder"],
    );
}

#[test]
fn missing_and_malformed_files_are_told_together() {
    let task = Task::new()
        .without("initial_messages.json")
        .with_text("verifiers.json", "[\n  {\"verifier_id\": \"v\",}\n]");
    says(
        &task.refused(&[]),
        &[
            "cannot read initial messages",
            "initial_messages.json",
            "verifiers.json`, line 2, column",
        ],
    );
}

#[test]
fn unknown_ids_are_told_with_the_known_ones() {
    let task = Task::new()
        .with(
            "agent_config.json",
            &json!({"agent_config_id": "no_agent", "agent_name": "x", "agent_config_values": {}}),
        )
        .with(
            "eval_configs.json",
            &json!([
                {"eval_config_id": "ec_pattern", "eval_config_name": "x", "eval_defn_id": "no_eval", "eval_config_values": {}},
                {"eval_config_id": "ec_tool_call", "eval_config_name": "x", "eval_defn_id": "tool_call_check", "eval_config_values": {}},
                {"eval_config_id": "ec_output_llm", "eval_config_name": "x", "eval_defn_id": "output_llm", "eval_config_values": {}}
            ]),
        )
        .with(
            "scoring_config.json",
            &json!({"scoring_config_id": "s", "scoring_config_name": "s", "scoring_defn_id": "no_scoring", "scoring_config_values": {}}),
        );
    says(
        &task.refused(&[]),
        &[
            "no_agent",
            "react_toolbelt_agent",
            "no_eval",
            "output_llm",
            "no_scoring",
            "template",
        ],
    );
}

#[test]
fn a_model_without_credentials_is_refused_with_the_variable() {
    let stderr = Task::new().refused(&["--model", "openai/gpt-4.1"]);
    says(&stderr, &["openai/gpt-4.1", "OPENAI_API_KEY"]);
    let stderr = Task::new().refused(&["--judge-model", "openai/gpt-4.1"]);
    says(&stderr, &["OPENAI_API_KEY"]);
    let stderr = Task::new().refused(&["--model", "gpt-4.1"]);
    says(&stderr, &["gpt-4.1", "provider/model"]);
}

#[test]
fn wrong_flags_are_refused() {
    for flags in [
        &["run"][..],
        &["run", "x", "--attempts", "0"],
        &["run", "x", "--resume"],
        &["nonsense"],
    ] {
        assert_eq!(archipelago().args(flags).end().code, 2, "{flags:?}");
    }
    says(
        &Task::new().refused(&["--sandbox", "moon"]),
        &["`--sandbox`", "moon"],
    );
}

/// Pitfall A1 as a user of `run` meets it.
#[test]
fn an_mcp_program_that_does_not_exist_is_told_at_once() {
    let task = Task::new().with(
        "mcp_config.json",
        &json!({"mcpServers": {"files": {"transport": "stdio", "command": "no-such-program"}}}),
    );
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let started = Instant::now();
    let ended = task.run(&run, &[]);
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "waits for a limit"
    );
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    says(
        &ended.stdout,
        &["files", "no-such-program", "configuration"],
    );
    let summary: Summary = read(&run.join("summary.json"));
    let failure = summary.trials[0].outcome.failure.clone().unwrap();
    assert_eq!(failure.owner, Owner::Configuration);
    assert_eq!(summary.trials[0].outcome.score, None, "not a score of zero");
}

#[test]
fn an_mcp_program_that_ends_at_once_is_told_with_its_last_words() {
    let task = Task::new().with(
        "mcp_config.json",
        &json!({"mcpServers": {"files": {"transport": "stdio", "command": "sh",
            "args": ["-c", "echo my disk is on fire >&2; exit 7"]}}}),
    );
    let output = tempfile::tempdir().unwrap();
    let ended = task.run(&output.path().join("run"), &[]);
    assert!(
        [2, 3].contains(&ended.code),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    says(&ended.stdout, &["files", "my disk is on fire", "7"]);
}

#[test]
fn a_broken_world_is_refused_with_its_name() {
    let task = Task::new().with_text("original_snapshot.zip", "this is no zip");
    let output = tempfile::tempdir().unwrap();
    let ended = task.run(&output.path().join("run"), &[]);
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    says(&ended.stdout, &["original_snapshot.zip"]);
}

/// The script ends before the agent does: what there is stays on disk, and nothing is graded.
#[test]
fn a_run_that_breaks_off_keeps_trajectory_events_and_snapshot() {
    let task = Task::new().with(
        "agent_script.json",
        &json!({"turns": [{"content": "I begin.",
            "tool_calls": [{"name": "toolbelt_list_tools", "arguments": {}}]}]}),
    );
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let ended = task.run(&run, &[]);
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    says(&ended.stdout, &["agent_script.json", "turn 2"]);
    let trial = trial(&run);
    let trajectory: Trajectory = read(&trial.join("trajectory.json"));
    assert_ne!(trajectory.status, AgentStatus::Completed);
    assert_eq!(
        trajectory.messages.len(),
        4,
        "system, user, reply, tool result"
    );
    for file in [
        "events.jsonl",
        "final_snapshot.zip",
        "diff.json",
        "report.html",
        "environment.log",
    ] {
        assert!(trial.join(file).exists(), "no {file}");
    }
    assert!(
        !trial.join("grades.json").exists(),
        "graded without an answer"
    );
}

#[test]
fn the_step_limit_is_the_models_failure() {
    let task = Task::new().with(
        "agent_config.json",
        &json!({"agent_config_id": "react_toolbelt_agent", "agent_name": "x",
            "agent_config_values": {"max_steps": 2}}),
    );
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let ended = task.run(&run, &[]);
    assert_eq!(ended.code, 1, "{}\n{}", ended.stdout, ended.stderr);
    let summary: Summary = read(&run.join("summary.json"));
    assert_eq!(summary.model_failures, 1);
    assert_eq!(summary.mean_score, Some(0.0));
}

/// Pitfall A11: a judge that cannot answer is not a fail, the other verifiers keep theirs, and
/// grading again touches only what could not be judged.
#[test]
fn a_judge_that_cannot_answer_leaves_an_error_that_can_be_graded_again() {
    let broken = json!({"rules": [{"when": {"any_message_contains": "lighthouse"},
        "reply": {"content": "I would rather not say."}}]});
    let working =
        std::fs::read_to_string(example("simple_task").join("judge_script.json")).unwrap();
    let task = Task::new().with("judge_script.json", &broken);
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let ended = task.run(&run, &[]);
    assert_eq!(ended.code, 3, "{}\n{}", ended.stdout, ended.stderr);
    let summary: Summary = read(&run.join("summary.json"));
    let outcome = &summary.trials[0].outcome;
    assert_eq!(outcome.score, None);
    let coverage = outcome.coverage.unwrap();
    assert_eq!(
        (coverage.total, coverage.passed, coverage.errors),
        (3, 2, 1)
    );

    let task = task.with_text("judge_script.json", &working);
    assert!(task.path().exists());
    let graded = archipelago()
        .arg("grade")
        .arg(trial(&run))
        .args(["--only", "errors"])
        .end();
    assert_eq!(graded.code, 0, "{}", graded.stderr);
    says(&graded.stderr, &["ver_answer"]);
    assert!(
        !graded.stderr.contains("ver_path"),
        "judged again: {}",
        graded.stderr
    );
    says(&graded.stdout, &["score 1"]);
    let summary: Summary = read(&run.join("summary.json"));
    assert_eq!(summary.mean_score, Some(1.0));
    let page = std::fs::read_to_string(trial(&run).join("report.html")).unwrap();
    assert!(
        !page.contains("could not be judged"),
        "the page shows the former grades"
    );
}

/// A script whose second reply takes as long as a test may.
fn slow_task() -> Task {
    Task::new().with(
        "agent_script.json",
        &json!({"turns": [
            {"content": "I begin.", "tool_calls": [{"name": "toolbelt_list_tools", "arguments": {}}]},
            {"content": "Too late.", "delay_ms": 100_000}
        ]}),
    )
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < deadline, "no {what} in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The events of the trial hold a tool result: the agent waits for its second reply.
fn is_waiting(run: &Path) -> bool {
    let pattern = run.join("trials");
    std::fs::read_dir(pattern)
        .ok()
        .and_then(|mut tasks| Some(tasks.next()?.ok()?.path().join("1/events.jsonl")))
        .and_then(|path| std::fs::read_to_string(path).ok())
        .is_some_and(|events| events.contains("\"type\":\"tool_result\""))
}

#[test]
fn ctrl_c_in_the_middle_keeps_what_there_is() {
    let task = slow_task();
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let running = archipelago()
        .arg("run")
        .arg(task.path())
        .arg("--output")
        .arg(&run)
        .start();
    wait_for("second step", || is_waiting(&run));
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}\n{}", ended.stdout, ended.stderr);
    let trial = trial(&run);
    let trajectory: Trajectory = read(&trial.join("trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Cancelled);
    assert_eq!(trajectory.messages.len(), 4);
    assert!(trial.join("final_snapshot.zip").exists());
    let states: Vec<LedgerEntry> = lines(&run.join("ledger.jsonl"));
    let last = states.last().unwrap();
    assert_eq!(last.state, TrialState::Finished);
    let failure = last.outcome.clone().unwrap().failure.unwrap();
    assert_eq!(failure.owner, Owner::Cancelled);
}

/// Killed without a chance to clean up: no process outlives it, the events are there, and the run
/// can go on.
#[test]
fn a_killed_run_leaves_no_process_and_is_resumed() {
    let task = slow_task();
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    let temporary = tempfile::tempdir().unwrap();
    let running = archipelago()
        .env("TMPDIR", temporary.path())
        .arg("run")
        .arg(task.path())
        .arg("--output")
        .arg(&run)
        .start();
    wait_for("second step", || is_waiting(&run));
    running.signal("KILL");
    // `end` checks that the environment and the file server are gone too.
    running.end();
    let left = program::wait_for_no_process(temporary.path().to_str().unwrap());
    assert!(left.is_empty(), "left behind: {left:?}");

    // Without the wait, the same script is another task: it may not be mixed into this run.
    let script = std::fs::read_to_string(example("simple_task").join("agent_script.json")).unwrap();
    let original = std::fs::read_to_string(task.path().join("agent_script.json")).unwrap();
    let task = task.with_text("agent_script.json", &script);
    let refused = task.run(&run, &["--resume"]);
    assert_eq!(refused.code, 2);
    says(
        &refused.stderr,
        &["other files in task", "cannot be resumed"],
    );

    let task = task.with_text("agent_script.json", &original);
    let refused = task.run(&run, &[]);
    assert_eq!(refused.code, 2);
    says(&refused.stderr, &["holds a run already"]);
    let running = archipelago()
        .arg("run")
        .arg(task.path())
        .arg("--output")
        .arg(&run)
        .arg("--resume")
        .start();
    let kept = trial(&run).with_file_name("1.interrupted-1");
    wait_for("second attempt", || kept.exists() && is_waiting(&run));
    running.signal("TERM");
    assert_eq!(running.end().code, 130);
    assert!(
        kept.join("events.jsonl").exists(),
        "the killed attempt is gone"
    );
}

#[test]
fn a_finished_run_is_not_repeated() {
    let task = Task::new();
    let output = tempfile::tempdir().unwrap();
    let run = output.path().join("run");
    assert_eq!(task.run(&run, &[]).code, 0);
    let again = task.run(&run, &["--resume", "--attempts", "2"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let entries: Vec<LedgerEntry> = lines(&run.join("ledger.jsonl"));
    let started: Vec<u32> = entries
        .iter()
        .filter(|entry| entry.state == TrialState::Started)
        .map(|entry| entry.attempt)
        .collect();
    assert_eq!(
        started,
        [1, 2],
        "the first attempt counts, the second is new"
    );
    let summary: Summary = read(&run.join("summary.json"));
    assert_eq!(summary.scored, 2);
}
