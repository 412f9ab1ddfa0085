//! `archipelago stub`: each stand-in is asked by the client that it stands in for a provider to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use llm_client::{CallLabels, ChatRequest, Models};
use program::{archipelago, variables_of_stub};

async fn answer(models: &Models, name: &str) -> String {
    let extra_args: Object = serde_json::from_str(r#"{"max_tokens": 100}"#).unwrap();
    let model = models.resolve(name, &extra_args).unwrap();
    let request = ChatRequest {
        messages: &[Message::user("hi")],
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(60),
        labels: CallLabels::default(),
    };
    let response = model.chat(request, &|notice| panic!("{}", notice.error));
    response.await.unwrap().message.text().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn stubs_answer_the_clients_of_their_providers() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    std::fs::write(&script, r#"[{"content": "one"}, {"content": "two"}]"#).unwrap();
    for (provider, names) in [
        ("openai", ["openai/gpt-4.1", "openai/responses/gpt-5.5"]),
        ("azure", ["azure/my-gpt", "azure/responses/my-gpt"]),
        ("anthropic", ["anthropic/claude-sonnet-4-5"; 2]),
        ("gemini", ["gemini/gemini-2.5-flash"; 2]),
        (
            "vertex_ai",
            [
                "vertex_ai/gemini-2.5-flash",
                "vertex_ai/claude-sonnet-4-5@20250929",
            ],
        ),
        (
            "bedrock",
            [
                "bedrock/us.anthropic.claude-opus-5",
                "bedrock/amazon.nova-pro-v1:0",
            ],
        ),
    ] {
        let mut running = archipelago()
            .args(["stub", provider, "--port", "0", "--script"])
            .arg(&script)
            .start();
        let models = Models::new(variables_of_stub(&running.line_with("use it with")));
        for (name, said) in names.iter().zip(["one", "two"]) {
            assert_eq!(answer(&models, name).await, said, "{name}");
        }
        running.signal("INT");
        let ended = tokio::task::spawn_blocking(|| running.end()).await.unwrap();
        assert_eq!(ended.code, 0, "{provider}: {}", ended.stderr);
    }
}
