//! Vertex AI over real sockets: a strict server of tokens, and strict stubs of both interfaces.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::collections::HashMap;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, FinishReason, Model,
    ModelNameError, Models, RetryPolicy,
};
use serde_json::{Value, json};
use testkit::gemini::{GeminiStub, Options, Script, Turn};
use testkit::google_tokens::TokenServer;
use testkit::vertex::VertexStub;

const PATIENCE: Duration = Duration::from_secs(30);
const GEMINI: &str = "vertex_ai/gemini-2.5-flash";
const CLAUDE: &str = "vertex_ai/claude-sonnet-4-5@20250929";

fn models(variables: &[(&str, &str)]) -> Models {
    let variables: HashMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Models::new(move |name| variables.get(name).cloned()).with_retry(RetryPolicy::never())
}

fn model(variables: &[(&str, &str)], name: &str) -> Model {
    models(variables).resolve(name, &Object::new()).unwrap()
}

async fn gemini(key: Option<String>) -> GeminiStub {
    let script = Script::new([Turn::says("fine")]).repeat_last();
    let options = Options {
        script,
        key,
        lenient: false,
    };
    GeminiStub::start_with(options).await.unwrap()
}

/// The base URL of a stub, as Vertex AI has it.
fn base(address: &str) -> String {
    let (server, _) = address.rsplit_once('/').unwrap();
    format!("{server}/v1")
}

async fn ask(model: &Model) -> Result<ChatResponse, ChatError> {
    let messages = [Message::user("hi")];
    let extra_args = Object::new();
    let request = ChatRequest {
        messages: &messages,
        tools: &[],
        extra_args: &extra_args,
        timeout: PATIENCE,
        labels: CallLabels::default(),
    };
    model.chat(request, &|_| {}).await
}

#[tokio::test]
async fn an_account_signs_for_a_token_that_all_calls_share() {
    let tokens = TokenServer::start().await.unwrap();
    let stub = gemini(Some(TokenServer::token(1))).await;
    let account = tokens.service_account();
    let models = models(&[
        ("VERTEXAI_CREDENTIALS", &account),
        ("VERTEXAI_LOCATION", "europe-west4"),
        ("VERTEXAI_API_BASE", &base(&stub.base_url())),
    ]);
    // Two models, many calls at once, one token.
    let first = models.resolve(GEMINI, &Object::new()).unwrap();
    let second = models
        .resolve("vertex_ai/gemini-2.5-pro", &Object::new())
        .unwrap();
    let all = (0..6).map(|number| if number % 2 == 0 { &first } else { &second });
    let answers = futures::future::join_all(all.map(ask)).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().unwrap().message.text() == "fine")
    );
    assert_eq!(tokens.given(), 1);
    assert_eq!(
        stub.requests()[0].path.replace("2.5-pro", "2.5-flash"),
        "/v1/projects/stub-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    );
    assert!(!format!("{models:?} {first:?}").contains("PRIVATE KEY"));
}

#[tokio::test]
async fn files_users_and_machines_give_tokens_too() {
    let tokens = TokenServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let account = folder.path().join("account.json");
    std::fs::write(&account, tokens.service_account()).unwrap();
    let gcloud = folder.path().join("application_default_credentials.json");
    std::fs::write(&gcloud, tokens.user()).unwrap();
    let stub = gemini(None).await;
    let base = base(&stub.base_url());
    let folder = folder.path().to_str().unwrap();
    let mut expected = 0;
    for credentials in [
        ("VERTEXAI_CREDENTIALS", account.to_str().unwrap()),
        ("GOOGLE_APPLICATION_CREDENTIALS", account.to_str().unwrap()),
        ("CLOUDSDK_CONFIG", folder),
        ("GCE_METADATA_HOST", &tokens.host()),
    ] {
        let variables = [
            credentials,
            ("GOOGLE_CLOUD_PROJECT", "mine"),
            ("VERTEXAI_API_BASE", &base),
        ];
        ask(&model(&variables, GEMINI)).await.unwrap();
        expected += 1;
        assert_eq!(tokens.given(), expected, "{credentials:?}");
    }
    let last = stub.requests().pop().unwrap();
    assert!(
        last.path.contains("/projects/mine/locations/us-central1/"),
        "{}",
        last.path
    );
}

#[tokio::test]
async fn tokens_are_renewed_before_their_end_and_after_a_refusal() {
    let tokens = TokenServer::start().await.unwrap();
    let account = tokens.service_account();
    // The first token is refused, the second one is good.
    let strict = gemini(Some(TokenServer::token(2))).await;
    let variables = [
        ("VERTEXAI_CREDENTIALS", account.as_str()),
        ("VERTEXAI_API_BASE", &base(&strict.base_url())),
    ];
    let refused = model(&variables, GEMINI);
    ask(&refused).await.unwrap();
    ask(&refused).await.unwrap();
    assert_eq!((tokens.given(), strict.requests().len()), (2, 3));

    // Tokens that are over at once are fetched for each call.
    tokens.set_lifetime(0);
    let open = gemini(None).await;
    let variables = [
        ("VERTEXAI_CREDENTIALS", account.as_str()),
        ("VERTEXAI_API_BASE", &base(&open.base_url())),
    ];
    let short = model(&variables, GEMINI);
    ask(&short).await.unwrap();
    ask(&short).await.unwrap();
    assert_eq!(tokens.given(), 4);
    // A token that is no good twice is an error, without the token.
    let never = gemini(Some("another".to_owned())).await;
    let variables = [
        ("VERTEXAI_CREDENTIALS", account.as_str()),
        ("VERTEXAI_API_BASE", &base(&never.base_url())),
    ];
    let error = ask(&model(&variables, GEMINI)).await.unwrap_err();
    assert_eq!(
        (error.kind, error.is_retryable()),
        (ChatErrorKind::Auth, false)
    );
    assert_eq!(tokens.given(), 6);
    assert!(!format!("{error:?}").contains("ya29"), "{error:?}");
}

#[tokio::test]
async fn a_token_server_that_refuses_or_is_away_is_told_apart() {
    let tokens = TokenServer::start().await.unwrap();
    let other = TokenServer::start().await.unwrap();
    let stub = gemini(None).await;
    let base = base(&stub.base_url());
    // The key of another server's account.
    let mut account: Value = serde_json::from_str(&other.service_account()).unwrap();
    let own: Value = serde_json::from_str(&tokens.service_account()).unwrap();
    account["token_uri"] = own["token_uri"].clone();
    let variables = |account: &Value| {
        let account = account.to_string();
        model(
            &[
                ("VERTEXAI_CREDENTIALS", account.as_str()),
                ("VERTEXAI_API_BASE", &base),
            ],
            GEMINI,
        )
    };
    let error = ask(&variables(&account)).await.unwrap_err();
    assert_eq!(
        (error.kind, error.is_retryable()),
        (ChatErrorKind::Auth, false)
    );
    assert!(
        error
            .message
            .contains("invalid_grant: Invalid JWT Signature."),
        "{error}"
    );
    let address = own["token_uri"].as_str().unwrap().to_owned();
    drop(tokens);
    account["token_uri"] = address.replace("/token", "/gone").into();
    let error = ask(&variables(&account)).await.unwrap_err();
    // Gone, or still closing.
    assert!(
        matches!(error.kind, ChatErrorKind::Connection | ChatErrorKind::Auth),
        "{error:?}"
    );
    assert_eq!(stub.requests().len(), 0);
}

#[tokio::test]
async fn claude_speaks_its_own_language_at_vertex() {
    let tokens = TokenServer::start().await.unwrap();
    let thought = json!([{"type": "thinking", "thinking": "I need it."}]);
    let script = Script::new([
        Turn::calls("f", json!({"a": 1})).field("thinking_blocks", thought),
        Turn::says("Done."),
    ]);
    let stub = VertexStub::start_with(Options::new(script, TokenServer::token(1)))
        .await
        .unwrap();
    let account = tokens.service_account();
    let model = model(
        &[
            ("VERTEXAI_CREDENTIALS", &account),
            ("VERTEXAI_API_BASE", &stub.base_url()),
        ],
        CLAUDE,
    );
    let tools = [ToolDefinition::new("f", "", json!({}))];
    let mut messages = vec![Message::user("hi")];
    for (extra_args, verb) in [
        // A long reply is streamed, a short one comes at once.
        (json!({"reasoning_effort": "low"}), "streamRawPredict"),
        (
            json!({"reasoning_effort": "low", "max_tokens": 2000}),
            "rawPredict",
        ),
    ] {
        let extra_args = extra_args.as_object().unwrap();
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            extra_args,
            timeout: PATIENCE,
            labels: CallLabels::default(),
        };
        let answer = model.chat(request, &|_| panic!()).await.unwrap();
        let path = stub.requests().pop().unwrap().path;
        assert_eq!(
            path,
            format!(
                "/v1/projects/stub-project/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:{verb}"
            )
        );
        if answer.finish_reason == FinishReason::ToolCalls {
            let id = answer.message.tool_calls[0].id.clone();
            messages.push(answer.message);
            messages.push(Message::tool(id, "f", "x"));
        } else {
            assert_eq!(answer.message.text(), "Done.");
            // The price is that of the model without its date.
            assert!(answer.cost_usd.is_some());
        }
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let body = stub.requests().pop().unwrap().body;
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(body["messages"][1]["content"][0]["type"], "thinking");
}

#[test]
fn what_is_missing_is_named_before_anything_starts() {
    let told = |variables: &[(&str, &str)], name: &str| {
        models(variables).resolve(name, &Object::new()).unwrap_err()
    };
    let error = told(&[], GEMINI);
    assert!(
        matches!(error, ModelNameError::NoCredentials { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("set VERTEXAI_CREDENTIALS or GOOGLE_APPLICATION_CREDENTIALS"),
        "{error}"
    );
    let error = told(
        &[("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")],
        GEMINI,
    );
    assert!(
        error
            .to_string()
            .contains("GOOGLE_APPLICATION_CREDENTIALS: the file `/no/such/file`"),
        "{error}"
    );
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
    let error = told(&[("VERTEXAI_CREDENTIALS", &user.to_string())], GEMINI);
    assert!(
        error
            .to_string()
            .contains("set VERTEXAI_PROJECT or GOOGLE_CLOUD_PROJECT"),
        "{error}"
    );
    let variables = [
        ("VERTEXAI_CREDENTIALS", user.to_string()),
        ("VERTEXAI_PROJECT", "p".to_owned()),
    ];
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let error = told(&variables, "vertex_ai/llama-4");
    assert!(
        error.to_string().contains("`gemini…` and `claude…`"),
        "{error}"
    );
}

/// A token by itself, which is used where nobody names credentials.
#[tokio::test]
async fn a_token_in_a_variable_does_where_no_credentials_are_named() {
    let stub = VertexStub::start(Script::new([Turn::says("a"), Turn::says("b")]))
        .await
        .unwrap();
    let base = stub.base_url();
    let mut variables = vec![
        ("VERTEXAI_API_BASE", base.as_str()),
        ("CLOUDSDK_AUTH_ACCESS_TOKEN", stub.key()),
        ("VERTEXAI_PROJECT", "p"),
    ];
    for (name, said) in [(GEMINI, "a"), (CLAUDE, "b")] {
        let answer = ask(&model(&variables, name)).await.unwrap();
        assert_eq!(answer.message.text(), said, "{name}");
    }
    assert_eq!(stub.refusals(), Vec::<String>::new());
    variables[1].1 = "ya29.expired-0123456789";
    let error = ask(&model(&variables, GEMINI)).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Auth);
    assert!(!format!("{error:?}").contains("expired-01"), "{error:?}");
    // Credentials that are named win, and are found to be wrong.
    variables.push(("VERTEXAI_CREDENTIALS", "/no/such/file"));
    let error = models(&variables)
        .resolve(GEMINI, &Object::new())
        .unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
}

/// A token of the caller's own, and a place of the call's own.
#[tokio::test]
async fn arguments_win_over_variables() {
    let stub = gemini(Some("own-token".to_owned())).await;
    let extra_args = json!({
        "api_base": base(&stub.base_url()), "api_key": "own-token",
        "vertex_project": "their", "vertex_location": "asia-east1"
    });
    let extra_args = extra_args.as_object().unwrap();
    let variables = [("VERTEXAI_PROJECT", "p"), ("VERTEXAI_LOCATION", "l")];
    let model = models(&variables).resolve(GEMINI, extra_args).unwrap();
    let messages = [Message::user("hi")];
    let request = ChatRequest {
        messages: &messages,
        tools: &[],
        extra_args,
        timeout: PATIENCE,
        labels: CallLabels::default(),
    };
    model.chat(request, &|_| panic!()).await.unwrap();
    let path = stub.requests()[0].path.clone();
    assert!(
        path.contains("/projects/their/locations/asia-east1/"),
        "{path}"
    );
}
