//! Failures in the shape of the interface: `{"detail": …}` (`spec/environment.md` §2).

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

/// A failure that is answered with a status and a `detail`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    detail: Value,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<Value>) -> Self {
        Self {
            status,
            detail: detail.into(),
            header: None,
        }
    }

    pub(crate) fn bad_request(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn internal(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub(crate) fn too_large(detail: impl Into<Value>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// What is wrong.
    pub(crate) const fn detail(&self) -> &Value {
        &self.detail
    }

    /// 422 with one item.
    pub(crate) fn invalid(item: &InvalidItem) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, json!([item]))
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"detail": self.detail}))).into_response();
        if let Some(header) = self.header {
            let (name, value) = *header;
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct InvalidItem {
    /// A stable word: `missing`, `json_invalid`, `string_type`, `value_error`, …
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// Where: `["body", "mcpServers", "x", "transport"]`.
    pub(crate) loc: Vec<Value>,
    /// One sentence for people.
    pub(crate) msg: String,
    /// What was there.
    pub(crate) input: Value,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ctx: Option<Value>,
}

impl InvalidItem {
    /// Something required that is not there.
    pub(crate) fn missing(loc: Vec<Value>, input: Value) -> Self {
        Self {
            kind: "missing",
            loc,
            msg: "Field required".to_owned(),
            input,
            ctx: None,
        }
    }

    /// A value that breaks a rule.
    pub(crate) fn value(loc: Vec<Value>, reason: &str, input: Value) -> Self {
        Self {
            kind: "value_error",
            loc,
            msg: format!("Value error, {reason}"),
            input,
            ctx: Some(json!({"error": reason})),
        }
    }
}
