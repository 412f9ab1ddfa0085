//! Reading a recording, and finding what it has to say to a request.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use formats::Object;
use formats::owner::Owner;
use serde::Deserialize;
use serde_json::Value;

use super::stored::{StoredDelta, StoredError, StoredReply};
use super::{Question, VERSION, difference};
use llm_wire::{ChatError, Reply};

/// Most bytes of one file of a recording.
const LARGEST_FILE: u64 = 8 << 30;

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It cannot be written.
    #[error("cannot write the recording `{path}`: {source}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read the recording `{path}`: {source}", path = .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error("the recording `{path}`{place} {reason}", path = .path.display())]
    Invalid {
        /// The file or folder.
        path: PathBuf,
        /// Which line, or nothing.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

impl RecordingError {
    /// Who has to act.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Write { .. } => Owner::Infrastructure,
            Self::Read { .. } | Self::Invalid { .. } => Owner::Configuration,
        }
    }
}

/// The exchanges of a recording, and which of them were played.
///
/// An exchange is played once. Where a request was made several times, the exchanges are played in
/// the order in which they were recorded, those of the same trajectory first.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    exchanges: Vec<Exchange>,
    by_key: HashMap<String, Vec<usize>>,
    /// Messages and lists of tools by their hash.
    parts: HashMap<String, Value>,
    played: Mutex<Vec<bool>>,
}

/// An `exchange` line.
#[derive(Debug, Deserialize)]
pub(super) struct Exchange {
    pub(super) model: String,
    key: String,
    pub(super) messages: Vec<String>,
    #[serde(default)]
    pub(super) tools: Option<String>,
    #[serde(default)]
    pub(super) parameters: Object,
    #[serde(default)]
    trajectory_id: Option<String>,
    #[serde(default)]
    deltas: Vec<StoredDelta>,
    #[serde(default)]
    reply: Option<Value>,
    #[serde(default)]
    error: Option<StoredError>,
}

impl Recording {
    /// Reads the file at `path`, or all files of the folder.
    ///
    /// # Errors
    /// [`RecordingError`] when it cannot be read or is no recording of a version that we read.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let mut recording = Self {
            path: path.to_owned(),
            exchanges: Vec::new(),
            by_key: HashMap::new(),
            parts: HashMap::new(),
            played: Mutex::default(),
        };
        for file in files(path)? {
            recording.read(&file)?;
        }
        if recording.exchanges.is_empty() {
            return Err(invalid(path, String::new(), "holds no exchange"));
        }
        for (index, exchange) in recording.exchanges.iter().enumerate() {
            let same = recording.by_key.entry(exchange.key.clone()).or_default();
            same.push(index);
        }
        recording.played = Mutex::new(vec![false; recording.exchanges.len()]);
        Ok(recording)
    }

    /// The full names of the models that it has exchanges with.
    #[must_use]
    pub fn models(&self) -> BTreeSet<&str> {
        self.exchanges
            .iter()
            .map(|exchange| exchange.model.as_str())
            .collect()
    }

    /// How many exchanges it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether it has none; such a recording cannot be opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// How many exchanges were not played.
    #[must_use]
    pub fn left(&self) -> usize {
        let played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        played.iter().filter(|played| !**played).count()
    }

    /// Plays the next exchange with `question` (and with `model`, if one is given): what was said
    /// while the reply came, and what came of it. The error says why there is none.
    pub(crate) fn play(
        &self,
        question: &Question,
        model: Option<&str>,
        trajectory_id: Option<&str>,
    ) -> Result<(&[StoredDelta], Result<Reply, ChatError>), String> {
        let index = self.choose(question, model, trajectory_id)?;
        let exchange = &self.exchanges[index];
        let outcome = match (&exchange.reply, &exchange.error) {
            (Some(reply), _) => {
                let json = question.drawn_into(reply.to_string());
                let stored: StoredReply = serde_json::from_str(&json)
                    .map_err(|error| format!("a reply in it cannot be read: {error}"))?;
                Ok(stored.into())
            }
            (None, Some(error)) => Err(error
                .error()
                .ok_or("an error in it is of a kind that this version does not know")?),
            (None, None) => return Err("an exchange in it has neither reply nor error".to_owned()),
        };
        Ok((&exchange.deltas, outcome))
    }

    fn choose(
        &self,
        question: &Question,
        model: Option<&str>,
        trajectory_id: Option<&str>,
    ) -> Result<usize, String> {
        let with_model = |exchange: &Exchange| model.is_none_or(|model| exchange.model == model);
        let same: Vec<usize> = self
            .by_key
            .get(&question.key)
            .into_iter()
            .flatten()
            .copied()
            .filter(|index| with_model(&self.exchanges[*index]))
            .collect();
        if same.is_empty() {
            let others = self
                .exchanges
                .iter()
                .filter(|exchange| with_model(exchange));
            let nearest = difference::nearest(question, others, &self.parts);
            return Err(nearest.unwrap_or_else(|| {
                let known: Vec<&str> = self.models().into_iter().collect();
                let model = model.unwrap_or_default();
                format!(
                    "it has exchanges only with {}, not with {model}",
                    known.join(", ")
                )
            }));
        }
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let left = || same.iter().copied().filter(|index| !played[*index]);
        let of_trajectory = |index: &usize| {
            trajectory_id.is_some()
                && self.exchanges[*index].trajectory_id.as_deref() == trajectory_id
        };
        let next = left().find(of_trajectory).or_else(|| left().next());
        let next = next.ok_or_else(|| {
            format!(
                "this request is in it {} times, and was made once more",
                same.len()
            )
        })?;
        played[next] = true;
        Ok(next)
    }

    fn read(&mut self, path: &Path) -> Result<(), RecordingError> {
        let read_error = |source| RecordingError::Read {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(read_error)?;
        let size = file.metadata().map_err(read_error)?.len();
        if size > LARGEST_FILE {
            let reason = format!("has {size} bytes, the limit is {LARGEST_FILE}");
            return Err(invalid(path, String::new(), reason));
        }
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        for number in 1_usize.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(read_error)? == 0 {
                break;
            }
            let whole = line.ends_with(b"\n");
            let at = || format!(", line {number},");
            match serde_json::from_slice::<Value>(&line) {
                Ok(value) => self
                    .take_in(value, number == 1)
                    .map_err(|reason| invalid(path, at(), reason))?,
                // The program was killed while it wrote.
                Err(_) if !whole && number > 1 => {
                    tracing::warn!(path = %path.display(), "the last line of the recording is cut off");
                }
                Err(error) => return Err(invalid(path, at(), error.to_string())),
            }
        }
        Ok(())
    }

    fn take_in(&mut self, mut line: Value, first: bool) -> Result<(), String> {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "recording" => match line.get("version").and_then(Value::as_u64) {
                Some(version) if version == u64::from(VERSION) => Ok(()),
                version => Err(format!(
                    "has version {}, this program reads {VERSION}",
                    version.map_or_else(|| "none".to_owned(), |version| version.to_string())
                )),
            },
            _ if first => Err("does not begin with a line of type `recording`".to_owned()),
            "part" => {
                let sha256 = line.get("sha256").and_then(Value::as_str);
                let sha256 = sha256.ok_or("has no `sha256`")?.to_owned();
                let value = line.get_mut("value").map(Value::take);
                self.parts.insert(sha256, value.ok_or("has no `value`")?);
                Ok(())
            }
            "exchange" => {
                let exchange = serde_json::from_value(line).map_err(|error| error.to_string())?;
                self.exchanges.push(exchange);
                Ok(())
            }
            other => Err(format!("is of the unknown type `{other}`")),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The files of the recording at `path`, oldest first.
fn files(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let read_error = |source| RecordingError::Read {
        path: path.to_owned(),
        source,
    };
    if !std::fs::metadata(path).map_err(read_error)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(read_error)? {
        let file = entry.map_err(read_error)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(file);
        }
    }
    if files.is_empty() {
        let reason = "is a folder without `.jsonl` files";
        return Err(invalid(path, String::new(), reason));
    }
    files.sort();
    Ok(files)
}

fn invalid(path: &Path, place: String, reason: impl Into<String>) -> RecordingError {
    RecordingError::Invalid {
        path: path.to_owned(),
        place,
        reason: reason.into(),
    }
}
