//! The client request on whose behalf a server is asked.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::value::RawValue;

use super::session::{Session, log_rank};
use super::stream::EventStream;
use crate::jsonrpc::{self, Outcome, Raw, RawObject};

/// Where messages of a server go that belong to one client request.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) session: Arc<Session>,
    /// The stream of the request's answer.
    pub(crate) stream: Arc<EventStream>,
    /// The token by which the client wants to hear of progress, as it wrote it.
    pub(crate) progress_token: Option<Raw>,
    /// Headers for servers over HTTP.
    pub(crate) headers: HeaderMap,
}

impl Caller {
    /// Passes progress on under the client's own token.
    pub(crate) fn progress(&self, params: &RawValue) {
        let Some(token) = &self.progress_token else {
            return;
        };
        let Ok(mut params) = RawObject::parse(Some(params)) else {
            return;
        };
        params.set("progressToken", token.clone());
        self.stream.push(jsonrpc::notification(
            "notifications/progress",
            Some(&params.to_raw()),
        ));
    }

    /// Passes a log message on, if the session wants its level.
    pub(crate) fn log(&self, params: &RawValue) {
        let level = RawObject::parse(Some(params))
            .ok()
            .and_then(|params| params.text("level"))
            .and_then(|level| log_rank(&level));
        if let (Some(level), Some(wanted)) = (level, self.session.log_rank())
            && level < wanted
        {
            return;
        }
        self.stream
            .push(jsonrpc::notification("notifications/message", Some(params)));
    }

    /// Passes any other notification on.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawValue>) {
        self.stream.push(jsonrpc::notification(method, params));
    }

    /// Puts a request of the server to the client.
    pub(crate) async fn ask(&self, method: &str, params: Option<&RawValue>) -> Outcome {
        if let Some(refusal) = self.session.refusal(method, params) {
            return Err(refusal);
        }
        self.session.ask(&self.stream, method, params).await
    }
}
