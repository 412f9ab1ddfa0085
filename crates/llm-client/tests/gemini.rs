//! The gemini provider over real sockets, against the strict stub.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use calls::{PICTURE, ask, listen, object, quick, request};
use formats::Object;
use formats::chat::{Block, Message, ToolDefinition};
use llm_client::{ChatErrorKind, ChatRequest, FinishReason, Model, ModelNameError, Models};
use serde_json::{Value, json};
use testkit::gemini::{GeminiStub, Options, Script, Turn};

const OLD: &str = "gemini/gemini-2.5-flash";
const NEW: &str = "gemini/gemini-3.5-flash";

async fn stub(turns: impl IntoIterator<Item = Turn>) -> GeminiStub {
    GeminiStub::start(Script::new(turns)).await.unwrap()
}

fn models(stub: &GeminiStub) -> Models {
    Models::new(stub.variables()).with_retry(quick())
}

fn model(stub: &GeminiStub, name: &str) -> Model {
    models(stub).resolve(name, &Object::new()).unwrap()
}

fn screenshots() -> [ToolDefinition; 2] {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"]}, "screen-id": {"const": "main"}},
        "additionalProperties": false
    });
    [
        ToolDefinition::new("screen.shot", "Takes a picture.", schema),
        ToolDefinition::new("now", "", json!({})),
    ]
}

/// Thoughts, parallel calls, results with pictures, a signature on an empty part: under the rules that the
/// stub checks, signatures included, at once and streamed.
async fn goes_there_and_back(name: &str, streamed: bool) -> (GeminiStub, Vec<Message>) {
    let tools = screenshots();
    // The names under which the stub's model calls.
    let wire = "screen_shot_94ff0a5d";
    let last = json!([
        {"text": "It is", "thoughtSignature": true}, {"text": " grey."}, {"text": "", "thoughtSignature": true}
    ]);
    let stub = stub([
        Turn::calls(wire, json!({"n": 1}))
            .and_calls("now", Value::Null)
            .field("reasoning_content", json!("I need to see it."))
            .usage(1000, 50),
        Turn::says("Again.").and_calls(wire, json!({"n": 2})),
        Turn::default().field("parts", last),
        Turn::says("Bye."),
    ])
    .await;
    let model = model(&stub, name);
    let extra_args = object(&json!({"reasoning_effort": "low"}));
    let mut messages = vec![Message::system("Be brief."), Message::user("What is it?")];
    let ask = async |messages: &[Message]| {
        let request = ChatRequest {
            tools: &tools,
            ..request(messages, &extra_args)
        };
        let none = |notice: llm_client::RetryNotice<'_>| panic!("{}", notice.error);
        let answer = if streamed {
            model.chat_streaming(request, &none, &|_| {}).await
        } else {
            model.chat(request, &none).await
        };
        answer.unwrap()
    };
    for round in 0..2 {
        let answer = ask(&messages).await;
        assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
        let calls = answer.message.tool_calls.clone();
        assert_eq!(calls[0].function.name, "screen.shot");
        assert_eq!(
            calls[0].function.arguments,
            json!({"n": round + 1}).to_string()
        );
        messages.push(answer.message);
        for call in calls {
            let content = if call.function.name == "now" {
                vec![Block::text("12:00")]
            } else {
                vec![Block::text("See:"), Block::image_url(PICTURE)]
            };
            messages.push(Message::tool(call.id, call.function.name, content));
        }
    }
    let last = ask(&messages).await;
    assert_eq!(last.message.text(), "It is grey.");
    assert_eq!(last.finish_reason, FinishReason::Stop);
    messages.push(last.message);
    messages.push(Message::user("Thanks."));
    assert_eq!(ask(&messages).await.message.text(), "Bye.");
    assert_eq!(stub.refusals(), Vec::<String>::new());
    (stub, messages)
}

#[tokio::test]
async fn a_tool_loop_with_signatures_and_pictures_goes_there_and_back() {
    for streamed in [false, true] {
        let (stub, messages) = goes_there_and_back(NEW, streamed).await;
        assert_eq!(messages[2].reasoning_content(), Some("I need to see it."));
        let requests = stub.requests();
        let sent = &requests[3].body;
        let turns = sent["contents"].as_array().unwrap();
        let kinds = |turn: &Value| -> Vec<String> {
            let parts = turn["parts"].as_array().unwrap().iter();
            parts
                .map(|part| part.as_object().unwrap().keys().next().unwrap().clone())
                .collect()
        };
        assert_eq!(kinds(&turns[1]), ["functionCall", "functionCall"]);
        assert_eq!(kinds(&turns[3]), ["text", "functionCall"]);
        // Ids and signatures are those of the answer.
        let first = &turns[1]["parts"][0];
        let answered = &messages[2].tool_calls[0];
        assert_eq!(first["functionCall"]["id"], answered.id.as_str());
        assert_eq!(
            first["thoughtSignature"],
            answered.extra["provider_specific_fields"]["thought_signature"]
        );
        assert_eq!(turns[1]["parts"][1].get("thoughtSignature"), None);
        // The picture stands within the response that it belongs to.
        let response = &turns[2]["parts"][0]["functionResponse"];
        assert_eq!(response["response"], json!({"content": "See:"}));
        assert_eq!(response["parts"][0]["inlineData"]["mimeType"], "image/png");
        assert_eq!(turns[2]["parts"].as_array().unwrap().len(), 2);
        // The signed parts of the last answer come back one by one, the empty one too.
        let last = turns[5]["parts"].as_array().unwrap();
        assert_eq!(last.len(), 3);
        assert_eq!(last[2]["text"], "");
        assert!(last[0]["thoughtSignature"].is_string() && last[2]["thoughtSignature"].is_string());
        // The beginning of a longer conversation is that of the shorter one.
        assert_eq!(requests[1].body["contents"][1], turns[1]);
        assert_eq!(
            sent["generationConfig"],
            json!({"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": true}})
        );
        let declared = &sent["tools"][0]["functionDeclarations"];
        assert_eq!(
            declared[0]["parameters"]["properties"]["n"],
            json!({"type": "integer", "nullable": true})
        );
        assert_eq!(declared[1], json!({"name": "now"}));
        let path = &requests[0].path;
        let verb = if streamed {
            ":streamGenerateContent"
        } else {
            ":generateContent"
        };
        assert!(
            path.ends_with(&format!("/v1beta/models/gemini-3.5-flash{verb}")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn older_models_see_pictures_beside_the_results_and_no_ids() {
    let (stub, _) = goes_there_and_back(OLD, false).await;
    let sent = stub.requests()[2].body.clone();
    let results = sent["contents"][2]["parts"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results[1]["inlineData"].is_object());
    assert_eq!(results[0]["functionResponse"].get("id"), None);
    assert_eq!(
        sent["generationConfig"]["thinkingConfig"],
        json!({"thinkingBudget": 1024, "includeThoughts": true})
    );
}

/// A6, A8: shared and empty ids, results without words, turns of nothing.
#[tokio::test]
async fn histories_that_gemini_would_refuse_are_mended() {
    let stub = stub([Turn::says("fine"), Turn::says("fine")]).await;
    let history: Vec<Message> = serde_json::from_value(json!([
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "", "type": "function", "function": {"name": "a.b", "arguments": ""}},
            {"id": "x", "type": "function", "function": {"name": "c", "arguments": "{\"cut\": \"off"}},
            {"id": "x", "type": "function", "function": {"name": "c", "arguments": "{}"}}
        ]},
        {"role": "tool", "tool_call_id": "x", "content": []},
        {"role": "user", "content": "hurry"},
        {"role": "tool", "tool_call_id": "x", "content": "second"},
        {"role": "tool", "tool_call_id": "nobody", "content": "lost"},
        {"role": "system", "content": "One step remains."}
    ]))
    .unwrap();
    let extra_args = Object::new();
    for name in [OLD, NEW] {
        let model = model(&stub, name);
        let request = request(&history, &extra_args);
        model.chat(request, &|_| panic!()).await.unwrap();
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let sent = &stub.requests()[1].body["contents"];
    let responses = sent[2]["parts"].as_array().unwrap();
    let said: Vec<&str> = responses
        .iter()
        .map(|part| {
            part["functionResponse"]["response"]["content"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(
        said,
        [
            "(no result of this call was recorded)",
            "(the tool returned nothing)",
            "second"
        ]
    );
    assert_eq!(
        sent[1]["parts"][1]["functionCall"]["args"],
        json!({"_raw": "{\"cut\": \"off"})
    );
    assert_eq!(sent[3]["parts"][0]["text"], "hurry");
}

#[tokio::test]
async fn deltas_are_told_while_they_come() {
    let stub = stub([Turn::says("Let me.")
        .and_calls("f", json!({"a": 1}))
        .field("reasoning_content", json!("hmm"))])
    .await;
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let (answer, heard) = listen(&model(&stub, NEW), &tools, json!({})).await;
    assert_eq!(
        (heard.reasoning.as_str(), heard.text.as_str()),
        ("hmm", "Let me.")
    );
    assert_eq!(
        (heard.calls, heard.arguments),
        (vec!["f".to_owned()], vec!["{\"a\":1}".to_owned()])
    );
    let answer = answer.unwrap();
    assert_eq!(answer.message.reasoning_content(), Some("hmm"));
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
    assert!(answer.usage.is_some());
}

/// A conversation that another model began: calls without signatures, or with those of another server.
#[tokio::test]
async fn conversations_of_others_can_go_on() {
    let stub = stub([Turn::says("a"), Turn::says("b")]).await;
    let history = |signature: &str| {
        let mut call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let mut id = "call_1".to_owned();
        if !signature.is_empty() {
            // As the reference implementation writes it.
            id = format!("call_1__thought__{signature}");
            call["id"] = id.clone().into();
        }
        let history: Vec<Message> = serde_json::from_value(json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "x"}
        ]))
        .unwrap();
        history
    };
    let extra_args = Object::new();
    for signature in ["", "Zm9yZWlnbg=="] {
        let history = history(signature);
        let request = request(&history, &extra_args);
        model(&stub, NEW)
            .chat(request, &|_| panic!())
            .await
            .unwrap();
    }
    let requests = stub.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(stub.refusals().len(), 1);
    assert!(stub.refusals()[0].contains("Corrupted thought signature"));
    let stand_in = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";
    let signature = |index: usize| {
        let part = &requests[index].body["contents"][1]["parts"][0];
        assert_eq!(part["functionCall"]["id"], "call_1");
        part["thoughtSignature"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        [signature(0), signature(1), signature(2)],
        [stand_in, "Zm9yZWlnbg==", stand_in]
    );
}

#[tokio::test]
async fn a_call_that_could_not_be_written_and_a_refused_prompt_are_ends_of_their_own() {
    let stub = stub([
        Turn::calls("f", json!("{\"a\": ")),
        Turn::default().field("block_reason", json!("PROHIBITED_CONTENT")),
        Turn::says("some").finish_reason("content_filter"),
    ])
    .await;
    let model = model(&stub, OLD);
    let malformed = ask(&model, json!({})).await.0.unwrap();
    assert_eq!(malformed.finish_reason, FinishReason::MalformedCall);
    let fields = &malformed.message.extra["provider_specific_fields"];
    assert!(
        fields["finish_message"].as_str().unwrap().contains("f("),
        "{fields}"
    );
    let blocked = ask(&model, json!({})).await.0.unwrap();
    assert_eq!(blocked.finish_reason, FinishReason::ContentFilter);
    assert_eq!(blocked.message.content, None);
    let filtered = ask(&model, json!({})).await.0.unwrap();
    assert_eq!(filtered.finish_reason, FinishReason::ContentFilter);
    assert_eq!(filtered.message.text(), "some");
    assert_eq!(
        filtered.message.extra["provider_specific_fields"]["native_finish_reason"],
        "SAFETY"
    );
}

#[tokio::test]
async fn parameters_are_refused_before_anything_is_sent() {
    let stub = stub([Turn::says("x"), Turn::says("y")]).await;
    let (answer, _) = ask(&model(&stub, NEW), json!({"presence_penalty": 0.5})).await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::UnsupportedParameter);
    assert!(error.message.contains("`presence_penalty`"), "{error}");
    assert_eq!(stub.requests().len(), 0);
    let dropped = json!({"presence_penalty": 0.5, "drop_params": true});
    ask(&model(&stub, NEW), dropped).await.0.unwrap();
    // Further fields go beside those that parameters set.
    let beside = json!({
        "temperature": 0.5,
        "extra_body": {"generationConfig": {"topK": 3}, "safetySettings": []}
    });
    ask(&model(&stub, NEW), beside).await.0.unwrap();
    let body = stub.requests()[1].body.clone();
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "topK": 3})
    );
    assert_eq!(body["safetySettings"], json!([]));
}

#[tokio::test]
async fn an_answer_to_a_schema_comes_as_text_either_way() {
    let extra_args = object(
        &json!({"response_format": {"type": "json_schema", "json_schema": {
            "name": "verdict",
            "schema": {"type": "object", "properties": {"is-ok": {"type": "boolean"}}, "required": ["is-ok"]}
        }}}),
    );
    let messages = [Message::user("hi")];
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let beside_tools = ChatRequest {
        tools: &tools,
        ..request(&messages, &extra_args)
    };
    // A model of before Gemini 3 takes no JSON beside functions, so the answer is a call.
    let stub = stub([
        Turn::says("{\"is-ok\": true}"),
        Turn::calls("give_answer", json!({"is_ok_3652cbea": true})),
        Turn::says("{\"is-ok\": true}"),
    ])
    .await;
    let plain = model(&stub, OLD)
        .chat(request(&messages, &extra_args), &|_| {})
        .await
        .unwrap();
    assert_eq!(plain.message.text(), "{\"is-ok\": true}");
    let by_call = model(&stub, OLD).chat(beside_tools, &|_| {}).await.unwrap();
    let declared = &stub.requests()[1].body["tools"][0]["functionDeclarations"][1];
    let properties = declared["parameters"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().next().unwrap(), "is_ok_3652cbea");
    assert_eq!(by_call.message.text(), "{\"is-ok\":true}");
    assert_eq!(by_call.finish_reason, FinishReason::Stop);
    assert!(by_call.message.tool_calls.is_empty());
    let newer = model(&stub, NEW).chat(beside_tools, &|_| {}).await.unwrap();
    assert_eq!(newer.message.text(), "{\"is-ok\": true}");
    assert_eq!(
        stub.requests()[2].body["generationConfig"]["responseJsonSchema"]["required"],
        json!(["is-ok"])
    );
    assert_eq!(stub.refusals(), Vec::<String>::new());
}

#[tokio::test]
async fn tools_can_be_described_in_json_schema() {
    let stub = stub([Turn::says("x")]).await;
    let schema =
        json!({"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": false});
    let tools = [ToolDefinition::new("f", "", schema.clone())];
    let messages = [Message::user("hi")];
    let extra_args = object(&json!({"parameters_json_schema": true}));
    let request = ChatRequest {
        tools: &tools,
        ..request(&messages, &extra_args)
    };
    model(&stub, NEW)
        .chat(request, &|_| panic!())
        .await
        .unwrap();
    let declared = &stub.requests()[0].body["tools"][0]["functionDeclarations"][0];
    assert_eq!(
        *declared,
        json!({"name": "f", "parametersJsonSchema": schema})
    );
}

#[tokio::test]
async fn usage_counts_the_cache_and_thoughts_and_cost_follows() {
    let script = serde_json::from_value::<Script>(json!({"turns": [{
        "content": "x",
        "usage": {"prompt_tokens": 100_000, "completion_tokens": 2_000, "total_tokens": 102_000,
                  "prompt_tokens_details": {"cached_tokens": 40_000},
                  "completion_tokens_details": {"reasoning_tokens": 1_500}}
    }]}));
    let stub = GeminiStub::start(script.unwrap()).await.unwrap();
    let answer = ask(&model(&stub, OLD), json!({})).await.0.unwrap();
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.prompt_tokens, usage.cached_tokens()),
        (100_000, 40_000)
    );
    assert_eq!(
        (usage.completion_tokens, usage.reasoning_tokens()),
        (2_000, 1_500)
    );
    // 60,000·0.3 + 40,000·0.03 + 2,000·2.5 = 24,200 millionths.
    assert!((answer.cost_usd.unwrap() - 0.0242).abs() < 1e-9);
}

#[tokio::test]
async fn credentials_and_addresses_come_from_variables_and_arguments() {
    let stub = GeminiStub::start_with(Options::new(
        Script::new([Turn::says("a")]).repeat_last(),
        "AIza-very-long-key",
    ))
    .await
    .unwrap();
    let nothing = Models::new(|_| None);
    let error = nothing.resolve(OLD, &Object::new()).unwrap_err();
    assert!(matches!(error, ModelNameError::NoCredentials { .. }));
    assert!(
        error
            .to_string()
            .contains("set GOOGLE_API_KEY or GEMINI_API_KEY"),
        "{error}"
    );
    // With and without the version, and with another name of the variable.
    let base = stub.base_url();
    let root = base.strip_suffix("/v1beta").unwrap().to_owned();
    for (variable, base) in [
        ("GEMINI_API_BASE", base),
        ("GOOGLE_GEMINI_BASE_URL", root.clone()),
    ] {
        let key = stub.key().to_owned();
        let models = Models::new(|name| match name {
            "GOOGLE_API_KEY" => Some(key.clone()),
            name if name == variable => Some(base.clone()),
            _ => None,
        });
        let model = models.resolve(OLD, &Object::new()).unwrap();
        ask(&model, json!({})).await.0.unwrap();
    }
    let own = json!({"api_base": root, "api_key": stub.key()});
    let model = nothing.resolve(OLD, &object(&own)).unwrap();
    ask(&model, own).await.0.unwrap();
    let headers = stub.requests()[2].headers.clone();
    // Who asks is told where the address is the caller's.
    assert_eq!(headers["service"], "trajectory");
    assert!(
        !headers.contains_key("x-goog-api-key"),
        "the stub keeps no keys"
    );

    let wrong = json!({"api_base": root, "api_key": "AIza-very-secret"});
    let model = nothing.resolve(OLD, &object(&wrong)).unwrap();
    let (answer, repeated) = ask(&model, wrong).await;
    let error = answer.unwrap_err();
    assert_eq!((error.kind, repeated.len()), (ChatErrorKind::Auth, 0));
    assert!(
        !format!("{error} {error:?} {model:?}").contains("very-secret"),
        "{error}"
    );
}
