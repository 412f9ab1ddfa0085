//! What goes wrong at Gemini, over real sockets, against the strict stub.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use std::sync::Mutex;

use calls::{ask, quick, request};
use formats::Object;
use formats::chat::Message;
use llm_client::{ChatErrorKind, Model, Models};
use serde_json::json;
use testkit::gemini::{Fault, GeminiStub, Script, Turn};

async fn stub(turns: impl IntoIterator<Item = Turn>) -> GeminiStub {
    GeminiStub::start(Script::new(turns)).await.unwrap()
}

fn model(stub: &GeminiStub) -> Model {
    let models = Models::new(stub.variables()).with_retry(quick());
    models
        .resolve("gemini/gemini-2.5-flash", &Object::new())
        .unwrap()
}

#[tokio::test]
async fn faults_are_told_apart_and_repeated() {
    let wait = json!({"error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinute", "quotaValue": "10"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.002s"}
        ]
    }});
    let no_candidates = json!({"candidates": [], "modelVersion": "m"});
    for (turn, streamed, kind) in [
        (Turn::fails(503), false, ChatErrorKind::Overloaded),
        (Turn::fails(500), true, ChatErrorKind::Server),
        (Turn::fails(504), false, ChatErrorKind::Timeout),
        (Turn::fails_with(429, wait), false, ChatErrorKind::RateLimit),
        (Turn::faulty(Fault::Drop), false, ChatErrorKind::Connection),
        (
            Turn::faulty(Fault::HalfBody),
            false,
            ChatErrorKind::Connection,
        ),
        (
            Turn {
                fault: Some(Fault::HalfBody),
                ..Turn::says("some text")
            },
            true,
            ChatErrorKind::Connection,
        ),
        (
            Turn::faulty(Fault::MalformedJson),
            false,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn {
                fault: Some(Fault::Midway),
                ..Turn::says("some text")
            },
            true,
            ChatErrorKind::Overloaded,
        ),
        (
            Turn::fails_with(200, json!("")),
            false,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::fails_with(200, json!("<html></html>")),
            false,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::fails_with(200, no_candidates),
            false,
            ChatErrorKind::MalformedReply,
        ),
        (
            Turn::fails_with(
                200,
                json!({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}),
            ),
            false,
            ChatErrorKind::Overloaded,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("well")]).await;
        let repeated = Mutex::new(Vec::new());
        let on_retry =
            |notice: llm_client::RetryNotice<'_>| repeated.lock().unwrap().push(notice.error.kind);
        let messages = [Message::user("hi")];
        let extra_args = Object::new();
        let request = request(&messages, &extra_args);
        let model = model(&stub);
        let answer = if streamed {
            model.chat_streaming(request, &on_retry, &|_| {}).await
        } else {
            model.chat(request, &on_retry).await
        };
        assert_eq!(answer.unwrap().message.text(), "well", "{turn:?}");
        assert_eq!(repeated.into_inner().unwrap(), [kind], "{turn:?}");
    }
}

#[tokio::test]
async fn what_is_final_is_not_repeated() {
    let said = |message: &str| json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": message}});
    let long = said(
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    );
    let day = json!({"error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.",
        "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                     "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]
    }});
    for (turn, kind) in [
        (Turn::fails_with(400, long), ChatErrorKind::ContextWindow),
        (Turn::fails_with(429, day), ChatErrorKind::Credit),
        (
            Turn::fails_with(400, said("API key not valid. Please pass a valid API key.")),
            ChatErrorKind::Auth,
        ),
        (Turn::fails(403), ChatErrorKind::Auth),
        (Turn::fails(404), ChatErrorKind::NotFound),
        (
            Turn::fails_with(
                400,
                said("Request payload size exceeds the limit: 20971520 bytes."),
            ),
            ChatErrorKind::TooLarge,
        ),
        (
            Turn::says("x").finish_reason("MISSING_THOUGHT_SIGNATURE"),
            ChatErrorKind::BadRequest,
        ),
    ] {
        let stub = stub([turn.clone(), Turn::says("never")]).await;
        let (answer, repeated) = ask(&model(&stub), json!({})).await;
        let error = answer.unwrap_err();
        assert_eq!((error.kind, repeated.len()), (kind, 0), "{turn:?}");
    }
}

#[tokio::test]
async fn a_stalled_answer_ends_with_the_time_limit() {
    let stub = stub([Turn::faulty(Fault::Stall), Turn::says("well")]).await;
    let (answer, repeated) = ask(&model(&stub), json!({"timeout": 0.2})).await;
    assert_eq!(repeated, [ChatErrorKind::Timeout]);
    assert_eq!(answer.unwrap().message.text(), "well");
}
