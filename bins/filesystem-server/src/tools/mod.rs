//! The tools as a table: what the client is told about each, and the function that does it.

mod arguments;
mod catalogue;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    arguments::{check, parse},
    catalogue::TOOLS,
};
use crate::{
    limits::Limits,
    root::{PathError, Root},
};

/// One tool.
#[derive(Debug)]
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) answers: Answers,
    pub(crate) effect: Effect,
    pub(crate) run: fn(&Call<'_>, JsonObject) -> Result<Output, ToolError>,
}

/// One parameter of a tool.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) description: &'static str,
}

/// Type and default of a parameter; only a [`Kind::Required`] one has no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Required,
    Text(&'static str),
    Integer(i64),
    Boolean(bool),
}

/// What a tool gives back (§1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Text, which is repeated as structured content.
    Text,
    /// A picture.
    Image,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Something new appears; what was there stays. `again`: a second call changes nothing more.
    Adds { again: bool },
    /// What was there may be lost.
    Destroys { again: bool },
}

/// A tool's answer.
#[derive(Debug)]
pub(crate) enum Output {
    Text(String),
    Image {
        data: Vec<u8>,
        media_type: &'static str,
    },
}

/// A tool's failure. The texts are part of the contract (§2.2, §2.4 to §2.6), capitals included.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments do not fit the parameters.
    #[error("Validation error: {0}")]
    Arguments(String),
    /// The tool itself failed; the text is the reason.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }

    /// A path that leads nowhere, where that is an error and not a bracketed text (§2.2, last column).
    pub(crate) fn path(error: &PathError, what: &str, argument: &str) -> Self {
        Self::Failed(match error {
            PathError::Outside => format!("Access denied: {argument}"),
            PathError::Missing | PathError::NotADirectory => format!("File not found: {argument}"),
            PathError::Denied => format!("Failed to {what}: permission denied: {argument}"),
            PathError::Other(error) => format!("Failed to {what}: {error}"),
        })
    }
}

/// What a tool works with during one call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) root: &'a Root,
    pub(crate) limits: &'a Limits,
    /// Cancelled when the client no longer waits.
    pub(crate) cancelled: CancellationToken,
}

/// The work that a listing, search or tree has left.
#[derive(Debug)]
pub(crate) struct Effort {
    entries: usize,
    max_entries: usize,
    end: Instant,
    max_time: Duration,
    cancelled: CancellationToken,
}

/// Why a scan ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stopped {
    #[error("stopped after looking at {0} entries, the limit max_scanned_entries")]
    Entries(usize),
    #[error("stopped after {} s, the limit max_scan_time", .0.as_secs_f64())]
    Time(Duration),
    #[error("cancelled")]
    Cancelled,
}

impl Call<'_> {
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            entries: 0,
            max_entries: self.limits.max_scanned_entries,
            end: Instant::now() + self.limits.max_scan_time,
            max_time: self.limits.max_scan_time,
            cancelled: self.cancelled.clone(),
        }
    }
}

impl Effort {
    /// Counts one directory entry.
    pub(crate) fn spend(&mut self) -> Result<(), Stopped> {
        self.entries += 1;
        if self.entries > self.max_entries {
            Err(Stopped::Entries(self.max_entries))
        } else if self.cancelled.is_cancelled() {
            Err(Stopped::Cancelled)
        } else if Instant::now() >= self.end {
            Err(Stopped::Time(self.max_time))
        } else {
            Ok(())
        }
    }
}

impl ToolSpec {
    /// The tool as `tools/list` shows it.
    pub(crate) fn described(&self) -> Tool {
        let tool = Tool::new(self.name, self.description, Arc::new(self.input_schema()))
            .with_title(self.title)
            .with_annotations(self.effect.annotations());
        match self.answers {
            Answers::Text => tool.with_raw_output_schema(Arc::new(text_output_schema())),
            Answers::Image => tool,
        }
    }

    /// The flat form that clients with weak JSON Schema support take (§1.3).
    fn input_schema(&self) -> JsonObject {
        let mut properties = JsonObject::new();
        let mut required = Vec::new();
        for parameter in self.parameters {
            let (kind, optional) = match parameter.kind {
                Kind::Required => ("string", false),
                Kind::Text(_) => ("string", true),
                Kind::Integer(_) => ("integer", true),
                Kind::Boolean(_) => ("boolean", true),
            };
            let schema = if optional {
                json!({"type": kind, "nullable": true, "description": format!("(Optional) {}", parameter.description)})
            } else {
                required.push(parameter.name);
                json!({"type": kind, "description": parameter.description})
            };
            properties.insert(parameter.name.to_owned(), schema);
        }
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema
    }
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().open_world(false);
        match self {
            Self::Reads => hints.read_only(true).idempotent(true),
            Self::Adds { again } => hints.read_only(false).destructive(false).idempotent(again),
            Self::Destroys { again } => hints.read_only(false).destructive(true).idempotent(again),
        }
    }
}

/// One string, marked the way FastMCP clients unwrap it (§1.4).
fn text_output_schema() -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert(
        "properties".to_owned(),
        json!({"result": {"type": "string"}}),
    );
    schema.insert("required".to_owned(), json!(["result"]));
    schema.insert("x-fastmcp-wrap-result".to_owned(), json!(true));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(max_entries: usize, max_time: Duration) -> Effort {
        Effort {
            entries: 0,
            max_entries,
            end: Instant::now() + max_time,
            max_time,
            cancelled: CancellationToken::new(),
        }
    }

    #[test]
    fn work_ends_at_each_bound_and_when_nobody_waits() {
        let long = Duration::from_secs(3600);
        let mut few = effort(2, long);
        assert_eq!([few.spend(), few.spend()], [Ok(()), Ok(())]);
        assert_eq!(few.spend(), Err(Stopped::Entries(2)));
        let mut short = effort(9, Duration::ZERO);
        assert_eq!(short.spend(), Err(Stopped::Time(Duration::ZERO)));
        let mut abandoned = effort(9, long);
        abandoned.cancelled.cancel();
        assert_eq!(abandoned.spend(), Err(Stopped::Cancelled));
    }
}
