//! Runs that were killed and go on: from a saved world where there is one, else anew. And trajectories
//! with pictures and long texts in files beside them.
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

use formats::blobs::read_trajectory;
use formats::diff::WorldDiff;
use formats::event::{Event, EventKind};
use formats::grades::Grades;
use formats::run::{Summary, WorldCheckpoint};
use formats::trajectory::{AgentStatus, Trajectory};
use program::{Call, archipelago, example, lines, read};
use serde_json::json;
use testkit::openai::{OpenAiStub, Script, Turn};

/// A folder with a task whose agent writes files, and with its run.
struct Bench {
    folder: tempfile::TempDir,
    model: OpenAiStub,
}

fn write(path: &str, content: &str) -> Turn {
    Turn::calls("write_file", json!({"file_path": path, "content": content}))
}

impl Bench {
    async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path().join("task");
        std::fs::create_dir(&task).unwrap();
        for file in [
            "mcp_config.json",
            "original_snapshot.zip",
            "initial_messages.json",
        ] {
            std::fs::copy(example("edit_files").join(file), task.join(file)).unwrap();
        }
        let documents = [
            ("orchestrator_config.json", json!({"model": "openai/stub"})),
            (
                "agent_config.json",
                json!({"agent_config_id": "loop_agent", "agent_name": "Loop",
                "agent_config_values": {}}),
            ),
        ];
        for (file, document) in documents {
            std::fs::write(task.join(file), document.to_string()).unwrap();
        }
        Self {
            folder,
            model: OpenAiStub::start(Script::new(turns)).await.unwrap(),
        }
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn trial(&self) -> PathBuf {
        self.run().join("trials/task/1")
    }

    fn call(&self, more: &[&str]) -> Call {
        // What a killed run leaves of its environment is not what these tests look at.
        let temporary = self.folder.path().join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        archipelago()
            .env("TMPDIR", temporary)
            .env("OPENAI_BASE_URL", self.model.base_url())
            .env("OPENAI_API_KEY", self.model.key())
            .arg("run")
            .arg(self.folder.path().join("task"))
            .arg("--output")
            .arg(self.run())
            .args(more)
    }

    /// Begins a run and kills it when the model was asked `requests` times.
    async fn killed(&self, requests: usize, more: &[&str]) {
        let running = self.call(more).start();
        let deadline = Instant::now() + Duration::from_secs(100);
        while self.model.requests().len() < requests {
            assert!(
                Instant::now() < deadline,
                "request {requests} does not come"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        running.signal("KILL");
        tokio::task::spawn_blocking(|| running.end()).await.unwrap();
    }

    async fn ends(&self, more: &[&str]) -> program::Ended {
        let call = self.call(more);
        tokio::task::spawn_blocking(|| call.end()).await.unwrap()
    }

    /// The files that the trial left in its world and were not there before.
    fn created(&self) -> Vec<String> {
        let diff: WorldDiff = read(&self.trial().join("diff.json"));
        diff.changes.into_iter().map(|change| change.path).collect()
    }
}

fn continued(trial: &Path) -> usize {
    let events: Vec<Event> = lines(&trial.join("events.jsonl"));
    let places: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(places, (0..events.len() as u64).collect::<Vec<_>>());
    let goes_on = |event: &&Event| matches!(event.kind, EventKind::RunContinued { .. });
    events.iter().filter(goes_on).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_trial_goes_on_from_its_saved_world() {
    let bench = Bench::new([
        write("/one.txt", "1"),
        write("/two.txt", "2"),
        write("/three.txt", "3"),
        Turn::says("too late").after_ms(100_000),
        // From here on it is another process.
        write("/four.txt", "4"),
        Turn::says("too late again").after_ms(100_000),
        Turn::says("Four files are written."),
    ])
    .await;
    // After two steps the world is saved, not after the third.
    bench.killed(4, &["--checkpoint", "2"]).await;
    let saved: WorldCheckpoint = read(&bench.trial().join("checkpoint.json"));
    assert!(bench.trial().join(&saved.world).is_file());

    // The third step is in the events and not in the world: it is forgotten, and asked for again.
    bench.killed(6, &["--resume", "--checkpoint", "2"]).await;
    let asked = bench.model.requests();
    let said = |request: usize| asked[request].body["messages"].as_array().unwrap().len();
    assert_eq!(said(4), said(2), "it goes on behind the second step");
    assert!(bench.trial().with_file_name("1.interrupted-1").is_dir());
    assert_eq!(continued(&bench.trial()), 1);

    // Killed once more before another world was saved: the same world serves again.
    let ended = bench.ends(&["--resume"]).await;
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("goes on from the world"),
        "{}",
        ended.stderr
    );
    assert_eq!(continued(&bench.trial()), 1);
    assert_eq!(
        bench.created(),
        ["filesystem/one.txt", "filesystem/two.txt"]
    );
    let trajectory: Trajectory = read(&bench.trial().join("trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    assert_eq!(
        trajectory.final_answer.as_deref(),
        Some("Four files are written.")
    );
    assert_eq!(bench.model.refusals(), [""; 0]);
    let summary: Summary = read(&bench.run().join("summary.json"));
    assert_eq!(
        (summary.trials[0].steps, summary.trials[0].tool_calls),
        (3, 2)
    );
    // Nothing is kept of what is settled.
    let left = std::fs::read_dir(bench.trial()).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("checkpoint")
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_saved_world_a_killed_trial_begins_anew() {
    let bench = Bench::new([
        write("/one.txt", "1"),
        Turn::says("too late").after_ms(100_000),
        write("/other.txt", "2"),
        Turn::says("One file is written."),
    ])
    .await;
    bench.killed(2, &[]).await;
    let ended = bench.ends(&["--resume"]).await;
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(continued(&bench.trial()), 0);
    assert_eq!(bench.created(), ["filesystem/other.txt"]);
    assert_eq!(bench.model.refusals(), [""; 0]);
}

/// A checkpoint whose world is gone, or whose events are not all there, is not trusted, and that is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_not_whole_is_told_and_not_used() {
    for (spoil, reason) in [
        ("world", "is not there"),
        ("events", "events before it are there"),
    ] {
        let bench = Bench::new([
            write("/one.txt", "1"),
            Turn::says("too late").after_ms(100_000),
            Turn::says("Nothing is written."),
        ])
        .await;
        bench.killed(2, &["--checkpoint", "1"]).await;
        let saved: WorldCheckpoint = read(&bench.trial().join("checkpoint.json"));
        if spoil == "world" {
            std::fs::remove_file(bench.trial().join(saved.world)).unwrap();
        } else {
            let path = bench.trial().join("events.jsonl");
            let text = std::fs::read_to_string(&path).unwrap();
            let half: Vec<&str> = text.lines().take(3).collect();
            std::fs::write(&path, half.join("\n") + "\n").unwrap();
        }
        let ended = bench.ends(&["--resume"]).await;
        assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("begins anew"), "{}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
        assert_eq!(bench.created(), [""; 0]);
    }
}

/// The file on disk is short; whoever reads it for grading, at once or later, sees all of it.
#[tokio::test(flavor = "multi_thread")]
async fn long_texts_lie_beside_the_trajectory_when_asked() {
    let long = "a line of a long file\n".repeat(2000);
    let look = Turn::calls("read_text_file", json!({"file_path": "/long.txt"}));
    let bench = Bench::new([write("/long.txt", &long), look, Turn::says("Read.")]).await;
    // In the arguments of the first call and in the result of the second.
    let check = "n=$(grep -o 'a line of a long file' trajectory.json | wc -l); \
                 if [ $n = 4000 ]; then echo '{\"passed\": true}'; \
                 else echo \"{\\\"passed\\\": false, \\\"message\\\": \\\"$n\\\"}\"; fi";
    let documents = [
        (
            "verifiers.json",
            json!([{"verifier_id": "v", "verifier_version": 1, "world_id": null,
            "task_id": null, "eval_config_id": "c", "verifier_values": {"command": ["sh", "-c", check]},
            "verifier_index": 0, "verifier_dependencies": null}]),
        ),
        (
            "eval_configs.json",
            json!([{"eval_config_id": "c", "eval_config_name": "c",
            "eval_defn_id": "command", "eval_config_values": {}}]),
        ),
        (
            "scoring_config.json",
            json!({"scoring_config_id": "s", "scoring_config_name": "s",
            "scoring_defn_id": "template", "scoring_config_values": {}}),
        ),
    ];
    for (file, document) in documents {
        let path = bench.folder.path().join("task").join(file);
        std::fs::write(path, document.to_string()).unwrap();
    }
    let ended = bench.ends(&["--blobs"]).await;
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let path = bench.trial().join("trajectory.json");
    let small: Trajectory = read(&path);
    let whole = read_trajectory(&path).unwrap();
    let longest = |run: &Trajectory| run.messages.iter().map(|m| m.text().len()).max().unwrap();
    assert!(longest(&small) < 1000 && longest(&whole) > 40_000);
    let kept = std::fs::read_dir(bench.trial().join("blobs")).unwrap();
    assert_eq!(kept.count(), 1);
    let score = || read::<Grades>(&bench.trial().join("grades.json")).verifier_results[0].score;
    assert!((score() - 1.0).abs() < 0.01, "{}", ended.stdout);

    let grades = bench.trial().join("grades.json");
    std::fs::remove_file(&grades).unwrap();
    let again = archipelago()
        .env("OPENAI_API_KEY", bench.model.key())
        .arg("grade")
        .arg(bench.run());
    let again = tokio::task::spawn_blocking(|| again.end()).await.unwrap();
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
    assert!((score() - 1.0).abs() < 0.01, "{}", again.stdout);
    let page = std::fs::read_to_string(bench.trial().join("report.html")).unwrap();
    assert!(
        !page.contains("kept in the file"),
        "the page shows references"
    );
}
