//! Writing a recording.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::question::Part;
use super::reader::RecordingError;
use super::stored::{StoredDelta, StoredError, StoredReply};
use super::{Question, VERSION};
use llm_wire::{CallLabels, ChatError, ChatResponse};

/// Records the exchanges of models. Cloning is cheap, and clones write to the same file.
#[derive(Debug, Clone)]
pub struct Tape(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The parts that are in the file.
    written: HashSet<String>,
}

/// One attempt and what came of it.
pub(crate) struct Happened<'a> {
    pub(crate) model: &'a str,
    pub(crate) question: &'a Question,
    pub(crate) labels: CallLabels<'a>,
    pub(crate) took: Duration,
    pub(crate) deltas: Vec<StoredDelta>,
    pub(crate) outcome: Result<&'a ChatResponse, &'a ChatError>,
}

/// An `exchange` line.
#[derive(Serialize)]
struct Exchange<'a> {
    time: String,
    model: &'a str,
    key: &'a str,
    messages: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a str>,
    parameters: &'a formats::Object,
    #[serde(skip_serializing_if = "Option::is_none")]
    trajectory_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    seconds: f64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    deltas: &'a [StoredDelta],
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<StoredReply>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<StoredError>,
}

impl Tape {
    /// Begins a file of its own in `folder`, which is made if needed.
    ///
    /// # Errors
    /// [`RecordingError::Write`] when that cannot be done.
    pub fn create(folder: &Path) -> Result<Self, RecordingError> {
        let now = jiff::Timestamp::now();
        // Files sort by the time of their beginning.
        let time = now.strftime("%Y%m%dT%H%M%S.%6fZ");
        let name = format!("exchanges-{time}-{:08x}.jsonl", fastrand::u32(..));
        let path = folder.join(name);
        let error = |source| RecordingError::Write {
            path: path.clone(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(error)?;
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(error)?;
        let head = json!({
            "type": "recording", "version": VERSION, "started_at": now.to_string(),
            "tool_version": env!("CARGO_PKG_VERSION"),
        });
        writeln!(file, "{head}").map_err(error)?;
        Ok(Self(Arc::new(Inner {
            path,
            open: Mutex::new(Open {
                file,
                written: HashSet::new(),
            }),
        })))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Writes down what happened; it is in the file when this ends.
    pub(crate) async fn keep(&self, happened: Happened<'_>) -> Result<(), RecordingError> {
        let line = line(&happened);
        let question = happened.question;
        let parts: Vec<Part> = question
            .messages
            .iter()
            .chain(&question.tools)
            .cloned()
            .collect();
        let inner = Arc::clone(&self.0);
        let write = move || {
            let mut open = inner.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.write(&parts, &line)
                .map_err(|source| RecordingError::Write {
                    path: inner.path.clone(),
                    source,
                })
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(written) => written,
            Err(_) => Err(RecordingError::Write {
                path: self.0.path.clone(),
                source: io::Error::other("the thread that writes ended"),
            }),
        }
    }
}

impl Open {
    /// Writes the parts that are not yet there, and the line, at once.
    fn write(&mut self, parts: &[Part], line: &str) -> io::Result<()> {
        let mut text = String::new();
        let mut new = Vec::new();
        for part in parts {
            if self.written.contains(&part.sha256) || new.contains(&part.sha256) {
                continue;
            }
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                r#"{{"type":"part","sha256":"{}","value":{}}}"#,
                part.sha256, part.json
            );
            new.push(part.sha256.clone());
        }
        text.push_str(line);
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.written.extend(new);
        Ok(())
    }
}

fn line(happened: &Happened<'_>) -> String {
    let question = happened.question;
    let (reply, error) = match happened.outcome {
        Ok(response) => (Some(StoredReply::new(response)), None),
        Err(error) => (None, Some(StoredError::from(error))),
    };
    let exchange = Exchange {
        time: jiff::Timestamp::now().to_string(),
        model: happened.model,
        key: &question.key,
        messages: question
            .messages
            .iter()
            .map(|part| part.sha256.as_str())
            .collect(),
        tools: question.tools.as_ref().map(|part| part.sha256.as_str()),
        parameters: &question.parameters,
        trajectory_id: happened.labels.trajectory_id,
        service: happened.labels.service,
        call_id: happened.labels.call_id,
        attempt: happened.labels.attempt,
        seconds: happened.took.as_secs_f64(),
        deltas: &happened.deltas,
        reply,
        error,
    };
    let json = question.written(&exchange);
    // The tag comes first, for those who read along.
    format!(r#"{{"type":"exchange",{}"#, &json[1..])
}
