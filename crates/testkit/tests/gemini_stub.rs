//! The stub of Gemini refuses what Gemini refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

use serde_json::{Value, json};
use testkit::gemini::{GeminiStub, Script, Turn};

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3.5-flash";
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

async fn ask(stub: &GeminiStub, model: &str, body: &Value) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client
        .post(format!(
            "{}/models/{model}:generateContent",
            stub.base_url()
        ))
        .header("x-goog-api-key", stub.key())
        .json(body)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

fn user(parts: Value) -> Value {
    json!({"role": "user", "parts": parts})
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn said(text: &str) -> Value {
    user(json!([{"text": text}]))
}

fn call() -> Value {
    json!({"functionCall": {"name": "f", "args": {}}})
}

fn response() -> Value {
    json!({"functionResponse": {"name": "f", "response": {"content": "x"}}})
}

fn with(contents: Value, more: Value) -> Value {
    let mut body = json!({"contents": contents});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn hi(more: Value) -> Value {
    with(json!([said("hi")]), more)
}

fn function(parameters: Value) -> Value {
    json!({"tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]})
}

fn property(schema: Value) -> Value {
    hi(function(
        json!({"type": "object", "properties": {"a": schema}}),
    ))
}

#[tokio::test]
async fn what_gemini_refuses_is_refused() {
    let stub = GeminiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    let id = json!({"functionCall": {"name": "f", "args": {}, "id": "1"}});
    let signed =
        json!({"functionCall": {"name": "f", "args": {}, "id": "1"}, "thoughtSignature": "forged"});
    let named = json!({"functionResponse": {"name": "g", "response": {"content": "x"}}});
    let image = |kind: &str| json!({"inlineData": {"mimeType": kind, "data": PICTURE}});
    let json_form = json!({"generationConfig": {"responseMimeType": "application/json"}, "tools": [{"functionDeclarations": [{"name": "f"}]}]});
    let choice = json!({"functionCallingConfig": {"mode": "ANY"}});
    let cases = [
        (OLD, hi(json!({"seed": 1})), "Unknown name \"seed\""),
        (OLD, json!({"contents": []}), "contents is not specified"),
        (
            OLD,
            json!({"contents": [model(json!([{"text": "a"}]))]}),
            "first content",
        ),
        (
            OLD,
            json!({"contents": [{"role": "system", "parts": [{"text": "a"}]}]}),
            "valid role",
        ),
        (
            OLD,
            json!({"contents": [said("")]}),
            "required oneof field 'data'",
        ),
        (
            OLD,
            hi(json!({"systemInstruction": {"parts": [{"text": ""}]}})),
            "required oneof field 'data'",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([call()]))]}),
            "number of function response parts",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([call()])), said("b")]}),
            "number of function response parts",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([call(), call()])), user(json!([response()]))]}),
            "number of function response parts",
        ),
        (
            OLD,
            json!({"contents": [said("a"), user(json!([response()]))]}),
            "immediately after a function call turn",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([call()])), user(json!([named]))]}),
            "answers a call of `f`",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([id])), user(json!([response()]))]}),
            "Unknown name \"id\"",
        ),
        (
            OLD,
            json!({"contents": [said("a"), model(json!([{"functionCall": {"name": "f", "args": [1]}}])), user(json!([response()]))]}),
            "must be an object",
        ),
        (
            OLD,
            json!({"contents": [user(json!([image("image/jpeg")]))]}),
            "Unable to process input image",
        ),
        (
            OLD,
            json!({"contents": [user(json!([image("image/gif")]))]}),
            "Unsupported MIME type",
        ),
        (
            NEW,
            json!({"contents": [said("a"), model(json!([call()])), user(json!([response()]))]}),
            "missing a thought_signature",
        ),
        (
            NEW,
            json!({"contents": [said("a"), model(json!([signed])), user(json!([response()]))]}),
            "Corrupted thought signature",
        ),
        (
            OLD,
            hi(json!({"tools": [{"functionDeclarations": []}]})),
            "must not be empty",
        ),
        (
            OLD,
            hi(json!({"tools": [{"functionDeclarations": [{"name": "2f"}]}]})),
            "Invalid function name",
        ),
        (
            OLD,
            hi(json!({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]})),
            "Duplicate function",
        ),
        (
            OLD,
            hi(function(json!({"type": "object", "properties": {}}))),
            "should be non-empty",
        ),
        (
            OLD,
            hi(function(json!({"type": "string"}))),
            "of type OBJECT",
        ),
        (
            OLD,
            property(json!({"$ref": "#/$defs/a"})),
            "Unknown name \"$ref\"",
        ),
        (
            OLD,
            property(json!({"type": "object", "additionalProperties": false})),
            "Unknown name \"additionalProperties\"",
        ),
        (
            OLD,
            property(json!({"const": "a"})),
            "Unknown name \"const\"",
        ),
        (
            OLD,
            property(json!({"type": ["string", "null"]})),
            "type: must be specified",
        ),
        (OLD, property(json!({})), "type: must be specified"),
        (
            OLD,
            property(json!({"type": "array"})),
            "items: missing field",
        ),
        (
            OLD,
            property(json!({"type": "string", "enum": ["a", ""]})),
            "enum: cannot be empty",
        ),
        (
            OLD,
            property(json!({"type": "integer", "enum": [1]})),
            "only allowed for STRING",
        ),
        (
            OLD,
            property(json!({"type": "string", "format": "email"})),
            "only 'enum' and 'date-time'",
        ),
        (
            OLD,
            property(json!({"anyOf": [{"type": "string"}], "description": "a"})),
            "only field set",
        ),
        (
            OLD,
            hi(function(
                json!({"type": "object", "properties": {"a-b": {"type": "string"}}}),
            )),
            "invalid property name",
        ),
        (
            OLD,
            hi(function(
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
            )),
            "property is not defined",
        ),
        (
            OLD,
            hi(json!({"toolConfig": choice})),
            "without function_declarations",
        ),
        (OLD, hi(json_form), "is unsupported"),
        (
            OLD,
            hi(json!({"generationConfig": {"temperature": 3}})),
            "range [0.0, 2.0]",
        ),
        (
            OLD,
            hi(json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}})),
            "level is not supported",
        ),
        (
            NEW,
            hi(
                json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 1}}}),
            ),
            "only set one of",
        ),
        (
            NEW,
            hi(json!({"generationConfig": {"presencePenalty": 0.5}})),
            "Penalty is not enabled",
        ),
        (
            "gemini-2.0-flash",
            hi(json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 1}}})),
            "Thinking is not enabled",
        ),
        (
            OLD,
            hi(json!({"generationConfig": {"responseJsonSchema": {}}})),
            "only applies to response mime type",
        ),
    ];
    for (model, body, reason) in cases {
        let (status, answer) = ask(&stub, model, &body).await;
        assert_eq!(status, 400, "{body}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}, not {reason}: {body}");
        assert_eq!(answer["error"]["status"], "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn what_gemini_takes_is_taken_in_both_spellings() {
    let stub = GeminiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    for (model, body) in [
        (
            OLD,
            hi(
                json!({"system_instruction": {"parts": [{"text": "a"}]}, "generation_config": {"max_output_tokens": 5}}),
            ),
        ),
        (
            OLD,
            hi(
                json!({"systemInstruction": {"parts": [{"text": "a"}]}, "generationConfig": {"maxOutputTokens": 5}}),
            ),
        ),
        (
            OLD,
            json!({"contents": [said("a"), self::model(json!([{"text": "b"}, call()])), user(json!([response()])), said("c")]}),
        ),
        (
            NEW,
            json!({"contents": [
                said("a"),
                self::model(json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}, call()])),
                user(json!([response(), response()]))
            ]}),
        ),
        // Only the current turn needs signatures.
        (
            NEW,
            json!({"contents": [said("a"), self::model(json!([call()])), user(json!([response()])), said("b")]}),
        ),
        (
            OLD,
            property(json!({"type": "STRING", "enum": ["a"], "nullable": true, "format": "enum"})),
        ),
        (
            OLD,
            hi(
                json!({"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "additionalProperties": false}}]}]}),
            ),
        ),
    ] {
        let (status, answer) = ask(&stub, model, &body).await;
        assert_eq!(status, 200, "{answer} {body}");
        assert_eq!(
            answer["candidates"][0]["content"]["parts"][0]["text"],
            "fine"
        );
    }
}

#[tokio::test]
async fn keys_are_asked_for_as_google_does() {
    let stub = GeminiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = format!("{}/models/{OLD}:generateContent", stub.base_url());
    let body = hi(json!({}));
    for (address, header, status) in [
        (address.clone(), None, 403),
        (
            address.clone(),
            Some(("x-goog-api-key", "wrong".to_owned())),
            400,
        ),
        (
            address.clone(),
            Some(("authorization", "Bearer wrong".to_owned())),
            401,
        ),
        (
            address.clone(),
            Some(("authorization", format!("Bearer {}", stub.key()))),
            200,
        ),
        (format!("{address}?key={}", stub.key()), None, 200),
    ] {
        let mut request = client.post(&address).json(&body);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{address}");
    }
}

/// A stream has the parts of the answer, texts in pieces, signed parts whole, and the end in its last event.
#[tokio::test]
async fn streams_bring_the_same_parts() {
    let turn = Turn::says("Let me look.")
        .and_calls("f", json!({"a": 1}))
        .field("reasoning_content", json!("hm"));
    let stub = GeminiStub::start(Script::new([turn]).repeat_last())
        .await
        .unwrap();
    let (_, whole) = ask(&stub, NEW, &hi(json!({}))).await;
    let parts = whole["candidates"][0]["content"]["parts"]
        .as_array()
        .unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[0], json!({"text": "hm", "thought": true}));
    assert!(parts[2]["thoughtSignature"].is_string() && parts[2]["functionCall"]["id"].is_string());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = format!("{}/models/{NEW}:streamGenerateContent", stub.base_url());
    let send = async |address: String| {
        let request = client.post(address).header("x-goog-api-key", stub.key());
        let response = request.json(&hi(json!({}))).send().await.unwrap();
        response.text().await.unwrap()
    };
    let events = send(format!("{address}?alt=sse")).await;
    let events: Vec<Value> = events
        .split("\r\n\r\n")
        .filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok())
        .collect();
    let text = |event: &Value| {
        let part = &event["candidates"][0]["content"]["parts"][0];
        part["text"].as_str().map(str::to_owned)
    };
    let said: Vec<String> = events.iter().filter_map(text).collect();
    assert_eq!(said, ["h", "m", "Let me", " look."]);
    assert_eq!(events.len(), 6);
    assert_eq!(events[5]["candidates"][0]["finishReason"], "STOP");
    assert!(events[5]["usageMetadata"].is_object());
    // Without `alt=sse` a stream is one array.
    let array: Vec<Value> = serde_json::from_str(&send(address).await).unwrap();
    assert_eq!(array.len(), 6);
}

/// What cannot be written as a call, and a prompt that is refused.
#[tokio::test]
async fn ends_that_only_gemini_has() {
    let stub = GeminiStub::start(Script::new([
        Turn::calls("f", json!("{\"a\": ")),
        Turn::default().field("block_reason", json!("SAFETY")),
        Turn::says("part").finish_reason("length"),
    ]))
    .await
    .unwrap();
    let (_, malformed) = ask(&stub, OLD, &hi(json!({}))).await;
    assert_eq!(
        malformed["candidates"][0]["finishReason"],
        "MALFORMED_FUNCTION_CALL"
    );
    let (_, blocked) = ask(&stub, OLD, &hi(json!({}))).await;
    assert_eq!(blocked["promptFeedback"]["blockReason"], "SAFETY");
    assert_eq!(blocked.get("candidates"), None);
    let (_, cut) = ask(&stub, OLD, &hi(json!({}))).await;
    assert_eq!(cut["candidates"][0]["finishReason"], "MAX_TOKENS");
}
