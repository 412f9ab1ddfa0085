//! AWS Bedrock's Converse over real sockets, against the strict stub.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calls::{PICTURE, ask, ask_with, listen, object, quick};
use formats::Object;
use formats::chat::{Block, Message, ToolDefinition};
use llm_client::{ChatErrorKind, FinishReason, Model, ModelNameError, Models};
use serde_json::{Value, json};
use testkit::bedrock::{ACCESS_KEY_ID, BedrockStub, Call, Fault, SECRET_ACCESS_KEY, Script, Turn};

const CLAUDE: &str = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0";

async fn stub(turns: impl IntoIterator<Item = Turn>) -> BedrockStub {
    BedrockStub::start(Script::new(turns)).await.unwrap()
}

/// Models at `stub`, asked with AWS keys, or with an API key.
fn models(stub: &BedrockStub, signed: bool) -> Models {
    let variable = stub.variables();
    Models::new(move |name| match name {
        "AWS_REGION" => Some("us-east-1".to_owned()),
        "AWS_ACCESS_KEY_ID" => Some(ACCESS_KEY_ID.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(SECRET_ACCESS_KEY.to_owned()),
        "AWS_SESSION_TOKEN" => Some("session/token+1".to_owned()),
        "AWS_BEARER_TOKEN_BEDROCK" if signed => None,
        name => variable(name),
    })
    .with_retry(quick())
}

fn model(stub: &BedrockStub, name: &str) -> Model {
    models(stub, true).resolve(name, &Object::new()).unwrap()
}

fn kinds(turn: &Value) -> Vec<&str> {
    let blocks = turn["content"].as_array().unwrap().iter();
    blocks
        .map(|block| block.as_object().unwrap().keys().next().unwrap().as_str())
        .collect()
}

/// Reasoning, a text, a call whose result is a picture and one that failed, and the end: signed, with
/// cache points, under the rules that the stub checks, signatures of the reasoning included.
#[tokio::test]
async fn a_tool_loop_with_reasoning_and_pictures_goes_there_and_back() {
    let thought = json!([
        {"type": "thinking", "thinking": "I need to see it."},
        {"type": "redacted_thinking", "data": "c2VhbGVk"}
    ]);
    let mut second = Turn::default().field(
        "thinking_blocks",
        json!([{"type": "thinking", "thinking": "One more."}]),
    );
    second.content = Some("Again.".into());
    second.tool_calls = vec![Call {
        name: "screen_shot_94ff0a5d".to_owned(),
        arguments: json!({"n": 2}),
        id: Some("t.x:1".to_owned()),
    }];
    let stub = stub([
        Turn::calls("screen_shot_94ff0a5d", json!({"n": 1}))
            .field("thinking_blocks", thought)
            .usage(1000, 50),
        second,
        Turn::says("It is grey."),
    ])
    .await;
    let model = model(&stub, CLAUDE);
    assert_eq!(model.provider(), "bedrock");
    let tools = [ToolDefinition::new(
        "screen.shot",
        "Takes a picture.",
        json!({}),
    )];
    let extra_args = object(&json!({"reasoning_effort": "low", "max_tokens": 2000}));
    let mut messages = vec![Message::system("Be brief."), Message::user("What is it?")];
    for round in 1..=2 {
        let answer = ask_with(&model, &messages, &tools, &extra_args)
            .await
            .unwrap();
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
        let call = &answer.message.tool_calls[0];
        assert_eq!(call.function.name, "screen.shot");
        assert_eq!(call.function.arguments, json!({ "n": round }).to_string());
        let id = call.id.clone();
        let written = serde_json::to_string(&answer.message).unwrap();
        messages.push(serde_json::from_str(&written).unwrap());
        let mut result = Message::tool(
            id,
            "screen.shot",
            vec![Block::text("See:"), Block::image_url(PICTURE)],
        );
        if round == 2 {
            result.extra.insert("is_error".to_owned(), true.into());
        }
        messages.push(result);
    }
    let last = ask_with(&model, &messages, &tools, &extra_args)
        .await
        .unwrap();
    assert_eq!(last.message.text(), "It is grey.");
    assert_eq!(last.request_id.as_deref(), Some("req_stub_2"));
    assert_eq!(last.raw["stopReason"], "end_turn");
    assert_eq!(stub.refusals(), Vec::<String>::new());

    let requests = stub.requests();
    let sent = &requests[2].body;
    assert_eq!(
        requests[2].path,
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    );
    assert_eq!(sent["inferenceConfig"], json!({"maxTokens": 2000}));
    assert_eq!(
        sent["additionalModelRequestFields"],
        json!({"thinking": {"type": "enabled", "budget_tokens": 1024}})
    );
    assert_eq!(
        sent["system"],
        json!([{"text": "Be brief."}, {"cachePoint": {"type": "default"}}])
    );
    let entries = sent["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!(entries[0]["toolSpec"]["name"], "screen_shot_94ff0a5d");
    assert_eq!(
        entries[0]["toolSpec"]["inputSchema"]["json"]["type"],
        "object"
    );
    assert_eq!(entries[1], json!({"cachePoint": {"type": "default"}}));
    let turns = sent["messages"].as_array().unwrap();
    assert_eq!(
        kinds(&turns[1]),
        ["reasoningContent", "reasoningContent", "toolUse"]
    );
    assert_eq!(
        turns[1]["content"][1],
        json!({"reasoningContent": {"redactedContent": "c2VhbGVk"}})
    );
    assert_eq!(kinds(&turns[3]), ["reasoningContent", "text", "toolUse"]);
    assert_eq!(turns[3]["content"][2]["toolUse"]["toolUseId"], "t_x_1");
    assert_eq!(kinds(&turns[4]), ["toolResult", "cachePoint"]);
    let result = &turns[4]["content"][0]["toolResult"];
    assert_eq!(result["status"], "error");
    assert_eq!(result["content"][1]["image"]["format"], "png");
    assert_eq!(turns[2]["content"][0]["toolResult"].get("status"), None);
    // The beginning of a longer conversation is that of the shorter one, cache point apart.
    assert_eq!(requests[1].body["messages"][1], turns[1]);
}

#[tokio::test]
async fn deltas_are_told_while_the_frames_come() {
    let mut turn = Turn::calls("f", json!({"a": 1})).and_calls("g", json!("{\"b\": "));
    turn.content = Some("Well, then.".into());
    let turn = turn.field(
        "thinking_blocks",
        json!([{"type": "thinking", "thinking": "hmm"}]),
    );
    let stub = stub([turn.usage(100, 20)]).await;
    let tools = ["f", "g"].map(|name| ToolDefinition::new(name, "", json!({})));
    let (answer, heard) = listen(&model(&stub, CLAUDE), &tools, json!({"max_tokens": 100})).await;
    let answer = answer.unwrap();
    assert_eq!(heard.text, "Well, then.");
    assert_eq!(heard.reasoning, "hmm");
    assert_eq!(heard.calls, ["f", "g"]);
    assert_eq!(heard.arguments, ["{\"a\":1}", "{\"b\": "]);
    assert_eq!(answer.message.text(), "Well, then.");
    assert_eq!(answer.message.reasoning_content(), Some("hmm"));
    // Cut-off arguments stay as the model wrote them.
    assert_eq!(answer.message.tool_calls[1].function.arguments, "{\"b\": ");
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    let usage = answer.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (100, 20));
    assert!(stub.requests()[0].path.ends_with("/converse-stream"));
}

#[tokio::test]
async fn long_replies_are_streamed_and_profiles_are_named_by_arn() {
    let stub = stub([Turn::says("x")]).await;
    let arn =
        "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-6-v1";
    let (answer, _) = ask(&model(&stub, &format!("bedrock/{arn}")), json!({})).await;
    assert_eq!(answer.unwrap().message.text(), "x");
    let request = &stub.requests()[0];
    assert_eq!(
        request.path,
        "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.anthropic.claude-opus-4-6-v1/converse-stream"
    );
    assert_eq!(request.body["inferenceConfig"]["maxTokens"], 128_000);
    assert_eq!(request.headers["x-amz-security-token"], "session/token+1");
}

#[tokio::test]
async fn an_api_key_does_in_the_place_of_keys() {
    let stub = stub([Turn::says("a"), Turn::says("b")]).await;
    let model = models(&stub, false)
        .resolve(CLAUDE, &Object::new())
        .unwrap();
    let (answer, _) = ask(&model, json!({"max_tokens": 10})).await;
    assert_eq!(answer.unwrap().message.text(), "a");
    assert!(!stub.requests()[0].headers.contains_key("x-amz-date"));

    let base = stub.base_url();
    let extra_args = json!({"api_base": base, "api_key": stub.key(), "max_tokens": 10});
    let region = |name: &str| (name == "AWS_DEFAULT_REGION").then(|| "us-west-2".to_owned());
    let given = Models::new(region)
        .resolve(CLAUDE, &object(&extra_args))
        .unwrap();
    let (answer, _) = ask(&given, extra_args).await;
    assert_eq!(answer.unwrap().message.text(), "b");

    let error = Models::new(region)
        .resolve(CLAUDE, &Object::new())
        .unwrap_err();
    assert!(matches!(error, ModelNameError::NoCredentials { .. }));
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
    let error = Models::new(|_| None)
        .resolve(CLAUDE, &Object::new())
        .unwrap_err();
    assert!(error.to_string().contains("AWS_REGION"), "{error}");
}

#[tokio::test]
async fn keys_come_from_the_shared_file_and_wrong_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let text = format!(
        "[good]\naws_access_key_id = {ACCESS_KEY_ID}\naws_secret_access_key = {SECRET_ACCESS_KEY}\nregion = us-east-1\n\n\
         [bad]\naws_access_key_id = {ACCESS_KEY_ID}\naws_secret_access_key = very-secret-and-wrong\nregion = us-east-1\n"
    );
    std::fs::write(&path, text).unwrap();
    let stub = stub([Turn::says("x")]).await;
    let base = stub.base_url();
    let profile = |profile: &'static str| {
        let (base, path) = (base.clone(), path.display().to_string());
        Models::new(move |name| match name {
            "AWS_ENDPOINT_URL" => Some(base.clone()),
            "AWS_SHARED_CREDENTIALS_FILE" => Some(path.clone()),
            "AWS_PROFILE" => Some(profile.to_owned()),
            _ => None,
        })
        .resolve(CLAUDE, &Object::new())
        .unwrap()
    };
    let wrong = profile("bad");
    let (answer, repeated) = ask(&wrong, json!({"max_tokens": 10})).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind, repeated.len()), (ChatErrorKind::Auth, 0));
    assert!(error.message.contains("signature"), "{error}");
    assert!(!format!("{error} {error:?} {wrong:?}").contains("very-secret"));
    let (answer, _) = ask(&profile("good"), json!({"max_tokens": 10})).await;
    assert_eq!(answer.unwrap().message.text(), "x");
}

#[tokio::test]
async fn other_models_have_parameters_of_their_own() {
    let stub = stub([
        Turn::says("a").field(
            "content",
            json!([
                {"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "a"}
            ]),
        ),
        Turn::says("b"),
        Turn::says("{\"ok\": true}"),
    ])
    .await;
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let deepseek = model(&stub, "bedrock/us.deepseek.r1-v1:0");
    let extra_args = object(&json!({
        "max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop": "END", "n": 1,
        "tool_choice": "required", "serviceTier": {"type": "flex"}, "extra_body": {"top_k": 5}
    }));
    let mut messages = vec![Message::system("Be brief."), Message::user("hi")];
    let first = ask_with(&deepseek, &messages, &tools, &extra_args)
        .await
        .unwrap();
    assert_eq!(first.message.reasoning_content(), Some("hm"));
    messages.extend([first.message, Message::user("more")]);
    ask_with(&deepseek, &messages, &tools, &extra_args)
        .await
        .unwrap();
    let sent = &stub.requests()[1].body;
    assert_eq!(
        sent["inferenceConfig"],
        json!({"maxTokens": 50, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]})
    );
    assert_eq!(sent["toolConfig"]["toolChoice"], json!({"any": {}}));
    assert_eq!(sent["serviceTier"], json!({"type": "flex"}));
    assert_eq!(sent["additionalModelRequestFields"], json!({"top_k": 5}));
    // Reasoning without a signature stays here; a model without a prompt cache gets no points.
    assert_eq!(kinds(&sent["messages"][1]), ["text"]);
    assert!(!sent.to_string().contains("cachePoint"));

    let nova = model(&stub, "bedrock/amazon.nova-2-lite-v1:0");
    let schema = json!({"reasoning_effort": "low", "response_format": {"type": "json_schema", "json_schema": {
        "name": "v", "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    }}});
    let (answer, _) = ask(&nova, schema).await;
    assert_eq!(answer.unwrap().message.text(), "{\"ok\": true}");
    let sent = &stub.requests()[2].body;
    let format = &sent["outputConfig"]["textFormat"];
    let schema: Value = serde_json::from_str(
        format["structure"]["jsonSchema"]["schema"]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(schema["properties"], json!({"ok": {"type": "boolean"}}));
    assert_eq!(
        sent["additionalModelRequestFields"]["reasoningConfig"],
        json!({"type": "enabled", "maxReasoningEffort": "low"})
    );
    // The last message of a model with a cache of texts.
    assert_eq!(kinds(&sent["messages"][0]), ["text", "cachePoint"]);
    assert_eq!(stub.refusals(), Vec::<String>::new());

    for (extra_args, name) in [
        (json!({"seed": 1}), "`seed`"),
        (
            json!({"parallel_tool_calls": false}),
            "`parallel_tool_calls`",
        ),
        (json!({"max_tokens": 0}), "`max_tokens`"),
        (
            json!({"additionalModelRequestFields": 1}),
            "`additionalModelRequestFields`",
        ),
    ] {
        let (answer, _) = ask(&deepseek, extra_args).await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind, ChatErrorKind::UnsupportedParameter);
        assert!(error.message.contains(name), "{error}");
    }
    let (answer, _) = ask(&deepseek, json!({"reasoning_effort": "high"})).await;
    assert!(answer.unwrap_err().message.contains("`reasoning_effort`"));
}

#[tokio::test]
async fn parameters_of_claude_stand_where_converse_has_them() {
    let stub = BedrockStub::start(Script::new([Turn::says("x")]).repeat_last())
        .await
        .unwrap();
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let messages = [Message::user("hi")];
    let mut sent = Vec::new();
    for extra_args in [
        json!({"reasoning_effort": "high", "betas": ["context-1m-2025-08-07"], "mark_last_message": false}),
        json!({"parallel_tool_calls": false, "metadata": {"team": "a"}}),
        json!({"tool_choice": {"type": "function", "function": {"name": "f"}}, "thinking": {"type": "disabled"}}),
    ] {
        let model = model(&stub, "bedrock/anthropic.claude-opus-4-6-v1:0");
        ask_with(&model, &messages, &tools, &object(&extra_args))
            .await
            .unwrap();
        sent.push(stub.requests().pop().unwrap().body);
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
    assert_eq!(sent[0]["outputConfig"], json!({"effort": "high"}));
    assert_eq!(
        sent[0]["additionalModelRequestFields"],
        json!({
            "thinking": {"type": "adaptive", "display": "summarized"},
            "anthropic_beta": ["context-1m-2025-08-07"]
        })
    );
    assert_eq!(kinds(&sent[0]["messages"][0]), ["text"]);
    assert_eq!(kinds(&sent[1]["messages"][0]), ["text", "cachePoint"]);
    assert_eq!(
        sent[1]["additionalModelRequestFields"]["tool_choice"],
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    assert_eq!(sent[1]["requestMetadata"], json!({"team": "a"}));
    assert_eq!(
        sent[2]["toolConfig"]["toolChoice"],
        json!({"tool": {"name": "f"}})
    );
}

#[tokio::test]
async fn documents_and_strange_pictures_are_shown_as_far_as_they_can_be() {
    let stub = stub([Turn::says("x")]).await;
    let pdf = format!(
        "data:application/pdf;base64,{}",
        STANDARD.encode("%PDF-1.4\n")
    );
    let text = format!("data:text/plain;base64,{}", STANDARD.encode("hello"));
    let file = |data: &str| json!({"type": "file", "file": {"file_data": data, "filename": "a"}});
    let blocks: Vec<Block> = serde_json::from_value(json!([
        file(&pdf), file(&text), {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    ]))
    .unwrap();
    let mut message = Message::user("");
    message.content = Some(blocks.into());
    let extra_args = object(&json!({"max_tokens": 10}));
    let model = model(&stub, CLAUDE);
    ask_with(&model, &[message], &[], &extra_args)
        .await
        .unwrap();
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let sent = &stub.requests()[0].body["messages"][0]["content"];
    assert_eq!(sent[0]["document"]["format"], "pdf");
    assert_eq!(sent[1]["document"]["format"], "txt");
    assert_eq!(
        sent[1]["document"]["source"]["bytes"],
        STANDARD.encode("hello")
    );
    assert_ne!(sent[0]["document"]["name"], sent[1]["document"]["name"]);
    assert!(
        sent[2]["text"]
            .as_str()
            .unwrap()
            .contains("https://h/a.png")
    );
}

#[tokio::test]
async fn faults_are_told_apart_and_repeated() {
    let not_ready = Turn::fails(429).header(
        "x-amzn-errortype",
        "ModelNotReadyException:http://internal/",
    );
    for (turn, at_once, streamed) in [
        (
            Turn::fails(429),
            ChatErrorKind::RateLimit,
            ChatErrorKind::RateLimit,
        ),
        (
            not_ready,
            ChatErrorKind::Overloaded,
            ChatErrorKind::Overloaded,
        ),
        (
            Turn::fails(408),
            ChatErrorKind::Timeout,
            ChatErrorKind::Timeout,
        ),
        (
            Turn::fails(424),
            ChatErrorKind::Server,
            ChatErrorKind::Server,
        ),
        (
            Turn::fails(500),
            ChatErrorKind::Server,
            ChatErrorKind::Server,
        ),
        (
            Turn::fails(503),
            ChatErrorKind::Overloaded,
            ChatErrorKind::Overloaded,
        ),
        (
            Turn::faulty(Fault::Drop),
            ChatErrorKind::Connection,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::HalfBody),
            ChatErrorKind::Connection,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::MalformedJson),
            ChatErrorKind::MalformedReply,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::faulty(Fault::Midway),
            ChatErrorKind::MalformedReply,
            ChatErrorKind::Overloaded,
        ),
    ] {
        for (extra_args, kind) in [(json!({"max_tokens": 10}), at_once), (json!({}), streamed)] {
            let stub = stub([turn.clone(), Turn::says("well")]).await;
            let (answer, repeated) = ask(&model(&stub, CLAUDE), extra_args).await;
            assert_eq!(repeated, [kind], "{turn:?}");
            assert_eq!(answer.unwrap().message.text(), "well", "{turn:?}");
        }
    }
}

#[tokio::test]
async fn what_is_final_is_not_repeated() {
    let said = |message: &str| json!({ "message": message });
    for (turn, kind) in [
        (
            Turn::fails_with(400, said("Input is too long for requested model.")),
            ChatErrorKind::ContextWindow,
        ),
        (
            Turn::fails_with(400, said("Malformed input request")),
            ChatErrorKind::BadRequest,
        ),
        (
            Turn::fails_with(
                429,
                said("Too many tokens per day, please wait before trying again."),
            ),
            ChatErrorKind::Credit,
        ),
        (
            Turn::fails(400).header("x-amzn-errortype", "ServiceQuotaExceededException"),
            ChatErrorKind::Credit,
        ),
        (
            Turn::fails(400).header("x-amzn-errortype", "ExpiredTokenException"),
            ChatErrorKind::Auth,
        ),
        (Turn::fails(403), ChatErrorKind::Auth),
        (Turn::fails(404), ChatErrorKind::NotFound),
        (
            Turn::says("x").finish_reason("model_context_window_exceeded"),
            ChatErrorKind::ContextWindow,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("never")]).await;
        let (answer, repeated) = ask(&model(&stub, CLAUDE), json!({"max_tokens": 10})).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind, repeated.len()), (kind, 0), "{turn:?}");
        assert!(error.request_id.is_some(), "{turn:?}");
    }
    for (native, finish) in [
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filter", FinishReason::ContentFilter),
        ("malformed_tool_use", FinishReason::MalformedCall),
        ("length", FinishReason::Length),
    ] {
        let stub = stub([Turn::says("x").finish_reason(native)]).await;
        let (answer, _) = ask(&model(&stub, CLAUDE), json!({"max_tokens": 10})).await;
        assert_eq!(answer.unwrap().finish_reason, finish, "{native}");
    }
}
