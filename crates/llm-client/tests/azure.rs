//! OpenAI's models at Azure over real sockets, against the strict stub.
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
use llm_client::{ChatErrorKind, FinishReason, Model, ModelNameError, Models};
use serde_json::json;
use testkit::azure::{AzureStub, Fault, Script, Turn};

const DATED: &str = "2025-04-01-preview";

async fn stub(turns: impl IntoIterator<Item = Turn>) -> AzureStub {
    AzureStub::start(Script::new(turns)).await.unwrap()
}

/// Models at `stub`, with a version of the interface if one is given.
fn models(stub: &AzureStub, version: Option<&'static str>) -> Models {
    let variable = stub.variables();
    Models::new(move |name| {
        if name == "AZURE_API_VERSION" {
            return version.map(str::to_owned);
        }
        variable(name)
    })
    .with_retry(quick())
}

fn model(stub: &AzureStub, version: Option<&'static str>, name: &str) -> Model {
    models(stub, version).resolve(name, &Object::new()).unwrap()
}

#[tokio::test]
async fn a_conversation_with_tools_and_pictures_goes_there_and_back() {
    for (version, path) in [
        (Some(DATED), "/openai/deployments/my-gpt/chat/completions"),
        (None, "/openai/v1/chat/completions"),
    ] {
        let stub = stub([
            Turn::calls("fs_read_d154e2a4", json!({"path": "/a"})),
            Turn::says("Grey."),
        ])
        .await;
        let model = model(&stub, version, "azure/my-gpt");
        assert_eq!(model.provider(), "azure");
        let tools = [ToolDefinition::new("fs.read", "Reads.", json!({}))];
        let mut messages = vec![Message::system("Be brief."), Message::user("Colour?")];
        let answer = ask_with(&model, &messages, &tools, &Object::new())
            .await
            .unwrap();
        let call = answer.message.tool_calls[0].clone();
        assert_eq!(call.function.name, "fs.read");
        messages.push(answer.message);
        messages.push(Message::tool(
            call.id,
            "fs.read",
            vec![Block::image_url(PICTURE)],
        ));
        let answer = ask_with(&model, &messages, &tools, &Object::new())
            .await
            .unwrap();
        assert_eq!(answer.message.text(), "Grey.");
        assert_eq!(answer.finish_reason, FinishReason::Stop);
        assert_eq!(answer.request_id.as_deref(), Some("req_stub_1"));
        // What the filter found is in the answer as it came.
        assert_eq!(
            answer.raw["prompt_filter_results"][0]["content_filter_results"]["hate"]["severity"],
            "safe"
        );
        assert_eq!(stub.refusals(), Vec::<String>::new());
        for request in stub.requests() {
            assert_eq!(request.path, path);
            assert_eq!(request.body["model"], "my-gpt");
            assert!(!request.headers.contains_key("authorization"));
        }
    }
}

#[tokio::test]
async fn responses_have_addresses_of_their_own() {
    for (version, path) in [
        (Some(DATED), "/openai/responses"),
        (None, "/openai/v1/responses"),
    ] {
        let thinks = Turn::calls("f", json!({})).field("reasoning_content", json!("hm"));
        let stub = stub([thinks, Turn::says("done"), Turn::says("streamed")]).await;
        let model = model(&stub, version, "azure/gpt-5.5");
        let tools = [ToolDefinition::new("f", "", json!({}))];
        let mut messages = vec![Message::user("go")];
        let first = ask_with(&model, &messages, &tools, &Object::new())
            .await
            .unwrap();
        let id = first.message.tool_calls[0].id.clone();
        messages.push(first.message);
        messages.push(Message::tool(id, "f", "fine"));
        let last = ask_with(&model, &messages, &tools, &Object::new())
            .await
            .unwrap();
        assert_eq!(last.message.text(), "done");
        let (streamed, heard) = listen(&model, &tools, json!({})).await;
        assert_eq!(streamed.unwrap().message.text(), "streamed");
        assert_eq!(heard.text, "streamed");
        assert_eq!(stub.refusals(), Vec::<String>::new());
        assert!(stub.requests().iter().all(|request| request.path == path));
    }
}

#[tokio::test]
async fn a_token_does_in_the_place_of_a_key() {
    let stub = stub([Turn::says("a"), Turn::says("b")]).await;
    let (base, token) = (stub.base_url(), stub.key().to_owned());
    let at = base.clone();
    let models = Models::new(move |name| match name {
        "AZURE_API_BASE" => Some(at.clone()),
        "AZURE_AD_TOKEN" => Some(token.clone()),
        _ => None,
    });
    let model = models.resolve("azure/d", &Object::new()).unwrap();
    let (answer, _) = ask(&model, json!({})).await;
    assert_eq!(answer.unwrap().message.text(), "a");
    assert!(!stub.requests()[0].headers.contains_key("api-key"));

    // Address, key and version from the arguments of the call.
    let extra_args = json!({"api_base": base, "api_key": stub.key(), "api_version": DATED});
    let model = Models::new(|_| None)
        .resolve("azure/d", &object(&extra_args))
        .unwrap();
    let (answer, _) = ask(&model, extra_args).await;
    assert_eq!(answer.unwrap().message.text(), "b");
    assert_eq!(
        stub.requests()[1].path,
        "/openai/deployments/d/chat/completions"
    );

    let nothing = Models::new(|name| (name == "AZURE_API_BASE").then(|| base.clone()));
    let error = nothing.resolve("azure/d", &Object::new()).unwrap_err();
    assert!(matches!(error, ModelNameError::NoCredentials { .. }));
    assert!(
        error
            .to_string()
            .contains("set AZURE_API_KEY or AZURE_AD_TOKEN"),
        "{error}"
    );
    let error = Models::new(|_| None)
        .resolve("azure/d", &object(&json!({"api_key": "k"})))
        .unwrap_err();
    assert!(error.to_string().contains("AZURE_API_BASE"), "{error}");
}

#[tokio::test]
async fn errors_are_told_apart() {
    let filtered = json!({"error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": null, "param": "prompt", "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {
            "hate": {"filtered": true, "severity": "high"},
            "jailbreak": {"filtered": true, "detected": true},
            "violence": {"filtered": false, "severity": "safe"}
        }}
    }});
    let no_deployment = json!({"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}});
    let no_key = json!({"statusCode": 401, "message": "Unauthorized. Access token is missing, invalid or expired."});
    for (turn, kind) in [
        (
            Turn::fails_with(400, filtered.clone()),
            ChatErrorKind::ContentFilter,
        ),
        (
            Turn::fails_with(404, no_deployment),
            ChatErrorKind::NotFound,
        ),
        (Turn::fails_with(401, no_key), ChatErrorKind::Auth),
    ] {
        let stub = stub([turn.clone(), Turn::says("never")]).await;
        let (answer, repeated) = ask(&model(&stub, None, "azure/d"), json!({})).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind, repeated.len()), (kind, 0), "{turn:?}");
        if kind == ChatErrorKind::ContentFilter {
            assert!(
                error
                    .message
                    .ends_with("(filtered for hate (high), jailbreak)"),
                "{error}"
            );
        }
    }
    for (turn, kind) in [
        (
            Turn::fails(429).header("retry-after-ms", "1"),
            ChatErrorKind::RateLimit,
        ),
        (Turn::fails(500), ChatErrorKind::Server),
        (Turn::faulty(Fault::Drop), ChatErrorKind::Connection),
    ] {
        let stub = stub([turn.clone(), Turn::says("well")]).await;
        let (answer, repeated) = ask(&model(&stub, None, "azure/d"), json!({})).await;
        assert_eq!(repeated, [kind], "{turn:?}");
        assert_eq!(answer.unwrap().message.text(), "well");
    }
    let stub = stub([Turn::says("never")]).await;
    let (answer, _) = ask(
        &model(&stub, Some("2024-02-01"), "azure/responses/d"),
        json!({}),
    )
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::NotFound);
    assert!(error.message.contains("2024-02-01"), "{error}");
    let secret = models(&stub, None)
        .resolve("azure/d", &object(&json!({"api_key": "very-secret-key"})))
        .unwrap();
    let (answer, _) = ask(&secret, json!({})).await;
    let error = answer.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Auth);
    assert!(
        !format!("{error} {error:?} {secret:?}").contains("very-secret"),
        "{error}"
    );
}
