//! The methods of the endpoint: answered here, or forwarded to the server that a name leads to.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::json;

use super::caller::Caller;
use super::initialize;
use super::session::{log_level, log_rank};
use crate::backend::server::{Server, Subscribing};
use crate::catalog::{Kind, Naming, Route};
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::jsonrpc::{
    self, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Outcome, RESOURCE_NOT_FOUND, Raw,
    RawObject, RpcError,
};
use crate::tool_calls::{TARGET_AGENT, as_actor};
use crate::view::View;

/// Answers one request of a client.
pub(crate) async fn answer(
    gateway: &Gateway,
    generation: &Generation,
    caller: Arc<Caller>,
    method: &str,
    params: RawObject,
) -> Outcome {
    let view = generation.view(&caller.session);
    let call = Call {
        generation,
        view,
        caller,
    };
    match method {
        "ping" => Ok(empty()),
        "initialize" => Ok(initialize::result(generation, call.caller.session.version)),
        "tools/call" => call.tool(params).await,
        "resources/read" => call.read_resource(params).await,
        "resources/subscribe" => call.subscribe(params, true).await,
        "resources/unsubscribe" => call.subscribe(params, false).await,
        "prompts/get" => call.prompt(params).await,
        "completion/complete" => call.complete(params).await,
        "logging/setLevel" => set_log_level(gateway, &call, &params).await,
        _ => match Kind::ALL.into_iter().find(|kind| kind.method() == method) {
            Some(kind) => Ok(call.list(kind).await),
            None => Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("Method not found: {method}"),
            )),
        },
    }
}

fn empty() -> Raw {
    jsonrpc::raw(&json!({}))
}

/// A tool's result that says what went wrong, for the model to read.
pub(crate) fn tool_failure(text: &str) -> Raw {
    jsonrpc::raw(&json!({"content": [{"type": "text", "text": text}], "isError": true}))
}

/// The end of a call whose configuration was replaced.
pub(crate) const REPLACED: &str =
    "the configuration of the servers was replaced while the call was in flight";

/// Calls a tool under its served name.
pub(crate) async fn call_tool(
    generation: &Generation,
    view: &View,
    mut params: RawObject,
    caller: Option<Arc<Caller>>,
    headers: HeaderMap,
) -> Outcome {
    let name = required(&params, "name")?;
    let Some(route) = view.route(Kind::Tools, &name).await else {
        return Err(RpcError::new(
            INVALID_PARAMS,
            format!("Unknown tool: '{name}'"),
        ));
    };
    if !generation.allows(&name, &route.own) {
        let allows = |served: &str, own: &str| generation.allows(served, own);
        let count = view.index(Kind::Tools).count(allows);
        return Ok(tool_failure(&format!(
            "Tool '{name}' is not in the allowlist ({count} tools allowed)"
        )));
    }
    params.set("name", jsonrpc::raw(&route.own));
    let server = &view.servers[route.server];
    match server.call("tools/call", params, caller, headers).await {
        Ok(outcome) => outcome,
        Err(reason) => Ok(tool_failure(&format!(
            "Error calling tool '{}': {reason}",
            route.own
        ))),
    }
}

struct Call<'a> {
    generation: &'a Generation,
    view: Arc<View>,
    caller: Arc<Caller>,
}

impl Call<'_> {
    async fn list(self, kind: Kind) -> Raw {
        self.view.refresh(kind).await.result(kind, |served, own| {
            kind != Kind::Tools || self.generation.allows(served, own)
        })
    }

    async fn tool(self, params: RawObject) -> Outcome {
        let headers = as_actor(self.caller.headers.clone(), TARGET_AGENT);
        let caller = Some(self.caller);
        call_tool(self.generation, &self.view, params, caller, headers).await
    }

    async fn prompt(self, mut params: RawObject) -> Outcome {
        let name = required(&params, "name")?;
        let Some(route) = self.view.route(Kind::Prompts, &name).await else {
            return Err(RpcError::new(
                INVALID_PARAMS,
                format!("Unknown prompt: '{name}'"),
            ));
        };
        params.set("name", jsonrpc::raw(&route.own));
        self.forward("prompts/get", params, &route).await
    }

    async fn read_resource(self, mut params: RawObject) -> Outcome {
        let uri = required(&params, "uri")?;
        let route = self.resource(&uri).await?;
        params.set("uri", jsonrpc::raw(&route.own));
        let naming = self.view.naming(&route).clone();
        let outcome = self.forward("resources/read", params, &route).await?;
        Ok(if naming.marked {
            served_contents(&outcome, &naming)
        } else {
            outcome
        })
    }

    async fn subscribe(self, mut params: RawObject, wanted: bool) -> Outcome {
        let uri = required(&params, "uri")?;
        let route = self.resource(&uri).await?;
        params.set("uri", jsonrpc::raw(&route.own));
        let session = self.caller.session.clone();
        let server = self.server(&route);
        // Clients hear of updates under the served form, also when they subscribed by the own one.
        let served = self.view.naming(&route).uri(&route.own);
        let request = Subscribing {
            params,
            headers: self.caller.headers.clone(),
            caller: Some(self.caller),
        };
        let outcome = if wanted {
            let ended = session.ended().clone();
            let subscribe = server.subscribe(&route.own, &session.id, request, ended);
            let outcome = subscribe.await;
            if matches!(outcome, Ok(Ok(_))) {
                session.subscribe(served);
            }
            outcome
        } else {
            session.unsubscribe(&served);
            server.unsubscribe(&route.own, &session.id, request).await
        };
        outcome.unwrap_or_else(|reason| Err(RpcError::new(INTERNAL_ERROR, reason)))
    }

    async fn complete(self, mut params: RawObject) -> Outcome {
        let mut reference = params.read::<RawObject>("ref").unwrap_or_default();
        let route = match reference.text("type").as_deref() {
            Some("ref/prompt") => {
                let name = required(&reference, "name")?;
                let route = self.view.route(Kind::Prompts, &name).await;
                let route = route.ok_or_else(|| {
                    RpcError::new(INVALID_PARAMS, format!("Unknown prompt: '{name}'"))
                })?;
                reference.set("name", jsonrpc::raw(&route.own));
                route
            }
            Some("ref/resource") => {
                let uri = required(&reference, "uri")?;
                let route = self.resource(&uri).await?;
                reference.set("uri", jsonrpc::raw(&route.own));
                route
            }
            _ => {
                return Err(RpcError::new(
                    INVALID_PARAMS,
                    "`ref.type` is neither `ref/prompt` nor `ref/resource`",
                ));
            }
        };
        params.set("ref", reference.to_raw());
        self.forward("completion/complete", params, &route).await
    }

    async fn resource(&self, uri: &str) -> Result<Route, RpcError> {
        self.view.route_uri(uri).await.ok_or_else(|| {
            RpcError::new(
                RESOURCE_NOT_FOUND,
                format!("Resource not found: Unknown resource: '{uri}'"),
            )
        })
    }

    fn server(&self, route: &Route) -> Arc<Server> {
        self.view.servers[route.server].clone()
    }

    async fn forward(self, method: &str, params: RawObject, route: &Route) -> Outcome {
        let headers = self.caller.headers.clone();
        let server = self.server(route);
        server
            .call(method, params, Some(self.caller), headers)
            .await
            .unwrap_or_else(|reason| Err(RpcError::new(INTERNAL_ERROR, reason)))
    }
}

fn required(params: &RawObject, key: &str) -> Result<String, RpcError> {
    params.text(key).ok_or_else(|| {
        RpcError::new(
            INVALID_PARAMS,
            format!("invalid parameters: `{key}` is missing or not a string"),
        )
    })
}

/// The result of `resources/read` with the URIs under which the client knows the contents.
fn served_contents(result: &Raw, naming: &Naming) -> Raw {
    let Ok(mut object) = RawObject::parse(Some(result)) else {
        return result.clone();
    };
    let Some(mut contents) = object.read::<Vec<RawObject>>("contents") else {
        return result.clone();
    };
    for item in &mut contents {
        if let Some(own) = item.text("uri") {
            item.set("uri", jsonrpc::raw(&naming.uri(&own)));
        }
    }
    object.set("contents", jsonrpc::raw(&contents));
    object.to_raw()
}

/// Remembers the level of the session and asks the servers for it.
async fn set_log_level(gateway: &Gateway, call: &Call<'_>, params: &RawObject) -> Outcome {
    let level = required(params, "level")?;
    let Some(rank) = log_rank(&level) else {
        return Err(RpcError::new(
            INVALID_PARAMS,
            format!("`{level}` is not a log level"),
        ));
    };
    call.caller.session.set_log_rank(rank);
    ask_for_logs(gateway, call.generation, rank).await;
    Ok(empty())
}

/// Asks the servers for log messages of `rank`, or of the weakest level that any session wants.
pub(crate) async fn ask_for_logs(gateway: &Gateway, generation: &Generation, rank: usize) {
    let sessions = gateway.inner.sessions.all();
    let weakest = sessions
        .iter()
        .filter_map(|session| session.log_rank())
        .fold(rank, usize::min);
    if let Some(weakest) = log_level(weakest) {
        let servers = generation.servers();
        let set = servers.iter().map(|server| server.set_log_level(weakest));
        futures::future::join_all(set).await;
    }
}
