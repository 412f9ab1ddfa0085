//! The anthropic provider over real sockets, against the strict stub.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use calls::{PICTURE, ask, ask_with, listen, object, quick};
use formats::Object;
use formats::chat::{Block, Message, ToolDefinition};
use llm_client::{ChatErrorKind, FinishReason, Model, ModelNameError, Models, RetryPolicy};
use serde_json::{Value, json};
use testkit::anthropic::{AnthropicStub, Fault, Options, Script, Turn};

async fn stub(turns: impl IntoIterator<Item = Turn>) -> AnthropicStub {
    AnthropicStub::start(Script::new(turns)).await.unwrap()
}

fn models(stub: &AnthropicStub) -> Models {
    Models::new(stub.variables()).with_retry(quick())
}

fn model(stub: &AnthropicStub) -> Model {
    models(stub)
        .resolve("anthropic/claude-sonnet-4-5", &Object::new())
        .unwrap()
}

/// Thinking, a text, a call whose result is a picture, and the end: streamed, with marks, under the
/// rules that the stub checks, signatures included.
#[tokio::test]
async fn a_tool_loop_with_thinking_and_pictures_goes_there_and_back() {
    let thought = json!([
        {"type": "thinking", "thinking": "I need to see it."},
        {"type": "redacted_thinking", "data": "c2VhbGVk"}
    ]);
    let interleaved = json!([
        {"type": "thinking", "thinking": "One more."},
        {"type": "text", "text": "Again."},
        {"type": "thinking", "thinking": "From above."},
        {"type": "tool_use", "id": "toolu_x", "name": "screen_shot_94ff0a5d", "input": {"n": 2}}
    ]);
    let stub = stub([
        Turn::calls("screen_shot_94ff0a5d", json!({"n": 1}))
            .field("thinking_blocks", thought)
            .usage(1000, 50),
        Turn::default()
            .field("content", interleaved)
            .finish_reason("tool_calls"),
        Turn::says("It is grey."),
    ])
    .await;
    let model = model(&stub);
    let tools = [ToolDefinition::new(
        "screen.shot",
        "Takes a picture.",
        json!({}),
    )];
    let extra_args = object(&json!({"reasoning_effort": "low"}));
    let mut messages = vec![Message::system("Be brief."), Message::user("What is it?")];
    for round in 0..2 {
        let answer = ask_with(&model, &messages, &tools, &extra_args)
            .await
            .unwrap();
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
        let call = &answer.message.tool_calls[0];
        assert_eq!(call.function.name, "screen.shot");
        assert_eq!(call.function.arguments, json!({"n": round + 1}).to_string());
        let id = call.id.clone();
        messages.push(answer.message);
        messages.push(Message::tool(
            id,
            "screen.shot",
            vec![Block::text("See:"), Block::image_url(PICTURE)],
        ));
    }
    let last = ask_with(&model, &messages, &tools, &extra_args)
        .await
        .unwrap();
    assert_eq!(last.message.text(), "It is grey.");
    assert_eq!(stub.refusals(), Vec::<String>::new());
    assert!(last.request_id.is_some());

    let requests = stub.requests();
    let sent = &requests[2].body;
    assert_eq!(sent["max_tokens"], 64000);
    assert_eq!(sent["stream"], true);
    assert_eq!(
        sent["thinking"],
        json!({"type": "enabled", "budget_tokens": 1024})
    );
    let turns = sent["messages"].as_array().unwrap();
    let kinds = |turn: &Value| -> Vec<String> {
        let blocks = turn["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        kinds(&turns[1]),
        ["thinking", "redacted_thinking", "tool_use"]
    );
    assert_eq!(
        kinds(&turns[3]),
        ["thinking", "text", "thinking", "tool_use"]
    );
    assert_eq!(
        turns[1]["content"][1],
        json!({"type": "redacted_thinking", "data": "c2VhbGVk"})
    );
    assert_eq!(
        turns[2]["content"][0]["content"][1]["source"]["media_type"],
        "image/png"
    );
    // Marks: the last tool, the system text, the last message.
    let mark = json!({"type": "ephemeral", "ttl": "5m"});
    assert_eq!(sent["tools"][0]["cache_control"], mark);
    assert_eq!(sent["system"][0]["cache_control"], mark);
    assert_eq!(turns[4]["content"][0]["cache_control"], mark);
    assert_eq!(sent.to_string().matches("cache_control").count(), 3);
    // The beginning of a longer conversation is that of the shorter one, mark apart.
    let earlier = &requests[1].body["messages"];
    assert_eq!(earlier[0], turns[0]);
    assert_eq!(earlier[1], turns[1]);
}

#[tokio::test]
async fn deltas_are_told_while_they_come() {
    let stub = stub([Turn::calls("f", json!({"a": 1})).field(
        "thinking_blocks",
        json!([{"type": "thinking", "thinking": "hmm"}]),
    )])
    .await;
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let (answer, heard) = listen(&model(&stub), &tools, json!({"max_tokens": 100})).await;
    let answer = answer.unwrap();
    assert_eq!(heard.reasoning, "hmm");
    assert_eq!(heard.calls, ["f"]);
    assert_eq!(heard.arguments, ["{\"a\":1}"]);
    assert_eq!(answer.message.reasoning_content(), Some("hmm"));
    assert_eq!(stub.requests()[0].body["stream"], true);
}

/// A7: arguments that were cut off stay as the model wrote them, and are sendable afterwards.
#[tokio::test]
async fn cut_off_arguments_are_kept_and_sent_as_an_object() {
    let cut = "{\"path\": \"/a\", \"content\": \"abc";
    let stub = stub([
        Turn::calls("f", json!(cut)).finish_reason("length"),
        Turn::says("sorry"),
    ])
    .await;
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let mut messages = vec![Message::user("hi")];
    let extra_args = Object::new();
    for _ in 0..2 {
        let answer = ask_with(&model(&stub), &messages, &tools, &extra_args)
            .await
            .unwrap();
        if let Some(call) = answer.message.tool_calls.first() {
            assert_eq!(answer.finish_reason, FinishReason::Length);
            assert_eq!(call.function.arguments, cut);
        }
        messages.push(answer.message);
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let call = &stub.requests()[1].body["messages"][1]["content"][0];
    assert_eq!(call["input"], json!({"_raw": cut}));
}

#[tokio::test]
async fn faults_are_told_apart_and_repeated() {
    let streamed = json!({});
    let at_once = json!({"max_tokens": 100});
    for (turn, extra_args, kind) in [
        (Turn::fails(529), &at_once, ChatErrorKind::Overloaded),
        (Turn::fails(500), &at_once, ChatErrorKind::Server),
        (
            Turn::fails(429).header("retry-after-ms", "1"),
            &streamed,
            ChatErrorKind::RateLimit,
        ),
        (
            Turn::faulty(Fault::Drop),
            &at_once,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::HalfBody),
            &at_once,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::HalfBody),
            &streamed,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::MalformedJson),
            &streamed,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::faulty(Fault::Midway),
            &streamed,
            ChatErrorKind::Overloaded,
        ),
        (
            Turn::faulty(Fault::Midway),
            &at_once,
            ChatErrorKind::Overloaded,
        ),
        (
            Turn::fails_with(200, json!("")),
            &at_once,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::fails_with(200, json!({"id": "x"})),
            &at_once,
            ChatErrorKind::MalformedReply,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("well")]).await;
        let (answer, repeated) = ask(&model(&stub), extra_args.clone()).await;
        assert_eq!(repeated, [kind], "{turn:?} {extra_args}");
        assert_eq!(answer.unwrap().message.text(), "well", "{turn:?}");
    }
}

#[tokio::test]
async fn what_is_final_is_not_repeated() {
    let said = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    let long = said(
        "invalid_request_error",
        "prompt is too long: 215000 tokens > 200000 maximum",
    );
    let broke = said("invalid_request_error", "Your credit balance is too low");
    for (turn, kind) in [
        (Turn::fails_with(400, long), ChatErrorKind::ContextWindow),
        (Turn::fails_with(400, broke), ChatErrorKind::Credit),
        (Turn::fails(401), ChatErrorKind::Auth),
        (Turn::fails(404), ChatErrorKind::NotFound),
        (Turn::fails(413), ChatErrorKind::TooLarge),
        (
            Turn::fails(500).header("x-should-retry", "false"),
            ChatErrorKind::Server,
        ),
        (
            Turn::says("x").finish_reason("model_context_window_exceeded"),
            ChatErrorKind::ContextWindow,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("never")]).await;
        let (answer, repeated) = ask(&model(&stub), json!({})).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind, repeated.len()), (kind, 0), "{turn:?}");
        assert!(error.request_id.is_some(), "{turn:?}");
    }
}

#[tokio::test]
async fn parameters_are_refused_before_anything_is_sent() {
    let stub = stub([Turn::says("x")]).await;
    let (answer, _) = ask(&model(&stub), json!({"seed": 7})).await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::UnsupportedParameter);
    assert!(error.message.contains("`seed`"), "{error}");
    assert_eq!(stub.requests().len(), 0);
    let (answer, _) = ask(&model(&stub), json!({"seed": 7, "drop_params": true})).await;
    answer.unwrap();
    assert_eq!(stub.requests()[0].body.get("seed"), None);
}

#[tokio::test]
async fn an_answer_to_a_schema_comes_as_text_either_way() {
    let schema = |properties: Value| {
        json!({"response_format": {"type": "json_schema", "json_schema": {
            "name": "verdict", "schema": {"type": "object", "properties": properties}
        }}})
    };
    let stub = stub([
        Turn::says("{\"ok\": true}"),
        Turn::calls("give_answer", json!({"extra": {"a": 1}})),
    ])
    .await;
    let (native, _) = ask(&model(&stub), schema(json!({"ok": {"type": "boolean"}}))).await;
    assert_eq!(native.unwrap().message.text(), "{\"ok\": true}");
    let (by_tool, _) = ask(&model(&stub), schema(json!({"extra": {"type": "object"}}))).await;
    let by_tool = by_tool.unwrap();
    assert_eq!(by_tool.message.text(), "{\"extra\":{\"a\":1}}");
    assert_eq!(by_tool.finish_reason, FinishReason::Stop);
    assert!(by_tool.message.tool_calls.is_empty());
    assert_eq!(stub.refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn usage_counts_the_cache_and_cost_follows() {
    let turn = serde_json::from_value::<testkit::anthropic::Script>(json!({"turns": [{
        "content": "x",
        "usage": {"prompt_tokens": 100_000, "completion_tokens": 2_000, "total_tokens": 102_000,
                  "prompt_tokens_details": {"cached_tokens": 40_000, "cache_creation_tokens": 10_000}}
    }]}));
    let stub = AnthropicStub::start(turn.unwrap()).await.unwrap();
    let (answer, _) = ask(&model(&stub), json!({})).await;
    let answer = answer.unwrap();
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.prompt_tokens, usage.cached_tokens()),
        (100_000, 40_000)
    );
    assert_eq!(usage.total_tokens, 102_000);
    // 50,000·3 + 40,000·0.3 + 10,000·3.75 + 2,000·15 = 229,500 millionths.
    assert!((answer.cost_usd.unwrap() - 0.2295).abs() < 1e-9);
}

#[tokio::test]
async fn credentials_and_addresses_come_from_variables_and_arguments() {
    let stub = stub([Turn::says("a"), Turn::says("b")]).await;
    let nothing = Models::new(|_| None);
    let error = nothing
        .resolve("anthropic/claude-sonnet-4-5", &Object::new())
        .unwrap_err();
    assert!(matches!(error, ModelNameError::NoCredentials { .. }));
    assert!(
        error.to_string().contains("set ANTHROPIC_API_KEY"),
        "{error}"
    );

    let base = format!("{}/v1/", stub.base_url());
    let extra_args = json!({"api_base": base, "api_key": stub.key()});
    let model = nothing
        .resolve("anthropic/claude-sonnet-4-5", &object(&extra_args))
        .unwrap();
    let (answer, _) = ask(&model, extra_args).await;
    assert_eq!(answer.unwrap().message.text(), "a");
    let headers = &stub.requests()[0].headers;
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    // Who asks is told where the address is the caller's.
    assert_eq!(headers["service"], "trajectory");
    assert!(!headers.contains_key("x-api-key"), "the stub keeps no keys");

    let wrong = json!({"api_base": base, "api_key": "sk-ant-very-secret"});
    let model = nothing
        .resolve("anthropic/claude-sonnet-4-5", &object(&wrong))
        .unwrap();
    let (answer, repeated) = ask(&model, wrong).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind, repeated.len()), (ChatErrorKind::Auth, 0));
    assert!(
        !format!("{error} {error:?} {model:?}").contains("very-secret"),
        "{error}"
    );

    let (answer, _) = ask(
        &self::model(&stub),
        json!({"extra_headers": {"anthropic-beta": "x-1"}}),
    )
    .await;
    answer.unwrap();
    assert_eq!(
        stub.requests().last().unwrap().headers["anthropic-beta"],
        "x-1"
    );
}

#[tokio::test]
async fn tokens_and_beta_features_have_their_headers() {
    let sent = async |variables: &'static [(&'static str, &'static str)], extra_args: Value| {
        let options = Options {
            key: None,
            ..Options::new(Script::new([Turn::says("a")]), "")
        };
        let stub = AnthropicStub::start_with(options).await.unwrap();
        let base = stub.base_url();
        let models = Models::new(move |name| match name {
            "ANTHROPIC_API_BASE" => Some(base.clone()),
            name => variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| (*value).to_owned()),
        });
        let model = models
            .resolve("anthropic/claude-sonnet-4-5", &Object::new())
            .unwrap();
        let (answer, _) = ask(&model, extra_args).await;
        answer.unwrap();
        let headers = stub.requests()[0].headers.clone();
        headers.get("anthropic-beta").cloned().unwrap_or_default()
    };
    let key = &[("ANTHROPIC_API_KEY", "sk-ant-api-1")][..];
    let person = &[("ANTHROPIC_API_KEY", "sk-ant-oat01-1")][..];
    assert_eq!(sent(key, json!({})).await, "");
    assert_eq!(sent(key, json!({"betas": ["a-1", "b-2"]})).await, "a-1,b-2");
    assert_eq!(sent(person, json!({})).await, "oauth-2025-04-20");
    let both = json!({"betas": ["a-1"], "extra_headers": {"anthropic-beta": "x-1"}});
    assert_eq!(sent(person, both).await, "oauth-2025-04-20,x-1,a-1");

    // A token goes where a key does not: the stub takes none of the header for keys here.
    let (listener, seen) = (
        tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
        "token-1",
    );
    let base = format!("http://{}", listener.local_addr().unwrap());
    let models = Models::new(move |name| match name {
        "ANTHROPIC_API_BASE" => Some(base.clone()),
        "ANTHROPIC_AUTH_TOKEN" => Some(seen.to_owned()),
        _ => None,
    })
    .with_retry(RetryPolicy::never());
    let model = models
        .resolve("anthropic/claude-sonnet-4-5", &Object::new())
        .unwrap();
    let read = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            let mut bytes = [0; 4096];
            let count = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes)
                .await
                .unwrap();
            head.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        head.to_lowercase()
    };
    let (head, (answer, _)) = tokio::join!(read, ask(&model, json!({})));
    assert!(answer.is_err());
    assert!(head.contains("authorization: bearer token-1"), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert!(!head.contains("x-api-key"), "{head}");
}

#[tokio::test]
async fn the_last_message_is_not_marked_for_a_caller_that_replaces_it() {
    let stub = stub([Turn::says("a"), Turn::says("b")]).await;
    for marks in [true, false] {
        let (answer, _) = ask(&model(&stub), json!({"mark_last_message": marks})).await;
        answer.unwrap();
    }
    let marked = |index: usize| {
        stub.requests()[index]
            .body
            .to_string()
            .contains("cache_control")
    };
    assert!(marked(0) && !marked(1));
}

#[tokio::test]
async fn models_that_always_think_are_not_told_otherwise() {
    let stub = stub([Turn::says("a")]).await;
    let models = models(&stub);
    let opus = models
        .resolve("anthropic/claude-opus-5-5", &Object::new())
        .unwrap();
    let tools = [ToolDefinition::new("f", "", json!({}))];
    for (extra_args, reason) in [
        (json!({"reasoning_effort": "none"}), "always thinks"),
        (json!({"thinking": {"type": "disabled"}}), "always thinks"),
        (
            json!({"tool_choice": "required"}),
            "cannot be made to call a tool",
        ),
    ] {
        let extra_args = object(&extra_args);
        let answer = ask_with(&opus, &[Message::user("hi")], &tools, &extra_args).await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::UnsupportedParameter);
        assert!(error.message.contains(reason), "{error}");
    }
    let dropped = object(&json!({"tool_choice": "required", "drop_params": true}));
    ask_with(&opus, &[Message::user("hi")], &tools, &dropped)
        .await
        .unwrap();
    assert_eq!(
        stub.requests()[0].body["tool_choice"],
        json!({"type": "auto"})
    );
}
