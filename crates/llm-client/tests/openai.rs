//! The openai provider over real sockets, against the strict stub.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use calls::{ask, listen, object, quick, request};
use formats::Object;
use formats::chat::{Block, Message, ToolCall, ToolDefinition};
use llm_client::{
    CallLabels, ChatErrorKind, ChatRequest, FinishReason, Gateway, Model, ModelNameError, Models,
    RetryPolicy,
};
use serde_json::{Value, json};
use testkit::openai::{Fault, OpenAiStub, Options, Script, Turn};

async fn stub(turns: impl IntoIterator<Item = Turn>) -> OpenAiStub {
    OpenAiStub::start(Script::new(turns)).await.unwrap()
}

fn model(stub: &OpenAiStub) -> Model {
    Models::new(stub.variables())
        .with_retry(quick())
        .resolve("openai/gpt-4.1", &Object::new())
        .unwrap()
}

#[tokio::test]
async fn a_conversation_with_tools_goes_there_and_back() {
    let stub = stub([
        Turn::calls("fs_read_d154e2a4", json!({"path": "/a"})).usage(1_000_000, 100_000),
        Turn::says("It is red."),
    ])
    .await;
    let model = model(&stub);
    let tools = [ToolDefinition::new("fs.read", "Reads.", json!({}))];
    let extra_args = object(&json!({"temperature": 0.5, "tool_choice": "auto"}));
    let mut messages = vec![Message::system("Be brief."), Message::user("What is it?")];
    let ask = async |messages: &[Message]| {
        let request = ChatRequest {
            tools: &tools,
            ..request(messages, &extra_args)
        };
        model.chat(request, &|_| panic!()).await.unwrap()
    };
    let first = ask(&messages).await;
    assert_eq!(first.finish_reason, FinishReason::ToolCalls);
    assert_eq!(first.message.tool_calls[0].function.name, "fs.read");
    assert_eq!(first.model, "gpt-4.1");
    // A million tokens in at 2 dollars, a tenth of a million out at 8.
    assert!((first.cost_usd.unwrap() - 2.8).abs() < 1e-9);
    assert_eq!(first.request_id.as_deref(), Some("req_stub_0"));
    assert_eq!(first.raw["object"], "chat.completion");
    assert_eq!(first.attempts, 1);

    let id = first.message.tool_calls[0].id.clone();
    messages.push(first.message);
    messages.push(Message::tool(
        id,
        "fs.read",
        vec![
            Block::text("See:"),
            Block::image_url("data:image/png;base64,iVBORw0KGgo="),
        ],
    ));
    let second = ask(&messages).await;
    assert_eq!(second.message.text(), "It is red.");
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let sent = &stub.requests()[1].body;
    let roles: Vec<&str> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(sent["temperature"], 0.5);
}

#[tokio::test]
async fn a_history_that_would_be_refused_is_mended() {
    let stub = stub([Turn::says("fine")]).await;
    let mut calls = Message::assistant("");
    calls.content = None;
    calls.tool_calls = vec![
        ToolCall::new("a", "f", "{\"cut"),
        ToolCall::new("a", "f", ""),
        ToolCall::new("", "f", "[]"),
    ];
    let mut nothing = Message::assistant("");
    nothing.content = None;
    let messages = [
        Message::user("go"),
        calls,
        Message::user("hurry"),
        Message::tool("a", "f", "1"),
        Message::tool("orphan", "f", "2"),
        nothing,
        Message::user("go on"),
    ];
    let answer = model(&stub)
        .chat(request(&messages, &Object::new()), &|_| panic!())
        .await
        .unwrap();
    assert_eq!(answer.message.text(), "fine");
    assert_eq!(stub.refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn what_passes_is_repeated() {
    let stub = stub([
        Turn::fails(429).header("retry-after-ms", "5"),
        Turn::faulty(Fault::Drop),
        Turn::faulty(Fault::MalformedJson),
        Turn::says("at last"),
    ])
    .await;
    let (answer, repeated) = ask(&model(&stub), json!({})).await;
    let answer = answer.unwrap();
    assert_eq!(
        (answer.attempts, answer.message.text().as_ref()),
        (4, "at last")
    );
    assert_eq!(
        repeated,
        [
            ChatErrorKind::RateLimit,
            ChatErrorKind::Connection,
            ChatErrorKind::MalformedReply
        ]
    );
    assert_eq!(stub.requests().len(), 4, "nothing is repeated inside");
}

#[tokio::test]
async fn broken_answers_have_their_kinds() {
    let html = json!("<html>welcome</html>");
    let in_error = json!({"error": {"message": "busy", "type": "overloaded_error"}});
    let cases = [
        (
            Turn::faulty(Fault::HalfBody),
            ChatErrorKind::Connection,
            "127.0.0.1",
        ),
        (
            Turn::fails_with(200, html.clone()),
            ChatErrorKind::MalformedReply,
            "<html>",
        ),
        (
            Turn::fails_with(200, json!("")),
            ChatErrorKind::MalformedReply,
            "no JSON",
        ),
        (
            Turn::fails_with(200, json!({"choices": []})),
            ChatErrorKind::MalformedReply,
            "empty",
        ),
        (
            Turn::fails_with(200, in_error),
            ChatErrorKind::Overloaded,
            "busy",
        ),
        (Turn::fails_with(502, html), ChatErrorKind::Server, "502"),
        (Turn::fails(529), ChatErrorKind::Overloaded, "529"),
    ];
    for (turn, kind, text) in cases {
        let stub = stub([turn]).await;
        let model = model(&stub).with_retry(RetryPolicy::never());
        let (answer, repeated) = ask(&model, json!({})).await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.is_retryable() && repeated.is_empty());
        assert!(error.message.contains(text), "{error}");
    }
}

#[tokio::test]
async fn nothing_permanent_is_repeated() {
    let quota = json!({"error": {"message": "no quota", "type": "insufficient_quota", "code": "insufficient_quota"}});
    let context = json!({"error": {"message": "too much", "code": "context_length_exceeded"}});
    let cases = [
        (Turn::fails(400), ChatErrorKind::BadRequest),
        (Turn::fails(401), ChatErrorKind::Auth),
        (Turn::fails(403), ChatErrorKind::Auth),
        (Turn::fails(404), ChatErrorKind::NotFound),
        (Turn::fails(413), ChatErrorKind::TooLarge),
        (Turn::fails(422), ChatErrorKind::BadRequest),
        (Turn::fails_with(429, quota), ChatErrorKind::Credit),
        (Turn::fails_with(400, context), ChatErrorKind::ContextWindow),
        (
            Turn::fails(500).header("x-should-retry", "false"),
            ChatErrorKind::Server,
        ),
    ];
    for (turn, kind) in cases {
        let stub = stub([turn, Turn::says("not asked for")]).await;
        let (answer, repeated) = ask(&model(&stub), json!({})).await;
        assert_eq!(answer.unwrap_err().kind, kind);
        assert!(repeated.is_empty());
        assert_eq!(stub.turns_left(), 1);
    }
}

#[tokio::test]
async fn an_attempt_has_its_limit() {
    let stub = stub([Turn::faulty(Fault::Stall)]).await;
    let messages = [Message::user("hi")];
    let extra_args = object(&json!({"timeout": 0.3, "num_retries": 0}));
    let error = model(&stub)
        .chat(request(&messages, &extra_args), &|_| panic!())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Timeout);
    assert!(error.message.contains("300ms"), "{error}");
}

#[tokio::test]
async fn a_setting_that_cannot_be_honoured_is_refused_before_anything_is_sent() {
    let stub = stub([]).await;
    let messages = [Message::user("hi")];
    for extra_args in [json!({"num_retries": "many"}), json!({"stream": true})] {
        let error = model(&stub)
            .chat(request(&messages, &object(&extra_args)), &|_| panic!())
            .await
            .unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::UnsupportedParameter);
    }
    assert!(stub.requests().is_empty());
}

#[tokio::test]
async fn nobody_listens() {
    // Bound, so that nobody else gets the port, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let extra_args = object(&json!({"api_base": format!("http://{address}/v1"), "api_key": "k"}));
    let model = Models::new(|_| None)
        .with_retry(RetryPolicy::never())
        .resolve("openai/m", &extra_args)
        .unwrap();
    let error = model
        .chat(request(&[], &extra_args), &|_| panic!())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.status),
        (ChatErrorKind::Connection, None)
    );
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn no_secret_is_told() {
    let secret = "sk-very-secret-0123456789";
    let stub = OpenAiStub::start(Script::default()).await.unwrap();
    let base = stub.base_url();
    let models = Models::new(|name| match name {
        "OPENAI_API_KEY" => Some(secret.to_owned()),
        "OPENAI_BASE_URL" => Some(base.clone()),
        _ => None,
    });
    assert!(!format!("{models:?}").contains("secret"));
    let model = models.resolve("openai/m", &Object::new()).unwrap();
    assert!(!format!("{model:?}").contains("secret"));
    // The stub repeats the wrong key, as servers do.
    let error = ask(&model, json!({})).await.0.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Auth);
    assert!(error.message.contains("Incorrect API key"), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");

    let bad = models.resolve("openai/m", &object(&json!({"api_key": "secret\nkey"})));
    assert!(!format!("{bad:?}").contains("secret"), "{bad:?}");
    let bad = models.resolve(
        "openai/m",
        &object(&json!({"api_base": "ftp://u:secret@h/"})),
    );
    assert!(!format!("{bad:?}").contains("secret"), "{bad:?}");
}

#[tokio::test]
async fn a_proxy_gets_the_whole_name_and_who_asks() {
    let script = Script::new([
        Turn::fails(503),
        Turn::says("ok")
            .header("x-litellm-response-cost", "0.25")
            .field("thinking_blocks", json!([{"type": "thinking"}])),
        Turn::says("again"),
    ]);
    let stub = OpenAiStub::start_with(Options {
        lenient: true,
        ..Options::new(script, "proxy-key")
    })
    .await
    .unwrap();
    let base = stub.base_url();
    let models = Models::new(|name| match name {
        "LITELLM_PROXY_API_BASE" => Some(base.clone()),
        "LITELLM_PROXY_API_KEY" => Some("proxy-key".to_owned()),
        _ => None,
    })
    .with_retry(quick());
    let model = models
        .resolve("anthropic/claude-sonnet-4-5", &Object::new())
        .unwrap();
    assert_eq!(model.provider(), "anthropic");
    let mut messages = vec![Message::user("hi")];
    let extra_args =
        object(&json!({"thinking": {"type": "adaptive"}, "extra_headers": {"X-Mine": "1"}}));
    let request = ChatRequest {
        labels: CallLabels {
            trajectory_id: Some("t-1"),
            ..CallLabels::default()
        },
        ..request(&messages, &extra_args)
    };
    let answer = model.chat(request, &|_| {}).await.unwrap();
    assert_eq!(answer.cost_usd, Some(0.25));
    let requests = stub.requests();
    assert_eq!(requests[0].body["model"], "anthropic/claude-sonnet-4-5");
    assert_eq!(requests[0].body["thinking"]["type"], "adaptive");
    let header = |index: usize, name: &str| requests[index].headers.get(name).cloned();
    for (name, value) in [
        ("service", "trajectory"),
        ("workload", "trajectory_single"),
        ("trajectory_id", "t-1"),
        ("attempt", "1"),
        ("x-mine", "1"),
    ] {
        assert_eq!(header(0, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(header(1, "attempt").as_deref(), Some("2"));
    assert!(header(0, "call_id").is_some());
    assert_eq!(header(0, "call_id"), header(1, "call_id"));
    assert_eq!(header(0, "world_id"), None);

    // What the proxy sent is sent back to it.
    messages.push(answer.message);
    messages.push(Message::user("and?"));
    let request = self::request(&messages, &extra_args);
    model.chat(request, &|_| panic!()).await.unwrap();
    let sent = &stub.requests()[2].body["messages"][1];
    assert_eq!(sent["thinking_blocks"], json!([{"type": "thinking"}]));
}

#[tokio::test]
async fn calls_at_once_do_not_mix() {
    let turns =
        (0..20).map(|number| Turn::says(format!("for {number}")).when(format!("I am {number}.")));
    let stub = stub(turns).await;
    let model = model(&stub);
    let asked: Vec<_> = (0..20)
        .map(|number| {
            let model = model.clone();
            tokio::spawn(async move {
                let messages = [Message::user(format!("I am {number}."))];
                let answer = model
                    .chat(request(&messages, &Object::new()), &|_| panic!())
                    .await
                    .unwrap();
                assert_eq!(answer.message.text(), format!("for {number}"));
            })
        })
        .collect();
    for call in asked {
        call.await.unwrap();
    }
}

#[test]
fn names_are_checked_before_anything_is_sent() {
    let models = Models::new(|name| (name == "OPENAI_API_KEY").then(|| "key".to_owned()));
    let error = |name: &str, args: Value| models.resolve(name, &object(&args)).unwrap_err();
    for (bare, whole) in [
        ("gpt-4o", "`openai/gpt-4o`"),
        ("claude-opus-5", "`anthropic/claude-opus-5`"),
        ("gemini-2.5-pro", "`gemini/gemini-2.5-pro`"),
    ] {
        let error = error(bare, json!({}));
        assert!(matches!(error, ModelNameError::NoProvider { .. }));
        assert!(error.to_string().contains(whole), "{error}");
    }
    let text = error("nobody/m", json!({})).to_string();
    assert!(text.contains("unknown provider `nobody`") && text.contains("openrouter"));
    let text = error("groq/m", json!({})).to_string();
    assert!(text.contains("set GROQ_API_KEY"), "{text}");
    let text = error("cohere/m", json!({})).to_string();
    assert!(text.contains("not available") && text.contains("LITELLM_PROXY_API_BASE"));
    let text = error("hosted_vllm/m", json!({})).to_string();
    assert!(text.contains("HOSTED_VLLM_API_BASE"), "{text}");
    let text = error("openai/m", json!({"api_base": "localhost:8000"})).to_string();
    assert!(text.contains("base URL"), "{text}");
    let text = error("openai/m", json!({"messages": []})).to_string();
    assert!(text.contains("`messages`"), "{text}");

    assert!(models.resolve("openai/m", &Object::new()).is_ok());
    assert!(models.resolve("ollama/llama3", &Object::new()).is_ok());
    let args = object(&json!({"api_base": "http://localhost:8000/v1"}));
    assert!(models.resolve("hosted_vllm/org/model", &args).is_ok());
    // An empty variable counts as not set.
    let empty = Models::new(|_| Some("  ".to_owned()));
    assert!(matches!(
        empty.resolve("openai/m", &Object::new()),
        Err(ModelNameError::NoCredentials { .. })
    ));
}

#[tokio::test]
async fn a_gateway_is_told_who_asks_and_how_urgently() {
    let stub = OpenAiStub::start_with(Options {
        lenient: true,
        ..Options::new(Script::new([Turn::says("a")]), "gateway-key")
    })
    .await
    .unwrap();
    let gateway = Gateway {
        priority: 1,
        fairness_key: Some("campaign-7".to_owned()),
        workload: Some("batch".to_owned()),
        ..Gateway::new(stub.base_url(), stub.key())
    };
    // It wins over the address of the call, and needs no key of the provider.
    let extra_args = object(&json!({"api_base": "http://127.0.0.1:1", "timeout": 20}));
    let model = Models::new(|_| None)
        .with_gateway(gateway.clone())
        .resolve("anthropic/claude-sonnet-4-5", &extra_args)
        .unwrap();
    let labels = CallLabels {
        campaign_id: Some("campaign-7"),
        batch_id: Some("b"),
        ..CallLabels::default()
    };
    let messages = [Message::user("hi")];
    let request = ChatRequest {
        labels,
        ..request(&messages, &extra_args)
    };
    let answer = model.chat(request, &|_| panic!()).await.unwrap();
    assert_eq!(answer.message.text(), "a");
    let sent = &stub.requests()[0];
    assert_eq!(sent.body["model"], "anthropic/claude-sonnet-4-5");
    for (name, value) in [
        ("x-gateway-backend", "litellm"),
        ("x-priority", "P1"),
        ("x-fairness-key", "campaign-7"),
        ("x-workload", "batch"),
        ("x-gateway-timeout-s", "20"),
        ("campaign_id", "campaign-7"),
        ("batch_id", "b"),
        ("service", "trajectory"),
    ] {
        assert_eq!(sent.headers[name], value, "{name}");
    }
    assert!(!sent.headers.contains_key("x-work-unit"));

    let refused = |gateway: Gateway| {
        let models = Models::new(|_| None).with_gateway(gateway);
        models
            .resolve("openai/m", &Object::new())
            .unwrap_err()
            .to_string()
    };
    let far = Gateway::new("http://gateway.example/v1", "k");
    assert!(refused(far).contains("https://"));
    let urgent = Gateway {
        priority: 6,
        ..gateway
    };
    assert!(refused(urgent).contains("from 0 to 5, got 6"));
}

#[tokio::test]
async fn deltas_are_told_while_they_come() {
    let mut turn = Turn::calls("f", json!({"a": 1})).and_calls("g", json!("{\"b\": "));
    turn.content = Some("Well, then.".into());
    let turn = turn.field("reasoning_content", json!("hmm")).usage(100, 20);
    let stub = stub([turn]).await;
    let tools = ["f", "g"].map(|name| ToolDefinition::new(name, "", json!({})));
    let (answer, heard) = listen(&model(&stub), &tools, json!({})).await;
    let answer = answer.unwrap();
    assert_eq!(heard.text, "Well, then.");
    assert_eq!(heard.reasoning, "hmm");
    assert_eq!(heard.calls, ["f", "g"]);
    assert_eq!(heard.arguments, ["{\"a\":1}", "{\"b\": "]);
    assert_eq!(answer.message.text(), "Well, then.");
    assert_eq!(answer.message.reasoning_content(), Some("hmm"));
    assert_eq!(answer.message.tool_calls[1].function.arguments, "{\"b\": ");
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    let usage = answer.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (100, 20));
    assert_eq!(answer.request_id.as_deref(), Some("req_stub_0"));
    let sent = &stub.requests()[0].body;
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn faults_of_streams_are_told_apart_and_repeated() {
    for (turn, kind) in [
        (Turn::fails(503), ChatErrorKind::Overloaded),
        (Turn::faulty(Fault::Drop), ChatErrorKind::Connection),
        (Turn::faulty(Fault::HalfBody), ChatErrorKind::Connection),
        (
            Turn::faulty(Fault::MalformedJson),
            ChatErrorKind::MalformedReply,
        ),
        (Turn::faulty(Fault::Midway), ChatErrorKind::Server),
    ] {
        let stub = stub([turn.clone(), Turn::says("well")]).await;
        let repeated = std::sync::Mutex::new(Vec::new());
        let messages = [Message::user("hi")];
        let answer = model(&stub)
            .chat_streaming(
                request(&messages, &Object::new()),
                &|notice| repeated.lock().unwrap().push(notice.error.kind),
                &|_| {},
            )
            .await;
        assert_eq!(repeated.into_inner().unwrap(), [kind], "{turn:?}");
        assert_eq!(answer.unwrap().message.text(), "well");
    }
}
