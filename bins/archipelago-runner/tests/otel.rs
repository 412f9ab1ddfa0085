//! Spans of a run at an OpenTelemetry collector.
//!
//! `cargo test -p archipelago-runner --features otel --test otel`
#![cfg(feature = "otel")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod bench;

use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use bench::{Bench, end, stderr};
use serde_json::{Value, json};
use testkit::openai::Turn;

/// What arrived: media type, a header, and the body.
type Arrived = Arc<Mutex<Vec<(String, String, Bytes)>>>;

/// A collector on loopback: its address and what it got.
async fn collector() -> (String, Arrived) {
    let arrived = Arrived::default();
    let keep = Arc::clone(&arrived);
    let take = move |headers: HeaderMap, body: Bytes| {
        let header = |name: &str| {
            let value = headers.get(name).map(|value| value.to_str().unwrap());
            value.unwrap_or_default().to_owned()
        };
        let kind = header("content-type");
        let reply = if kind == "application/json" { "{}" } else { "" };
        keep.lock()
            .unwrap()
            .push((kind.clone(), header("x-tenant"), body));
        async move { ([("content-type", kind)], reply) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, arrived)
}

/// A run of two steps, whose tool fails, with `variables` for the exporter.
async fn run(variables: &[(&str, &str)]) -> (Output, Duration) {
    let bench = Bench::new([
        Turn::calls("fail", json!({})).usage(100, 7),
        Turn::says("done").usage(120, 3),
    ])
    .await;
    let messages = json!([{"role": "user", "content": "a secret question"}]);
    bench.write("messages.json", &messages);
    let mut command = bench.runner();
    command.envs(variables.iter().copied());
    let started = Instant::now();
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    (done, started.elapsed())
}

fn spans(arrived: &Arrived) -> Vec<Value> {
    let arrived = arrived.lock().unwrap();
    arrived
        .iter()
        .flat_map(|(_, _, body)| {
            let document: Value = serde_json::from_slice(body).unwrap();
            let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
            spans.as_array().unwrap().clone()
        })
        .collect()
}

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_arrives_at_a_collector_as_one_trace() {
    let (address, arrived) = collector().await;
    run(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        ),
    ])
    .await;
    {
        let arrived = arrived.lock().unwrap();
        assert!(
            arrived
                .iter()
                .all(|(kind, tenant, _)| kind == "application/json" && tenant == "blue")
        );
        let resource = serde_json::from_slice::<Value>(&arrived[0].2).unwrap()["resourceSpans"][0]
            ["resource"]
            .clone();
        let service = attribute(&resource, "service.name");
        assert_eq!(service["stringValue"], "archipelago-runner");
        let environment = attribute(&resource, "deployment.environment.name");
        assert_eq!(environment["stringValue"], "test");
        let told = arrived
            .iter()
            .map(|(_, _, body)| String::from_utf8_lossy(body));
        assert!(
            told.into_iter().all(|text| !text.contains("secret")),
            "what was said is sent"
        );
    }
    let mut spans = spans(&arrived);
    spans.sort_by_key(|span| {
        span["startTimeUnixNano"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    });
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
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
    let (run, inside) = spans.split_first().unwrap();
    for span in inside {
        assert_eq!(span["traceId"], run["traceId"]);
        assert_eq!(span["parentSpanId"], run["spanId"]);
    }
    assert_eq!(
        attribute(run, "gen_ai.conversation.id")["stringValue"],
        "t1"
    );
    let tokens = attribute(&inside[0], "gen_ai.usage.input_tokens");
    assert_eq!(
        tokens["intValue"]
            .as_str()
            .map_or(tokens["intValue"].as_i64(), |text| text.parse().ok()),
        Some(100)
    );
    assert_eq!(
        attribute(&inside[1], "error.type")["stringValue"],
        "tool_error"
    );
    // 2 is the code of an error.
    assert_eq!(inside[1]["status"]["code"], 2);
    assert_ne!(inside[0]["status"]["code"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_is_protobuf_and_without_an_endpoint_nothing_is_sent() {
    let (address, arrived) = collector().await;
    let traces = format!("{address}/v1/traces");
    run(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &traces)]).await;
    let sent = std::mem::take(&mut *arrived.lock().unwrap());
    assert!(!sent.is_empty());
    for (kind, _, body) in &sent {
        assert_eq!(kind, "application/x-protobuf");
        assert!(String::from_utf8_lossy(body).contains("invoke_agent loop_agent"));
    }
    for variables in [
        &[][..],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
            ("OTEL_SDK_DISABLED", "true"),
        ],
    ] {
        run(variables).await;
        assert!(arrived.lock().unwrap().is_empty(), "{variables:?}");
    }
}

/// Nothing about spans is a failure of the run, and it does not wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_and_a_wrong_protocol_fail_nothing() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let (_, took) = run(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &address)]).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    let (done, _) = run(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ])
    .await;
    let told = stderr(&done);
    assert!(
        told.contains("`OTEL_EXPORTER_OTLP_PROTOCOL` must be") && told.contains("grpc"),
        "{told}"
    );
}
