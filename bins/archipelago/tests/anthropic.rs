//! The example with a Claude model, against a server that behaves like Anthropic's.
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
use serde_json::{Value, json};
use testkit::anthropic::{AnthropicStub, Script};

/// The example's script, with a thought before each turn.
fn script() -> Script {
    let text = std::fs::read_to_string(example("simple_task").join("agent_script.json")).unwrap();
    let mut script = Script::parse(&text).unwrap();
    for (number, turn) in script.turns.iter_mut().enumerate() {
        let thought = json!([{"type": "thinking", "thinking": format!("This is step {number}.")}]);
        turn.message.insert("thinking_blocks".to_owned(), thought);
    }
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_runs_with_claude_thoughts_and_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let task = example_for("anthropic/claude-sonnet-4-5", "simple_task", folder.path());

    let stub = AnthropicStub::start(script()).await.unwrap();
    let run = folder.path().join("run");
    let call = archipelago()
        .env("ANTHROPIC_API_BASE", stub.base_url())
        .env("ANTHROPIC_API_KEY", stub.key())
        .arg("run")
        .arg(&task)
        .arg("--output")
        .arg(&run);
    let ended = tokio::task::spawn_blocking(|| call.end()).await.unwrap();
    assert_eq!(
        stub.refusals(),
        [""; 0],
        "a request that Anthropic would refuse"
    );
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(stub.turns_left(), 0);

    let trajectory: Trajectory = read(&run.join("trials/simple_task/1/trajectory.json"));
    assert_eq!(trajectory.status, AgentStatus::Completed);
    let answer = trajectory.final_answer.unwrap();
    assert!(answer.contains("/pictures/m8gt4/d6lqx.png"), "{answer}");
    let thoughts = trajectory
        .messages
        .iter()
        .filter(|message| message.extra.contains_key("thinking_blocks"))
        .count();
    assert_eq!(thoughts, 7);

    // The last request holds every thought with its signature, and the five pictures in their results.
    let requests = stub.requests();
    let last = &requests.last().unwrap().body;
    assert_eq!(
        last["thinking"],
        json!({"type": "enabled", "budget_tokens": 2048})
    );
    let blocks: Vec<&Value> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|turn| turn["content"].as_array())
        .flatten()
        .collect();
    let thinking = blocks.iter().filter(|block| block["type"] == "thinking");
    assert_eq!(thinking.count(), 6);
    let pictures = blocks
        .iter()
        .filter_map(|block| block["content"].as_array())
        .flatten()
        .filter(|part| part["type"] == "image");
    assert_eq!(pictures.count(), 5);
}
