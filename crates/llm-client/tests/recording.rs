//! Recordings: written while real exchanges happen, and played back exactly.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use calls::{PATIENCE, object};
use formats::Object;
use formats::chat::{Message, ToolDefinition};
use formats::owner::Owner;
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, Delta, Model, Models,
    Recording, RetryPolicy, Tape,
};
use serde_json::json;
use testkit::anthropic::AnthropicStub;
use testkit::openai::{Fault, OpenAiStub, Options, Script, Turn};

fn models(variables: impl Fn(&str) -> Option<String>) -> Models {
    Models::new(variables).with_retry(RetryPolicy {
        attempts: 4,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(50),
        total: PATIENCE,
    })
}

fn played(path: &Path) -> Model {
    Models::new(|_| None)
        .resolve(&format!("replay/{}", path.display()), &Object::new())
        .unwrap()
}

/// A request, and who makes it.
#[derive(Default, Clone)]
struct Ask {
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
    extra_args: Object,
    trajectory: Option<&'static str>,
    nonce: Option<&'static str>,
}

fn says(text: &str) -> Ask {
    Ask {
        messages: vec![Message::user(text)],
        ..Ask::default()
    }
}

/// What can be heard of a call: its end, and the errors that were repeated.
type Heard = (Result<ChatResponse, ChatError>, Vec<String>);

impl Ask {
    async fn of(&self, model: &Model) -> Heard {
        let request = ChatRequest {
            messages: &self.messages,
            tools: &self.tools,
            extra_args: &self.extra_args,
            timeout: PATIENCE,
            labels: CallLabels {
                trajectory_id: self.trajectory,
                nonce: self.nonce,
                ..CallLabels::default()
            },
        };
        let retries = Mutex::new(Vec::new());
        let answer = model
            .chat(request, &|notice| {
                retries.lock().unwrap().push(format!("{:?}", notice.error));
            })
            .await;
        (answer, retries.into_inner().unwrap())
    }

    async fn text(&self, model: &Model) -> String {
        self.of(model).await.0.unwrap().message.text().into_owned()
    }

    async fn refused(&self, model: &Model) -> String {
        let error = self.of(model).await.0.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::NotRecorded, "{error}");
        assert_eq!(error.kind.owner(), Owner::Configuration);
        assert!(!error.is_retryable());
        error.message
    }
}

fn assert_same(heard: &Heard, again: &Heard) {
    assert_eq!(heard.1, again.1);
    match (&heard.0, &again.0) {
        (Ok(one), Ok(other)) => {
            let duration = one.duration;
            let other = ChatResponse {
                duration,
                ..other.clone()
            };
            assert_eq!(*one, other);
        }
        (Err(one), Err(other)) => assert_eq!(format!("{one:?}"), format!("{other:?}")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn replies_retries_and_errors_are_played_as_they_were() {
    let stub = OpenAiStub::start(Script::new([
        Turn::fails(429).header("retry-after-ms", "20"),
        Turn::faulty(Fault::Drop),
        Turn::calls("read", json!({"path": "/a"})).usage(1_000_000, 100_000),
        Turn::says("Red.").field("reasoning_content", json!("hm")),
        Turn::fails(400).header("x-request-id", "req_7"),
    ]))
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::create(folder.path()).unwrap();
    let model = models(stub.variables())
        .with_tape(tape)
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap();

    let first = Ask {
        tools: vec![ToolDefinition::new(
            "read",
            "Reads.",
            json!({"type": "object", "properties": {}}),
        )],
        extra_args: object(&json!({"temperature": 0.5, "timeout": 20})),
        ..says("What colour?")
    };
    let heard = first.of(&model).await;
    let call = heard.0.as_ref().unwrap().message.clone();
    assert_eq!((heard.1.len(), call.tool_calls.len()), (2, 1));
    let mut second = first.clone();
    second.messages.push(call.clone());
    second
        .messages
        .push(Message::tool(&*call.tool_calls[0].id, "read", "red"));
    let answer = second.of(&model).await;
    let failure = says("something else").of(&model).await;
    assert!(failure.0.is_err());
    drop(stub);

    // The server is gone, and nobody has a key.
    let replay = played(folder.path());
    assert_eq!(replay.provider(), "replay");
    let mut without_limit = first.clone();
    without_limit.extra_args.shift_remove("timeout");
    let started = Instant::now();
    assert_same(&heard, &without_limit.of(&replay).await);
    assert_same(&answer, &second.of(&replay).await);
    assert_same(&failure, &says("something else").of(&replay).await);
    assert!(started.elapsed() < PATIENCE, "what is played does not wait");
    // 1,000,000 at 2 and 100,000 at 8 dollars a million, as when it was recorded.
    assert_eq!(heard.0.unwrap().cost_usd, Some(2.8));
}

#[tokio::test]
async fn one_file_answers_under_the_recorded_names() {
    let openai = OpenAiStub::start(Script::new([Turn::says("from one")]))
        .await
        .unwrap();
    let claude = AnthropicStub::start(Script::new([Turn::says("from the other")]))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::create(folder.path()).unwrap();
    let (to_openai, to_claude) = (openai.variables(), claude.variables());
    let models =
        models(move |name| to_openai(name).or_else(|| to_claude(name))).with_tape(tape.clone());
    let names = ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5"];
    for name in names {
        says("same")
            .of(&models.resolve(name, &Object::new()).unwrap())
            .await
            .0
            .unwrap();
    }
    let recording = Recording::open(tape.path()).unwrap();
    assert_eq!(
        recording.models().into_iter().collect::<Vec<_>>(),
        [names[1], names[0]]
    );
    assert_eq!(recording.len(), 2);
    let replay = Models::new(|_| None).with_replay(Arc::new(recording));
    let claude = replay.resolve(names[1], &Object::new()).unwrap();
    assert_eq!(claude.name(), names[1]);
    assert_eq!(says("same").text(&claude).await, "from the other");
    let text = says("same").refused(&claude).await;
    assert!(
        text.contains("in it 1 times, and was made once more"),
        "{text}"
    );
    let openai = replay.resolve(names[0], &Object::new()).unwrap();
    assert_eq!(says("same").text(&openai).await, "from one");
    let o3 = replay.resolve("openai/o3", &Object::new()).unwrap();
    let text = says("same").refused(&o3).await;
    assert!(
        text.contains("openai/o3") && text.contains("openai/gpt-4.1"),
        "{text}"
    );
}

#[tokio::test]
async fn streams_are_played_piece_by_piece() {
    let stub = AnthropicStub::start(Script::new([Turn::says("It is red.").field(
        "thinking_blocks",
        json!([{"type": "thinking", "thinking": "hm"}]),
    )]))
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = models(stub.variables())
        .with_tape(Tape::create(folder.path()).unwrap())
        .resolve("anthropic/claude-sonnet-4-5", &Object::new())
        .unwrap();
    let pieces = async |model: &Model| {
        let told = Mutex::new(Vec::new());
        let messages = [Message::user("colour?")];
        let extra_args = object(&json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}));
        let request = ChatRequest {
            messages: &messages,
            tools: &[],
            extra_args: &extra_args,
            timeout: PATIENCE,
            labels: CallLabels::default(),
        };
        let sink = |delta: Delta<'_>| told.lock().unwrap().push(format!("{delta:?}"));
        let answer = model.chat_streaming(request, &|_| {}, &sink).await.unwrap();
        (answer.message, told.into_inner().unwrap())
    };
    let recorded = pieces(&model).await;
    assert!(recorded.1.len() >= 2, "{:?}", recorded.1);
    assert_eq!(recorded, pieces(&played(folder.path())).await);
}

#[tokio::test]
async fn the_same_request_again_and_trials_side_by_side_get_their_own_answers() {
    let turns = (0..6).map(|number| Turn::says(format!("answer {number}")));
    let stub = OpenAiStub::start(Script::new(turns)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = models(stub.variables())
        .with_tape(Tape::create(folder.path()).unwrap())
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap();
    let by = |trajectory| Ask {
        trajectory: Some(trajectory),
        ..says("go")
    };
    let order = ["a", "b", "b", "a", "c", "a"];
    for trajectory in order {
        by(trajectory).of(&model).await.0.unwrap();
    }
    let replay = played(folder.path());
    // Each in its own order, whatever comes between; an unknown one gets what is left.
    for (trajectory, expected) in [("b", 1), ("a", 0), ("b", 2), ("a", 3), ("d", 4), ("a", 5)] {
        assert_eq!(
            by(trajectory).text(&replay).await,
            format!("answer {expected}"),
            "{trajectory}"
        );
    }
    let text = by("a").refused(&replay).await;
    assert!(text.contains("6 times"), "{text}");

    // All at once: each answer once.
    let replay = played(folder.path());
    let all = futures::future::join_all(order.map(|trajectory| {
        let replay = replay.clone();
        async move { by(trajectory).text(&replay).await }
    }))
    .await;
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort();
    assert_eq!(
        all,
        (0..6)
            .map(|number| format!("answer {number}"))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn what_is_not_recorded_is_told_with_its_difference() {
    let stub = OpenAiStub::start(Script::new([Turn::says("x"), Turn::says("y")]))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = models(stub.variables())
        .with_tape(Tape::create(folder.path()).unwrap())
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap();
    let recorded = Ask {
        messages: vec![
            Message::system("Be brief."),
            Message::user("The file is /tmp/one"),
        ],
        tools: vec![ToolDefinition::new(
            "read",
            "Reads.",
            json!({"type": "object", "properties": {}}),
        )],
        extra_args: object(&json!({"seed": 1})),
        ..Ask::default()
    };
    recorded.of(&model).await.0.unwrap();
    says("Bye").of(&model).await.0.unwrap();
    let replay = played(folder.path());
    let mut other = recorded.clone();
    other.messages[1] = Message::user("The file is /tmp/two");
    let text = other.refused(&replay).await;
    assert!(
        text.contains("message 2 of the request")
            && text.contains("/tmp/two")
            && text.contains("/tmp/one"),
        "{text}"
    );
    assert!(
        text.contains(&folder.path().display().to_string()),
        "{text}"
    );
    let mut longer = recorded.clone();
    longer.messages.push(Message::user("and more"));
    let text = longer.refused(&replay).await;
    assert!(
        text.contains("ends before message 3") && text.contains("and more"),
        "{text}"
    );
    let mut shorter = recorded.clone();
    shorter.messages.pop();
    let text = shorter.refused(&replay).await;
    assert!(
        text.contains("has 1 messages") && text.contains("has 2"),
        "{text}"
    );
    let mut tools = recorded.clone();
    tools.tools[0].function.description = "Writes.".to_owned();
    let text = tools.refused(&replay).await;
    assert!(
        text.contains("tools") && text.contains("Writes.") && text.contains("Reads."),
        "{text}"
    );
    let mut parameters = recorded.clone();
    parameters.extra_args = object(&json!({"seed": 2}));
    let text = parameters.refused(&replay).await;
    assert!(
        text.contains("`seed` is 2, and 1 in the recording"),
        "{text}"
    );
    // Nothing of this has used up the exchange.
    recorded.of(&replay).await.0.unwrap();
}

#[tokio::test]
async fn no_secret_is_in_the_file() {
    let key = "sk-stub-very-secret-1";
    let stub = OpenAiStub::start_with(Options::new(
        Script::new([
            Turn::says(format!("your key is {key}")),
            Turn::fails_with(400, json!({"error": {"message": format!("bad key {key}")}})),
        ]),
        key,
    ))
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::create(folder.path()).unwrap();
    let address = stub
        .base_url()
        .replace("http://", "http://someone:pass-word-9@");
    let extra_args = object(&json!({
        "api_base": address, "api_key": key, "extra_headers": {"x-team": "header-secret-5"},
        "metadata": {"hook": "https://u:hook-secret-3@example.org/x?token=query-secret-4&a=1"}
    }));
    let model = models(|name| (name == "GROQ_API_KEY").then(|| "gsk-other-secret-2".to_owned()))
        .with_tape(tape.clone())
        .resolve("openai/gpt-4.1", &extra_args)
        .unwrap();
    let ask = Ask {
        extra_args,
        ..says(&format!("my keys are {key} and gsk-other-secret-2"))
    };
    let heard = ask.of(&model).await;
    assert!(heard.0.unwrap().message.text().contains(key));
    assert!(ask.of(&model).await.0.is_err());
    let file = std::fs::read_to_string(tape.path()).unwrap();
    for secret in [
        key,
        "gsk-other-secret-2",
        "pass-word-9",
        "header-secret-5",
        "hook-secret-3",
        "query-secret-4",
        "someone",
    ] {
        assert!(!file.contains(secret), "`{secret}` in {file}");
    }
    assert!(file.contains("my keys are [key] and [key]") && file.contains("your key is [key]"));
    // It still answers the one who asks with the secret.
    let replay =
        Models::new(|name| (name == "GROQ_API_KEY").then(|| "gsk-other-secret-2".to_owned()))
            .resolve(
                &format!("replay/{}", folder.path().display()),
                &ask.extra_args,
            )
            .unwrap();
    assert_eq!(ask.text(&replay).await, "your key is [key]");
}

#[tokio::test]
async fn what_was_drawn_at_random_makes_no_difference() {
    let stub = OpenAiStub::start(Script::new([Turn::says("between c0de77aa1")]))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let model = models(stub.variables())
        .with_tape(Tape::create(folder.path()).unwrap())
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap();
    let drawn = |code: &'static str| Ask {
        nonce: Some(code),
        ..says(&format!("@@{code} BEGIN"))
    };
    drawn("c0de77aa1").of(&model).await.0.unwrap();
    let replay = played(folder.path());
    assert_eq!(drawn("4bcd99ee2").text(&replay).await, "between 4bcd99ee2");
}

#[tokio::test]
async fn a_killed_program_loses_only_the_line_in_flight() {
    let stub = OpenAiStub::start(Script::new([Turn::says("one"), Turn::says("two")]))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::create(folder.path()).unwrap();
    let model = models(stub.variables())
        .with_tape(tape.clone())
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap();
    for text in ["first", "second"] {
        says(text).of(&model).await.0.unwrap();
    }
    let text = std::fs::read_to_string(tape.path()).unwrap();
    assert_eq!(
        text.lines().count(),
        5,
        "a head, and a message and an exchange each"
    );
    std::fs::write(tape.path(), &text[..text.len() - 20]).unwrap();
    let replay = played(folder.path());
    assert_eq!(says("first").text(&replay).await, "one");
    says("second").refused(&replay).await;
}

#[test]
fn what_is_no_recording_is_found_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.jsonl");
    let error = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Models::new(|_| None)
            .resolve(&format!("replay/{}", file.display()), &Object::new())
            .unwrap_err()
            .to_string()
    };
    for (text, expected) in [
        ("", "holds no exchange"),
        (
            "{\"type\":\"recording\",\"version\":9}\n",
            "line 1, has version 9, this program reads 1",
        ),
        (
            "{\"type\":\"exchange\"}\n",
            "does not begin with a line of type `recording`",
        ),
        (
            "{\"type\":\"recording\",\"version\":1}\nnonsense\n",
            "line 2, expected",
        ),
        (
            "{\"type\":\"recording\",\"version\":1}\n{\"type\":\"exchange\"}\n",
            "line 2, missing field `model`",
        ),
    ] {
        let told = error(text);
        assert!(
            told.contains(expected) && told.contains("r.jsonl"),
            "{told}"
        );
    }
    let empty = tempfile::tempdir().unwrap();
    let told = Recording::open(empty.path()).unwrap_err();
    assert!(
        told.to_string().contains("without `.jsonl` files"),
        "{told}"
    );
    assert_eq!(told.owner(), Owner::Configuration);
    let missing = Recording::open(&folder.path().join("missing")).unwrap_err();
    assert!(missing.to_string().contains("cannot read"), "{missing}");
    // A folder that cannot be made is the machine's.
    let told = Tape::create(&file.join("below")).unwrap_err();
    assert_eq!(told.owner(), Owner::Infrastructure);
}
