//! Conventions of the interface (`spec/environment.md` §2, §4) and `/apps` (§5).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use reqwest::Method;
use serde_json::{Value, json};
use support::{Env, golden, stub_server, until};

#[tokio::test]
async fn health_and_banner() {
    let env = Env::start().await;
    let health = env.get("/health").await;
    assert_eq!(health.status(), 200);
    assert_eq!(
        health.headers()["content-type"],
        "text/plain; charset=utf-8"
    );
    assert!(health.headers().contains_key("x-request-id"));
    assert_eq!(health.text().await.unwrap(), "OK");
    let banner = env.get("/").await;
    assert_eq!(banner.status(), 200);
    assert_eq!(banner.text().await.unwrap(), "Archipelago Environment");
    let request = env
        .http
        .get(env.at("/health"))
        .header("x-request-id", "mine");
    assert_eq!(
        request.send().await.unwrap().headers()["x-request-id"],
        "mine"
    );
}

#[tokio::test]
async fn the_description() {
    let env = Env::start().await;
    let api: Value = env.get("/openapi.json").await.json().await.unwrap();
    assert_eq!(api["openapi"], "3.1.0");
    assert_eq!(api["info"]["title"], "Archipelago Environment Gateway");
    assert_eq!(api["info"]["version"], "0.1.0");
    assert!(api["components"]["schemas"]["AppsConfig"].is_object());
    let proxy = api["paths"]["/rest/{service}/{path}"].as_object().unwrap();
    assert_eq!(proxy.len(), 7);
    assert_eq!(api["paths"].get("/mcp"), None);
    for path in ["/docs", "/redoc"] {
        let page = env.get(path).await;
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        let page = page.text().await.unwrap();
        assert!(page.contains("/openapi.json"));
        assert!(
            !page.contains("http://") && !page.contains("https://"),
            "nothing from elsewhere"
        );
    }
}

#[tokio::test]
async fn unknown_paths_methods_and_slashes() {
    let env = Env::start().await;
    for path in [
        "/nope",
        "/healthx",
        "/data",
        "/data/populate/s4",
        "/mcpx",
        "/mcp",
        "/mcp/",
        "/apps/x",
    ] {
        let response = env.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(
            response.json::<Value>().await.unwrap(),
            json!({"detail": "Not Found"}),
            "{path}"
        );
    }
    let below = env.get("/mcp/anything").await;
    assert_eq!(
        (
            below.status().as_u16(),
            below.text().await.unwrap().as_str()
        ),
        (404, "Not Found")
    );

    for (method, path, allow) in [
        (Method::HEAD, "/health", "GET"),
        (Method::POST, "/health", "GET"),
        (Method::OPTIONS, "/health", "GET"),
        (Method::DELETE, "/apps", "GET, POST"),
        (Method::GET, "/data/populate", "POST"),
        (Method::PUT, "/data/snapshot", "POST"),
        (Method::HEAD, "/", "GET"),
    ] {
        let response = env
            .http
            .request(method.clone(), env.at(path))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 405, "{method} {path}");
        assert_eq!(response.headers()["allow"], allow, "{method} {path}");
        if method != Method::HEAD {
            assert_eq!(
                response.json::<Value>().await.unwrap(),
                json!({"detail": "Method Not Allowed"})
            );
        }
    }

    for (method, path, location) in [
        (Method::GET, "/health/", "/health"),
        (
            Method::POST,
            "/data/populate/?subsystem=filesystem%2Fa",
            "/data/populate?subsystem=filesystem%2Fa",
        ),
        (Method::POST, "/apps/", "/apps"),
    ] {
        let response = env.http.request(method, env.at(path)).send().await.unwrap();
        assert_eq!(response.status(), 307, "{path}");
        assert_eq!(response.headers()["location"], env.at(location));
    }
    assert_eq!(env.get("/nope/").await.status(), 404);
}

#[tokio::test]
async fn what_is_wrong_with_a_body() {
    let env = Env::start().await;
    let item = async |body: &str| {
        let response = env.post("/apps", body.to_owned()).await;
        assert_eq!(response.status(), 422, "{body}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["detail"].as_array().unwrap().len(), 1);
        body["detail"][0].clone()
    };
    assert_eq!(
        item("").await,
        json!({"type": "missing", "loc": ["body"], "msg": "Field required", "input": null})
    );
    let broken = item("{\"mcpServers\": ]").await;
    assert_eq!(broken["type"], "json_invalid");
    assert_eq!(broken["loc"], json!(["body", 15]));
    assert_eq!(broken["msg"], "JSON decode error");
    assert!(broken["ctx"]["error"].is_string());
    assert_eq!(
        item("{\n\"mcpServers\": ]").await["loc"],
        json!(["body", 16])
    );
    assert_eq!(item("[1]").await["type"], "model_attributes_type");
    let cases = [
        (
            json!({"mcpServers": 1}),
            "dict_type",
            json!(["body", "mcpServers"]),
            json!(1),
        ),
        (
            json!({"mcpServers": {"x": 1}}),
            "model_attributes_type",
            json!(["body", "mcpServers", "x"]),
            json!(1),
        ),
        (
            json!({"mcpServers": {"x": {"transport": 5}}}),
            "string_type",
            json!(["body", "mcpServers", "x", "transport"]),
            json!(5),
        ),
        (
            json!({"mcpServers": {"x": {"transport": "stdio", "env": {"A": 1}}}}),
            "string_type",
            json!(["body", "mcpServers", "x", "env", "A"]),
            json!(1),
        ),
        (
            json!({"mcpServers": {"x": {"transport": "stdio", "args": ["a", 2]}}}),
            "string_type",
            json!(["body", "mcpServers", "x", "args", 1]),
            json!(2),
        ),
        (
            json!({"mcpServers": {}, "allowed_tool_names": "echo"}),
            "list_type",
            json!(["body", "allowed_tool_names"]),
            json!("echo"),
        ),
    ];
    for (body, kind, loc, input) in cases {
        let item = item(&body.to_string()).await;
        assert_eq!(
            (&item["type"], &item["loc"], &item["input"]),
            (&json!(kind), &loc, &input),
            "{item}"
        );
    }
    // A form's content type is no JSON; without any it is.
    let form = env
        .http
        .post(env.at("/apps"))
        .header("content-type", "application/x-www-form-urlencoded");
    let response = form.body(r#"{"mcpServers":{}}"#).send().await.unwrap();
    assert_eq!(response.status(), 422);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["detail"][0]["type"], "model_attributes_type");
    let plain = env
        .http
        .post(env.at("/apps"))
        .body(r#"{"mcpServers":{},"unknown":1}"#);
    assert_eq!(plain.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_errors_of_the_reference() {
    let Some(path) = golden("reference-run/env/mcp_wire.json") else {
        return;
    };
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let env = Env::start().await;
    for (name, case) in golden["errors"].as_object().unwrap() {
        let request = &case["request"];
        let method = request["method"]
            .as_str()
            .unwrap()
            .parse::<Method>()
            .unwrap();
        let mut call = env
            .http
            .request(method, env.at(request["path"].as_str().unwrap()));
        if !request["body"].is_null() {
            call = call.json(&request["body"]);
        }
        let response = call.send().await.unwrap();
        assert_eq!(
            u64::from(response.status().as_u16()),
            case["http_status"].as_u64().unwrap(),
            "{name}"
        );
        let mut body: Value = response.json().await.unwrap();
        let mut right = case["body"].clone();
        for body in [&mut body, &mut right] {
            if let Some(duration) = body.get_mut("duration_ms") {
                *duration = json!(duration.is_number());
            }
        }
        assert_eq!(body, right, "{name}");
    }
}

#[tokio::test]
async fn servers_start_serve_and_stay() {
    let env = Env::start().await;
    let config = json!({"mcpServers": {"stub": stub_server()}}).to_string();
    let response = env.post("/apps", config.clone()).await;
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["servers"], json!(["stub"]));
    assert!(body["duration_ms"].as_f64().unwrap() > 0.0);
    let again: Value = env.post("/apps", config).await.json().await.unwrap();
    assert_eq!(again, json!({"servers": ["stub"], "duration_ms": 0.0}));

    let state: Value = env.get("/apps").await.json().await.unwrap();
    assert_eq!(state["servers"][0]["name"], "stub");
    assert_eq!(state["servers"][0]["state"], "ready");

    // The agent's side: both spellings of the address, and the variable with the root.
    for path in ["/mcp", "/mcp/"] {
        let session = env.mcp_session(path).await;
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
        let (_, answer) = env.mcp(path, Some(&session), call).await;
        assert!(answer.contains(env.files().to_str().unwrap()), "{answer}");
    }

    // One that cannot start: at once, with the reason; the old one keeps serving.
    let bad = json!({"mcpServers": {"stub": stub_server(), "bad": {"transport": "stdio", "command": "no-such-binary"}}});
    let response = env.post("/apps", bad.to_string()).await;
    assert_eq!(response.status(), 503);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["detail"]["failed_servers"], json!(["bad"]));
    let reason = body["detail"]["details"]["bad"]["error"].as_str().unwrap();
    assert!(reason.contains("no-such-binary"), "{reason}");
    let unusable = json!({"mcpServers": {"x": {"transport": "carrier-pigeon"}}});
    let response = env.post("/apps", unusable.to_string()).await;
    assert_eq!(response.status(), 400);
    assert!(response.json::<Value>().await.unwrap()["detail"].is_string());
    let state: Value = env.get("/apps").await.json().await.unwrap();
    assert_eq!(state["servers"][0]["name"], "stub");

    // An empty configuration is one, and ends the servers.
    let response = env.post("/apps", r#"{"mcpServers":{}}"#).await;
    assert_eq!(
        response.json::<Value>().await.unwrap()["servers"],
        json!([])
    );
    let id = env.id();
    until("the servers end", || support::descendants(id).is_empty()).await;
}

/// Applies a configuration.
async fn applied(env: &Env, servers: Value) -> Value {
    let body = json!({"mcpServers": servers}).to_string();
    let response = env.post("/apps", body).await;
    let status = response.status();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_stop_its_configuration() {
    let env = Env::start().await;
    let mut slow = stub_server();
    let script = format!("sleep 1; {}", slow["args"][1].as_str().unwrap());
    slow["args"][1] = json!(script);
    let body = json!({"mcpServers": {"slow": slow}}).to_string();
    let asked = env.http.post(env.at("/apps")).body(body).send();
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(300), asked).await;
    assert!(given_up.is_err());
    let id = env.id();
    until("its server has been started", || {
        !support::descendants(id).is_empty()
    })
    .await;
    for _ in 0..500 {
        let state: Value = env.get("/apps").await.json().await.unwrap();
        if state["servers"][0]["state"] == "ready" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the configuration was not applied: {}", env.log());
}

#[tokio::test]
async fn what_servers_write_to_stderr_is_logged_under_their_names() {
    let env = Env::start().await;
    let mut loud = stub_server();
    let script = format!(
        "echo 'reading the mail' >&2; {}",
        loud["args"][1].as_str().unwrap()
    );
    loud["args"][1] = json!(script);
    applied(&env, json!({"mail": loud, "other": stub_server()})).await;
    until("the line is logged", || {
        env.log()
            .lines()
            .any(|line| line.contains("reading the mail") && line.contains("server=mail"))
    })
    .await;
}

#[tokio::test]
async fn servers_have_the_time_of_the_settings() {
    let env = Env::with(&[
        ("MCP_GATEWAY_SSE_READ_TIMEOUT_SECONDS", "0.5"),
        ("MCP_START_TIMEOUT_SECONDS", "2"),
    ])
    .await;
    applied(&env, json!({"stub": stub_server()})).await;
    let session = env.mcp_session("/mcp/").await;
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hang", "arguments": {}}});
    let (_, answer) = env.mcp("/mcp/", Some(&session), call).await;
    assert!(answer.contains("within 0.5 s (call_timeout)"), "{answer}");

    let silent = json!({"transport": "stdio", "command": "sleep", "args": ["600"]});
    let body = json!({"mcpServers": {"silent": silent}}).to_string();
    let response = env.post("/apps", body).await;
    assert_eq!(response.status(), 503);
    let answer: Value = response.json().await.unwrap();
    let reason = answer["detail"]["details"]["silent"]["error"].as_str();
    assert!(reason.unwrap().contains("2 s (start_timeout)"), "{answer}");
}

#[tokio::test]
async fn pages_of_other_sites_are_kept_out() {
    let env = Env::start_with(|command| {
        command.args(["--allowed-host", "env.example"]);
    })
    .await;
    for (origin, status) in [
        ("http://evil.example", 403),
        ("null", 403),
        ("http://localhost:3000", 200),
        ("https://env.example", 200),
    ] {
        let request = env
            .http
            .post(env.at("/apps"))
            .header("origin", origin)
            .body(r#"{"mcpServers":{}}"#);
        assert_eq!(request.send().await.unwrap().status(), status, "{origin}");
    }
    // A page whose own name leads here sends no `Origin` when it reads.
    for (path, host, status) in [
        ("/apps", "evil.example:8080", 403),
        ("/metrics", "evil.example", 403),
        ("/rest/mail/inbox", "evil.example", 403),
        ("/apps", "env.example:8080", 200),
        ("/apps", "localhost", 200),
        ("/health", "evil.example", 200),
        ("/", "evil.example", 200),
    ] {
        let request = env.http.get(env.at(path)).header("host", host);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{path} {host}");
        if status == 403 {
            let body: Value = response.json().await.unwrap();
            let detail = body["detail"].as_str().unwrap();
            assert!(detail.contains("(allowed_hosts)"), "{detail}");
        }
    }
}

#[tokio::test]
async fn a_token_is_asked_for_where_one_is_set() {
    let env = Env::with(&[("ENV_AUTH_TOKEN", "hush-hush")]).await;
    assert_eq!(env.get("/health").await.status(), 200);
    assert_eq!(env.get("/").await.status(), 200);
    for path in ["/apps", "/openapi.json", "/mcp/", "/nope"] {
        let response = env.get(path).await;
        assert_eq!(response.status(), 401, "{path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
    }
    let with = |token: &str| env.http.get(env.at("/apps")).bearer_auth(token).send();
    assert_eq!(with("hush").await.unwrap().status(), 401);
    assert_eq!(with("hush-hush!").await.unwrap().status(), 401);
    assert_eq!(with("hush-hush").await.unwrap().status(), 200);
    assert!(!env.log().contains("hush-hush"));
}

#[tokio::test]
async fn every_endpoint_asks_for_the_token() {
    let env = Env::with(&[("ENV_AUTH_TOKEN", "hush-hush")]).await;
    let described = env
        .http
        .get(env.at("/openapi.json"))
        .bearer_auth("hush-hush");
    let described: Value = described.send().await.unwrap().json().await.unwrap();
    let paths = described["paths"].as_object().unwrap();
    let mut asked = vec![
        ("get".to_owned(), "/docs".to_owned()),
        ("get".to_owned(), "/redoc".to_owned()),
        ("get".to_owned(), "/openapi.json".to_owned()),
        ("post".to_owned(), "/mcp".to_owned()),
        ("delete".to_owned(), "/mcp/".to_owned()),
        ("put".to_owned(), "/rest/service/path".to_owned()),
    ];
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            asked.push((method.clone(), path.replace("{job_id}", "x")));
        }
    }
    assert!(asked.len() > 20, "{asked:?}");
    for (method, path) in asked {
        let open = matches!(path.as_str(), "/health" | "/");
        let verb: reqwest::Method = method.to_uppercase().parse().unwrap();
        let response = env.http.request(verb, env.at(&path)).send().await.unwrap();
        assert_eq!(response.status() == 401, !open, "{method} {path}");
    }
}

#[tokio::test]
async fn answers_and_log_lines_carry_the_id_of_the_request() {
    let env = Env::start().await;
    let asked = env
        .http
        .get(env.at("/apps"))
        .header("x-request-id", "mine-7");
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "mine-7");
    until("the given id is logged", || env.log().contains("mine-7")).await;
    let answer = env.get("/nowhere").await;
    let made = answer.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(made.len(), 36, "{made}");
    until("the made id is logged", || env.log().contains(&made)).await;
    // No line can be forged.
    let long = "x".repeat(10_000);
    let asked = env.http.get(env.at("/apps")).header("x-request-id", &long);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    until("the request is logged", || {
        env.log().matches("/apps").count() == 2
    })
    .await;
    assert!(!env.log().contains(&long), "an id has a limit too");
}
