//! Recordings, kept answers and budgets of whole runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::Path;

use formats::owner::Owner;
use formats::run::{RunRecord, Summary};
use formats::trajectory::Trajectory;
use program::{Call, Ended, archipelago, copy_files, example, read};
use testkit::openai::{OpenAiStub, Script};

const TRIAL: &str = "trials/simple_task/1";

/// The example's script, each turn with its usage, as a server plays it.
async fn stub() -> OpenAiStub {
    let text = std::fs::read_to_string(example("simple_task").join("agent_script.json")).unwrap();
    let mut script = Script::parse(&text).unwrap().by_conversation();
    for turn in &mut script.turns {
        *turn = std::mem::take(turn).usage(10_000, 1_000);
    }
    OpenAiStub::start(script).await.unwrap()
}

fn run(output: &Path) -> Call {
    archipelago()
        .arg("run")
        .arg(example("simple_task"))
        .arg("--output")
        .arg(output)
}

fn asking(stub: &OpenAiStub, output: &Path) -> Call {
    run(output)
        .env("OPENAI_BASE_URL", stub.base_url())
        .env("OPENAI_API_KEY", stub.key())
        .args(["--model", "openai/gpt-4.1"])
}

async fn end(call: Call) -> Ended {
    tokio::task::spawn_blocking(|| call.end()).await.unwrap()
}

fn assert_done(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
}

/// The conversation of the trial, as it joins requests.
fn conversation(run: &Path) -> Trajectory {
    read(&run.join(TRIAL).join("trajectory.json"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_run_is_played_again_without_server_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let (first, recording) = (folder.path().join("first"), folder.path().join("recording"));
    let stub = stub().await;
    let ended = end(asking(&stub, &first).arg("--record").arg(&recording)).await;
    assert_done(&ended);
    let requests = stub.requests().len();
    let key = stub.key().to_owned();
    drop(stub);
    let record: RunRecord = read(&first.join("run.json"));
    assert_eq!(record.recording.as_deref(), recording.to_str());
    let file = std::fs::read_dir(&recording)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(!text.contains(&key));
    let exchanges = text
        .lines()
        .filter(|line| line.starts_with(r#"{"type":"exchange""#));
    // Those of the agent, and one of the scripted judge.
    let judged = exchanges
        .clone()
        .filter(|line| line.contains(r#""service":"grading""#))
        .count();
    assert!(judged >= 1);
    assert_eq!(exchanges.count(), requests + judged);

    // As a run of its own, under the recorded names.
    let ended = end(archipelago()
        .arg("replay")
        .arg(&first)
        .args(["--format", "json"]))
    .await;
    assert_done(&ended);
    assert!(
        ended.stderr.contains("all trials came out as in"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("not played"), "{}", ended.stderr);
    let before: Summary = read(&first.join("summary.json"));
    let after: Summary = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(after.trials[0].model, "openai/gpt-4.1");
    assert_eq!(after.trials[0].cost_usd, before.trials[0].cost_usd);
    assert_eq!(after.mean_score, Some(1.0));
    let again = folder.path().join("first-replay");
    let (one, other) = (conversation(&first), conversation(&again));
    assert_eq!(one.messages, other.messages);
    assert_eq!(one.final_answer, other.final_answer);

    // And as a model and a judge by name.
    let played = format!("replay/{}", recording.display());
    let by_name = folder.path().join("by-name");
    let ended = end(run(&by_name).args(["--model", &played, "--judge-model", &played])).await;
    assert_done(&ended);
    assert_eq!(conversation(&by_name).messages, one.messages);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_in_the_recording_is_a_mistake_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let (first, recording) = (folder.path().join("first"), folder.path().join("recording"));
    assert_done(&end(run(&first).arg("--record").arg(&recording)).await);
    // The task says something else now.
    let task = folder.path().join("simple_task");
    copy_files(&example("simple_task"), &task);
    let messages = task.join("initial_messages.json");
    let text = std::fs::read_to_string(&messages).unwrap();
    std::fs::write(
        &messages,
        text.replacen("content\": \"", "content\": \"Please! ", 1),
    )
    .unwrap();
    let played = format!("replay/{}", recording.display());
    let output = folder.path().join("second");
    let call = archipelago()
        .arg("run")
        .arg(&task)
        .arg("--output")
        .arg(&output);
    let ended = end(call.args(["--model", &played])).await;
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("Please!") && ended.stdout.contains("nearest"),
        "{}",
        ended.stdout
    );
    let summary: Summary = read(&output.join("summary.json"));
    let failure = summary.trials[0].outcome.failure.clone().unwrap();
    assert_eq!(
        (failure.owner, failure.kind.as_str()),
        (Owner::Configuration, "not_recorded")
    );

    // A run that was not recorded has nothing to play.
    assert_done(&end(run(&folder.path().join("plain"))).await);
    let ended = end(archipelago().arg("replay").arg(folder.path().join("plain"))).await;
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--record"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_answers_are_not_paid_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let stub = stub().await;
    let first = folder.path().join("first");
    assert_done(&end(asking(&stub, &first).arg("--cache").arg(&cache)).await);
    let requests = stub.requests().len();
    assert!(requests > 3);
    let second = folder.path().join("second");
    assert_done(&end(asking(&stub, &second).arg("--cache").arg(&cache)).await);
    assert_eq!(stub.requests().len(), requests);
    assert_eq!(
        conversation(&first).messages,
        conversation(&second).messages
    );
    let summary: Summary = read(&second.join("summary.json"));
    assert_eq!(summary.trials[0].cost_usd, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_stops_a_run_before_it_is_crossed() {
    let folder = tempfile::tempdir().unwrap();
    let stub = stub().await;
    // A reply may cost 32,768 tokens at 8 dollars a million, that is 0.262 dollars.
    let poor = folder.path().join("poor");
    let call = asking(&stub, &poor).args(["--max-cost", "0.2", "--attempts", "3"]);
    let ended = end(call.args(["--format", "json"])).await;
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(stub.requests().len(), 0, "it is not sent");
    let summary: Summary = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary.trials.len(), 1);
    let failure = summary.trials[0].outcome.failure.clone().unwrap();
    assert_eq!(
        (failure.owner, failure.kind.as_str()),
        (Owner::Configuration, "budget")
    );
    let budget = summary.budget.unwrap();
    assert_eq!((budget.refused_calls, budget.trials_not_begun), (1, 2));
    assert_eq!((budget.spent_usd, budget.max_cost_usd), (0.0, Some(0.2)));

    // 10,000 tokens at 2 dollars and 1,000 at 8 are 0.028 dollars a call: after two of them a third
    // may go beyond 0.33, after three it is sure to.
    let short = folder.path().join("short");
    let ended = end(asking(&stub, &short).args(["--max-cost-per-trial", "0.33"])).await;
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    let sent = stub.requests().len();
    assert!(sent == 2 || sent == 3, "{sent}");
    let summary: Summary = read(&short.join("summary.json"));
    let budget = summary.budget.unwrap();
    let spent = 0.028 * f64::from(u32::try_from(sent).unwrap());
    assert!((budget.spent_usd - spent).abs() < 1e-9, "{budget:?}");
    assert_eq!(budget.spent_tokens, 11_000 * sent as u64);
    assert!(
        ended.stdout.contains("budget: ") && ended.stdout.contains("$0.3300 a trial"),
        "{}",
        ended.stdout
    );

    // With enough, the run that was stopped goes on.
    let call = asking(&stub, &poor).args(["--max-cost", "5", "--attempts", "3", "--resume"]);
    assert_done(&end(call).await);
    let summary: Summary = read(&poor.join("summary.json"));
    assert_eq!((summary.scored, summary.mean_score), (3, Some(1.0)));
}

#[test]
fn limits_are_checked_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let ended = run(&output).env("OPENAI_REQUESTS_PER_MINUTE", "some").end();
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("OPENAI_REQUESTS_PER_MINUTE") && ended.stderr.contains("`some`"),
        "{}",
        ended.stderr
    );
    assert!(!output.exists());
    let ended = run(&output).args(["--model", "replay/nowhere"]).end();
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("cannot read the recording"),
        "{}",
        ended.stderr
    );
}
