//! A container engine on a unix socket that checks what it is asked and answers as it is told.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What the engine answers, changed by tests, and what it was asked.
#[derive(Default)]
pub(crate) struct Orders {
    /// Labels of the image; `None` is no such image.
    pub(crate) image: Option<HashMap<String, String>>,
    /// The error with which a container is refused.
    pub(crate) create: Option<(u16, String)>,
    /// Errors of starts, the first one first; then starts succeed.
    pub(crate) starts: Vec<(u16, String)>,
    /// Whether making a container takes for ever.
    pub(crate) create_hangs: bool,
    /// How containers end right after their start: status, and whether memory ran out.
    pub(crate) ends: Option<(i64, bool)>,
    /// What containers print.
    pub(crate) prints: String,
    /// Where the environment of every container is.
    pub(crate) port: u16,
    /// Containers and networks that are there already: id, labels, whether it runs.
    pub(crate) there: Vec<(String, HashMap<String, String>, bool)>,
    /// Every request: `POST /containers/create?name=x`.
    pub(crate) asked: Vec<String>,
    /// What the builder says.
    pub(crate) builder: Vec<Value>,
    /// The files of the last build context.
    pub(crate) context: Vec<String>,
    /// The body of the last container.
    pub(crate) body: Value,
    /// The body of the last network.
    pub(crate) network: Value,
    /// What lives, by name: its end, once it has ended.
    pub(crate) alive: HashMap<String, watch::Sender<Option<(i64, bool)>>>,
    pub(crate) networks: Vec<String>,
}

pub(crate) struct FakeEngine {
    folder: tempfile::TempDir,
    pub(crate) orders: Arc<Mutex<Orders>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeEngine {
    pub(crate) fn start(orders: Orders) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = tokio::net::UnixListener::bind(folder.path().join("engine")).unwrap();
        let orders = Arc::new(Mutex::new(orders));
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&orders));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            folder,
            orders,
            task,
        }
    }

    /// The value of `DOCKER_HOST`.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("engine").display())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("trial/environment.log")
    }

    /// How often something was asked whose beginning is `what`.
    pub(crate) fn asked(&self, what: &str) -> usize {
        let orders = self.orders.lock().unwrap();
        orders
            .asked
            .iter()
            .filter(|asked| asked.starts_with(what))
            .count()
    }

    pub(crate) fn assert_nothing_left(&self) {
        let orders = self.orders.lock().unwrap();
        let alive: Vec<_> = orders.alive.keys().collect();
        assert!(alive.is_empty(), "{alive:?}");
    }

    /// Ends every container.
    pub(crate) fn end_all(&self, code: i64, out_of_memory: bool) {
        for end in self.orders.lock().unwrap().alive.values() {
            end.send_replace(Some((code, out_of_memory)));
        }
    }
}

type Shared = Arc<Mutex<Orders>>;

async fn answer(State(orders): State<Shared>, request: Request) -> Response {
    let method = request.method().to_string();
    let uri = request.uri().to_string();
    // `/v1.41/containers/…` and `/version` alike.
    let versioned = uri.starts_with("/v1.");
    let path = if versioned {
        &uri[uri[1..].find('/').unwrap() + 1..]
    } else {
        &uri
    };
    orders
        .lock()
        .unwrap()
        .asked
        .push(format!("{method} {path}"));
    let plain = path.split('?').next().unwrap().to_owned();
    let query = path
        .split_once('?')
        .map_or("", |(_, query)| query)
        .to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let parts: Vec<&str> = plain.trim_matches('/').split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["version"]) => {
            json_answer(200, &json!({"ApiVersion": "1.41", "Version": "20.10"}))
        }
        ("GET", ["images", name, "json"]) => image(&orders, name),
        ("GET", ["networks" | "containers", ..])
            if parts.last() != Some(&"logs") && parts.len() < 3 =>
        {
            list(&orders, parts[0] == "containers", &query)
        }
        ("POST", ["networks", "create"]) => make_network(&orders, &body),
        ("DELETE", ["networks", name]) => {
            orders
                .lock()
                .unwrap()
                .networks
                .retain(|known| known != name);
            StatusCode::NO_CONTENT.into_response()
        }
        ("POST", ["build"]) => build(&orders, &body),
        ("GET", ["images", "json"]) => json_answer(
            200,
            &json!([{"Id": "sha256:2", "ParentId": "", "RepoTags": ["old:1"], "RepoDigests": [],
                     "Created": 5, "Size": 7, "SharedSize": -1, "Containers": -1,
                     "Labels": {"archipelago.image": "worlds"}},
                    {"Id": "sha256:3", "ParentId": "", "RepoTags": ["new:1"], "RepoDigests": [],
                     "Created": 6, "Size": 8, "SharedSize": -1, "Containers": -1,
                     "Labels": {"archipelago.image": "environment"}}]),
        ),
        ("POST", ["containers", "create"]) => make(&orders, &query, &body).await,
        ("DELETE", ["containers", name]) => remove(&orders, name, &query),
        (_, ["containers", name, verb]) => container(&orders, name, verb).await,
        _ => problem(404, "page not found"),
    }
}

fn json_answer(status: u16, value: &Value) -> Response {
    let headers = [("content-type", "application/json")];
    let status = StatusCode::from_u16(status).unwrap();
    (status, headers, value.to_string()).into_response()
}

fn problem(status: u16, message: &str) -> Response {
    json_answer(status, &json!({"message": message}))
}

fn image(orders: &Shared, name: &str) -> Response {
    match &orders.lock().unwrap().image {
        Some(labels) => json_answer(
            200,
            &json!({"Id": "sha256:1", "Config": {"Labels": labels, "User": "10001:10002"}}),
        ),
        None => problem(404, &format!("No such image: {name}")),
    }
}

fn list(orders: &Shared, containers: bool, query: &str) -> Response {
    assert!(
        query.contains("archipelago.owner.pid"),
        "everything was listed: {query}"
    );
    let orders = orders.lock().unwrap();
    let entries: Vec<Value> = orders
        .there
        .iter()
        .filter(|(id, ..)| id.starts_with("net") != containers)
        .map(|(id, labels, runs)| {
            let state = if *runs { "running" } else { "exited" };
            json!({"Id": id, "Labels": labels, "State": state})
        })
        .collect();
    json_answer(200, &Value::Array(entries))
}

fn make_network(orders: &Shared, body: &Bytes) -> Response {
    let mut orders = orders.lock().unwrap();
    orders.network = serde_json::from_slice(body).unwrap();
    let name = orders.network["Name"].as_str().unwrap().to_owned();
    orders.networks.push(name);
    json_answer(201, &json!({"Id": "1", "Warning": ""}))
}

fn build(orders: &Shared, body: &Bytes) -> Response {
    let mut orders = orders.lock().unwrap();
    let mut tar = tar::Archive::new(body.as_ref());
    orders.context = tar
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    let lines: Vec<String> = orders
        .builder
        .iter()
        .map(|line| format!("{line}\r\n"))
        .collect();
    lines.concat().into_response()
}

async fn make(orders: &Shared, query: &str, body: &Bytes) -> Response {
    let answer = make_now(&mut orders.lock().unwrap(), query, body);
    let hangs = orders.lock().unwrap().create_hangs;
    if hangs {
        // It is made, and the answer does not come soon.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    answer
}

fn make_now(orders: &mut Orders, query: &str, body: &Bytes) -> Response {
    if let Some((status, message)) = &orders.create {
        return problem(*status, message);
    }
    let name = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("name="))
        .unwrap();
    orders.body = serde_json::from_slice(body).unwrap();
    let network = orders.body["HostConfig"]["NetworkMode"].as_str().unwrap();
    assert!(
        orders.networks.iter().any(|known| known == network),
        "no network {network}"
    );
    let end = watch::Sender::new(None);
    orders.alive.insert(name.to_owned(), end);
    json_answer(201, &json!({"Id": "c1", "Warnings": []}))
}

fn remove(orders: &Shared, name: &str, query: &str) -> Response {
    assert!(
        query.contains("force=true") && query.contains("v=true"),
        "{query}"
    );
    let mut orders = orders.lock().unwrap();
    let known = orders.alive.remove(name).is_some();
    let was = orders.there.len();
    orders.there.retain(|(id, ..)| id != name);
    if known || orders.there.len() < was {
        return StatusCode::NO_CONTENT.into_response();
    }
    problem(404, "No such container")
}

async fn container(orders: &Shared, name: &str, verb: &str) -> Response {
    let end = orders.lock().unwrap().alive.get(name).cloned();
    let Some(end) = end else {
        if verb == "stop" {
            return StatusCode::NO_CONTENT.into_response();
        }
        return problem(404, &format!("No such container: {name}"));
    };
    match verb {
        "start" => {
            let mut orders = orders.lock().unwrap();
            if !orders.starts.is_empty() {
                let (status, message) = orders.starts.remove(0);
                return problem(status, &message);
            }
            end.send_replace(orders.ends);
            StatusCode::NO_CONTENT.into_response()
        }
        "stop" => {
            end.send_if_modified(|end| {
                end.is_none() && {
                    *end = Some((0, false));
                    true
                }
            });
            StatusCode::NO_CONTENT.into_response()
        }
        "wait" => {
            let mut ended = end.subscribe();
            let code = match ended.wait_for(Option::is_some).await {
                Ok(end) => end.map(|(code, _)| code),
                Err(_) => None,
            };
            json_answer(200, &json!({"StatusCode": code}))
        }
        "logs" => {
            let printed = orders.lock().unwrap().prints.clone();
            let mut frame = vec![2, 0, 0, 0];
            frame.extend(u32::try_from(printed.len()).unwrap().to_be_bytes());
            frame.extend(printed.as_bytes());
            let mut ended = end.subscribe();
            // The output goes on as long as the container runs.
            let rest = async move {
                drop(ended.wait_for(Option::is_some).await);
                Ok(Bytes::new())
            };
            let all = futures::stream::once(async { Ok::<_, std::io::Error>(Bytes::from(frame)) });
            let all = futures::StreamExt::chain(all, futures::stream::once(rest));
            Body::from_stream(all).into_response()
        }
        "json" => {
            let port = orders.lock().unwrap().port.to_string();
            let ended = *end.borrow();
            let (code, out_of_memory) = ended.unwrap_or_default();
            let ports = match ended {
                None => json!({"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": port}]}),
                Some(_) => json!({}),
            };
            json_answer(
                200,
                &json!({
                    "Id": "c1",
                    "State": {"Running": ended.is_none(), "ExitCode": code, "OOMKilled": out_of_memory, "Error": ""},
                    "NetworkSettings": {"Ports": ports},
                }),
            )
        }
        other => problem(404, &format!("no verb {other}")),
    }
}
