//! The spans of the feature `otel`: their names, nesting and fields.
//!
//! `cargo test -p agent-core --features otel --test otel`
#![cfg(feature = "otel")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agent_core::{Agents, FunctionTool, RunInput, ToolSources, run};
use formats::Object;
use llm_client::Models;
use serde_json::json;
use testkit::openai::{OpenAiStub, Script, Turn};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }
}

type Spans = Arc<Mutex<Vec<(Id, Option<Id>, Fields)>>>;

/// Keeps every span in the order of their beginnings.
struct Keep(Spans);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if !attributes
            .fields()
            .iter()
            .any(|field| field.name() == "gen_ai.operation.name")
        {
            return;
        }
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = context
            .span(id)
            .and_then(|span| span.parent().map(|parent| parent.id()));
        self.0.lock().unwrap().push((id.clone(), parent, fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        if let Some((_, _, fields)) = spans.iter_mut().rev().find(|(known, _, _)| known == id) {
            values.record(fields);
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_run_is_told_in_spans_of_the_conventions() {
    let spans = Spans::default();
    let _guard =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(Keep(spans.clone())));
    let stub = OpenAiStub::start(Script::new([
        Turn::calls("fail", json!({})).usage(100, 7),
        Turn::says("done").usage(120, 3),
    ]))
    .await
    .unwrap();
    let fail = FunctionTool::typed("fail", "Fails.", |_: Nothing| async {
        Err::<String, _>("no".to_owned())
    });
    let models = Models::new(stub.variables());
    let input = RunInput::new(models.resolve("openai/stub", &Object::new()).unwrap())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::new().with_tool(fail));
    run(&Agents::builtin(), input).await.unwrap();

    let spans = spans.lock().unwrap();
    let names: Vec<&str> = spans
        .iter()
        .map(|(_, _, fields)| fields.0["otel.name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "invoke_agent loop_agent",
            "chat stub",
            "execute_tool fail",
            "chat stub"
        ]
    );
    let (agent, _, outer) = &spans[0];
    assert!(
        spans[1..]
            .iter()
            .all(|(_, parent, _)| parent.as_ref() == Some(agent))
    );
    for (field, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "loop_agent"),
        ("gen_ai.conversation.id", "run"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "stub"),
    ] {
        assert_eq!(outer.0[field], value);
    }
    let chat = &spans[1].2.0;
    assert_eq!(chat["gen_ai.usage.input_tokens"], "100");
    assert_eq!(chat["gen_ai.usage.output_tokens"], "7");
    assert_eq!(chat["gen_ai.response.finish_reasons"], r#"["tool_calls"]"#);
    let tool = &spans[2].2.0;
    assert_eq!(tool["gen_ai.tool.name"], "fail");
    assert_eq!(tool["error.type"], "tool_error");
}
