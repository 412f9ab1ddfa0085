//! OpenAI's Responses interface over real sockets, against the strict stub.
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
use llm_client::{ChatErrorKind, FinishReason, Model, Models};
use serde_json::{Value, json};
use testkit::openai::{Fault, OpenAiStub, Script, Turn};

async fn stub(turns: impl IntoIterator<Item = Turn>) -> OpenAiStub {
    OpenAiStub::start(Script::new(turns)).await.unwrap()
}

fn model(stub: &OpenAiStub, name: &str) -> Model {
    Models::new(stub.variables())
        .with_retry(quick())
        .resolve(name, &Object::new())
        .unwrap()
}

fn tools() -> [ToolDefinition; 1] {
    [ToolDefinition::new(
        "screen.shot",
        "Takes a picture.",
        json!({}),
    )]
}

/// Reasoning, a text and a call in each of two rounds, whose results are pictures: the stub refuses a
/// request without the sealed reasoning in its place.
#[tokio::test]
async fn a_tool_loop_with_reasoning_and_pictures_goes_there_and_back() {
    let call = |n: u32| {
        Turn::calls("screen_shot_94ff0a5d", json!({ "n": n }))
            .field("reasoning_content", json!(format!("Look {n}.")))
    };
    let mut second = call(2);
    second.content = Some("Again.".into());
    let stub = stub([
        call(1).usage(1_000_000, 100_000),
        second,
        Turn::says("It is grey."),
    ])
    .await;
    let model = model(&stub, "openai/gpt-5.5");
    let tools = tools();
    let extra_args = object(&json!({"reasoning_effort": "low"}));
    let mut messages = vec![Message::system("Be brief."), Message::user("What is it?")];
    for round in 1..=2 {
        let answer = ask_with(&model, &messages, &tools, &extra_args)
            .await
            .unwrap();
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
        let call = &answer.message.tool_calls[0];
        assert_eq!(call.function.name, "screen.shot");
        assert_eq!(call.function.arguments, json!({ "n": round }).to_string());
        let thought = format!("Look {round}.");
        assert_eq!(answer.message.reasoning_content(), Some(thought.as_str()));
        if round == 1 {
            // A long prompt: a million fresh tokens at 10 and 0.1 million at 45 dollars.
            assert!((answer.cost_usd.unwrap() - 14.5).abs() < 1e-9);
        }
        let id = call.id.clone();
        // As in a trajectory that was written and read again.
        let written = serde_json::to_string(&answer.message).unwrap();
        messages.push(serde_json::from_str(&written).unwrap());
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
    assert_eq!(last.finish_reason, FinishReason::Stop);
    assert!(last.request_id.is_some());
    assert_eq!(stub.refusals(), Vec::<String>::new());

    let requests = stub.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.path == "/v1/responses")
    );
    let sent = &requests[2].body;
    assert_eq!(sent["store"], false);
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(sent["reasoning"], json!({"effort": "low"}));
    let items = sent["input"].as_array().unwrap();
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "reasoning",
            "message",
            "function_call",
            "function_call_output"
        ]
    );
    assert_eq!(
        items[4]["output"][1],
        json!({"type": "input_image", "image_url": PICTURE, "detail": "auto"})
    );
    // The beginning of a longer conversation is the shorter one.
    let earlier = requests[1].body["input"].as_array().unwrap();
    assert_eq!(earlier[..], items[..earlier.len()]);
}

/// A turn that somebody changed is not sent as it came, and needs no reasoning then.
#[tokio::test]
async fn a_changed_turn_counts_as_it_is_now() {
    let stub = stub([
        Turn::calls("f", json!({})).field("reasoning_content", json!("hm")),
        Turn::says("done"),
    ])
    .await;
    let model = model(&stub, "openai/gpt-5.5");
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let mut messages = vec![Message::user("go")];
    let refused = ask_with(&model, &messages, &tools, &Object::new())
        .await
        .unwrap_err();
    // Nothing is said of reasoning, and the address is not OpenAI's: chat completions, which the
    // model refuses.
    assert!(refused.message.contains("/v1/responses"), "{refused}");
    let extra_args = object(&json!({"api": "responses"}));
    let first = ask_with(&model, &messages, &tools, &extra_args)
        .await
        .unwrap();
    let mut turn = first.message;
    turn.content = Some("I will call f.".into());
    let id = turn.tool_calls[0].id.clone();
    messages.push(turn);
    messages.push(Message::tool(id, "f", "fine"));
    let last = ask_with(&model, &messages, &tools, &extra_args).await;
    assert_eq!(last.unwrap().message.text(), "done");
    let items = stub.requests()[2].body["input"].clone();
    assert_eq!(items[1]["content"], "I will call f.");
    assert_eq!(items[2]["type"], "function_call");
    assert_eq!(items[2].get("id"), None);
    assert_eq!(items[3]["output"], "fine");
}

#[tokio::test]
async fn deltas_are_told_while_they_come() {
    let mut turn = Turn::calls("f", json!({"a": 1})).and_calls("g", json!({"b": 2}));
    turn.content = Some("Well, then.".into());
    let turn = turn.field("reasoning_content", json!("First, think."));
    let stub = stub([turn.clone(), turn]).await;
    let model = model(&stub, "openai/responses/gpt-5.5");
    let tools = ["f", "g"].map(|name| ToolDefinition::new(name, "", json!({})));
    let extra_args = json!({"reasoning": {"effort": "low", "summary": "auto"}});
    let (streamed, heard) = listen(&model, &tools, extra_args.clone()).await;
    let streamed = streamed.unwrap();
    assert_eq!(heard.text, "Well, then.");
    assert_eq!(heard.reasoning, "First, think.");
    assert_eq!(heard.calls, ["f", "g"]);
    assert_eq!(heard.arguments, ["{\"a\":1}", "{\"b\":2}"]);
    assert!(heard.pieces > 8, "{heard:?}");
    assert_eq!(stub.requests()[0].body["stream"], true);
    assert_eq!(
        stub.requests()[0].body["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    // The same answer as at once, but for the numbers that the stub gives out.
    let (at_once, _) = ask(&model, extra_args).await;
    let at_once = at_once.unwrap();
    assert_eq!(at_once.finish_reason, streamed.finish_reason);
    assert_eq!(at_once.message.text(), streamed.message.text());
    let kept = |message: &Message| {
        let fields = message.extra["provider_specific_fields"].clone();
        fields["openai_output"].as_array().unwrap().len()
    };
    assert_eq!(kept(&at_once.message), 4);
    assert_eq!(kept(&streamed.message), 4);
    let sealed = &streamed.message.extra["provider_specific_fields"]["openai_output"][0];
    assert_ne!(sealed["encrypted_content"], "unfinished");
}

#[tokio::test]
async fn the_interface_is_chosen_by_model_and_parameters() {
    let stub = OpenAiStub::start(Script::new([Turn::says("x")]).repeat_last())
        .await
        .unwrap();
    let web_search = json!([{"type": "web_search"}]);
    for (name, has_tools, extra_args, path) in [
        ("openai/gpt-4.1", true, json!({}), "/v1/chat/completions"),
        (
            "openai/gpt-5.5",
            false,
            json!({"reasoning_effort": "high"}),
            "/v1/chat/completions",
        ),
        (
            "openai/gpt-5.5",
            true,
            json!({"reasoning_effort": "none"}),
            "/v1/chat/completions",
        ),
        (
            "openai/gpt-5.5",
            true,
            json!({"reasoning_effort": "high"}),
            "/v1/responses",
        ),
        (
            "openai/gpt-5.5",
            true,
            json!({"reasoning": {"effort": "low"}}),
            "/v1/responses",
        ),
        ("openai/gpt-5-pro", false, json!({}), "/v1/responses"),
        ("openai/gpt-5-codex", true, json!({}), "/v1/responses"),
        (
            "openai/responses/gpt-4.1",
            false,
            json!({}),
            "/v1/responses",
        ),
        (
            "openai/gpt-4.1",
            false,
            json!({"api": "responses"}),
            "/v1/responses",
        ),
        (
            "openai/gpt-4.1",
            false,
            json!({"native_tools": web_search}),
            "/v1/responses",
        ),
        (
            "openai/gpt-5.2",
            false,
            json!({"reasoning": {"summary": "auto"}}),
            "/v1/responses",
        ),
        (
            "openai/responses/gpt-5.5",
            false,
            json!({"api": "chat_completions"}),
            "/v1/chat/completions",
        ),
    ] {
        let tools = tools();
        let tools = if has_tools { &tools[..] } else { &[] };
        let extra_args = object(&extra_args);
        let answer = ask_with(
            &model(&stub, name),
            &[Message::user("hi")],
            tools,
            &extra_args,
        )
        .await;
        assert_eq!(answer.unwrap().message.text(), "x", "{name} {extra_args:?}");
        let requests = stub.requests();
        let last = requests.last().unwrap();
        assert_eq!(last.path, path, "{name} {extra_args:?}");
        let bare = name.rsplit('/').next().unwrap();
        assert_eq!(last.body["model"], bare);
    }
    let models = Models::new(|_| Some("x".to_owned()));
    for name in ["anthropic/claude-sonnet-4-5", "litellm_proxy/x"] {
        let extra_args = object(&json!({"api": "responses"}));
        let error = models.resolve(name, &extra_args).unwrap_err().to_string();
        assert!(error.contains("`api`"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_to_a_schema_and_one_that_was_cut_off() {
    let stub = stub([
        Turn::says("{\"ok\": true}"),
        Turn::calls("f", json!("{\"a\": ")).finish_reason("length"),
        Turn::says("No mor").finish_reason("content_filter"),
        Turn::default().field("refusal", json!("I cannot.")),
    ])
    .await;
    let model = model(&stub, "openai/responses/gpt-4.1");
    let schema = json!({"response_format": {"type": "json_schema", "json_schema": {
        "name": "verdict", "strict": true, "schema": {
            "type": "object", "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"], "additionalProperties": false
        }
    }}});
    let (answer, _) = ask(&model, schema).await;
    assert_eq!(answer.unwrap().message.text(), "{\"ok\": true}");
    assert_eq!(stub.requests()[0].body["text"]["format"]["name"], "verdict");

    let (cut, _) = ask(&model, json!({"max_tokens": 16})).await;
    let cut = cut.unwrap();
    assert_eq!(cut.finish_reason, FinishReason::Length);
    assert_eq!(cut.message.tool_calls[0].function.arguments, "{\"a\": ");
    assert_eq!(stub.requests()[1].body["max_output_tokens"], 16);

    for said in ["No mor", ""] {
        let (filtered, _) = ask(&model, json!({})).await;
        let filtered = filtered.unwrap();
        assert_eq!(filtered.finish_reason, FinishReason::ContentFilter);
        assert_eq!(filtered.message.text(), said);
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn faults_are_told_apart_and_repeated() {
    let failed = |code: &str| {
        json!({"id": "resp_1", "object": "response", "status": "failed", "output": [],
               "error": {"code": code, "message": "It did not work."}})
    };
    for (turn, kind) in [
        (Turn::fails(503), ChatErrorKind::Overloaded),
        (
            Turn::fails(429).header("retry-after-ms", "1"),
            ChatErrorKind::RateLimit,
        ),
        (Turn::faulty(Fault::Drop), ChatErrorKind::Connection),
        (Turn::faulty(Fault::HalfBody), ChatErrorKind::Connection),
        (
            Turn::faulty(Fault::MalformedJson),
            ChatErrorKind::MalformedReply,
        ),
        (Turn::faulty(Fault::Midway), ChatErrorKind::Server),
        (
            Turn::says("x").finish_reason("failed"),
            ChatErrorKind::Server,
        ),
        (
            Turn::fails_with(200, failed("rate_limit_exceeded")),
            ChatErrorKind::RateLimit,
        ),
        (
            Turn::fails_with(200, json!({"status": "completed", "output": []})),
            ChatErrorKind::MalformedReply,
        ),
    ] {
        for streams in [false, true] {
            let stub = stub([turn.clone(), Turn::says("well")]).await;
            let model = model(&stub, "openai/responses/gpt-5.5");
            if streams {
                let (answer, heard) = listen(&model, &[], json!({})).await;
                assert_eq!(answer.unwrap().attempts, 2, "{turn:?}");
                assert!(heard.text.ends_with("well"), "{turn:?}");
            } else {
                let (answer, repeated) = ask(&model, json!({})).await;
                assert_eq!(repeated, [kind], "{turn:?}");
                assert_eq!(answer.unwrap().message.text(), "well", "{turn:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_final_is_not_repeated() {
    let said = |code: &str, message: &str| json!({"error": {"code": code, "message": message, "type": "invalid_request_error"}});
    let failed = |code: &str| json!({"status": "failed", "output": [], "error": {"code": code, "message": "It did not work."}});
    for (turn, kind) in [
        (
            Turn::fails_with(400, said("context_length_exceeded", "too long")),
            ChatErrorKind::ContextWindow,
        ),
        (
            Turn::fails_with(
                400,
                said("invalid_encrypted_content", "could not be verified"),
            ),
            ChatErrorKind::BadRequest,
        ),
        (
            Turn::fails_with(429, said("insufficient_quota", "no more")),
            ChatErrorKind::Credit,
        ),
        (Turn::fails(401), ChatErrorKind::Auth),
        (Turn::fails(404), ChatErrorKind::NotFound),
        (
            Turn::fails_with(200, failed("invalid_image_format")),
            ChatErrorKind::BadRequest,
        ),
        (
            Turn::fails_with(200, failed("invalid_prompt")),
            ChatErrorKind::ContentFilter,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("never")]).await;
        let (answer, repeated) = ask(&model(&stub, "openai/responses/gpt-5.5"), json!({})).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind, repeated.len()), (kind, 0), "{turn:?}");
        assert!(error.request_id.is_some(), "{turn:?}");
    }
    let stub = stub([Turn::says("x")]).await;
    let model = model(&stub, "openai/responses/gpt-5.5");
    let (answer, _) = ask(&model, json!({"seed": 7})).await;
    assert_eq!(
        answer.unwrap_err().kind,
        ChatErrorKind::UnsupportedParameter
    );
    assert_eq!(stub.requests().len(), 0);
}

/// What the provider's own tools did is kept and goes back as it came.
#[tokio::test]
async fn tools_of_the_provider_leave_their_items() {
    let output: Value = json!([
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "grey"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "Grey.", "annotations": [{"type": "url_citation", "url": "https://h/", "start_index": 0, "end_index": 4, "title": "t"}]}
        ]}
    ]);
    let stub = stub([
        Turn::default().field("output", output.clone()),
        Turn::says("ok"),
    ])
    .await;
    let model = model(&stub, "openai/gpt-5.2");
    let extra_args = object(&json!({"native_tools": [{"type": "web_search"}]}));
    let mut messages = vec![Message::user("What is it?")];
    let answer = ask_with(&model, &messages, &[], &extra_args).await.unwrap();
    assert_eq!(answer.message.text(), "Grey.");
    assert_eq!(answer.message.extra["annotations"][0]["url"], "https://h/");
    messages.extend([answer.message, Message::user("Sure?")]);
    ask_with(&model, &messages, &[], &extra_args).await.unwrap();
    let sent = &stub.requests()[1].body;
    assert_eq!(sent["tools"], json!([{"type": "web_search"}]));
    assert_eq!(sent["input"][1], output[0]);
    assert_eq!(sent["input"][2], output[1]);
}
