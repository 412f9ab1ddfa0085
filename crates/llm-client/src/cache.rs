//! Answers kept on disk, so that the same request is not paid twice. Off unless a folder is given.
//!
//! The key is the SHA-256 of everything that the answer depends on: the model's full name, the
//! address of its server, messages, tools, parameters, headers, and the version of this crate, which
//! decides how they are written on the wire. Kept are whole answers only: none that a filter
//! withheld, that was cut off, that failed or that says nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use formats::document;
use formats::owner::Owner;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::recording::{Question, StoredReply, sha256};
use llm_wire::{ChatRequest, ChatResponse, FinishReason, Reply};

/// Raised when the meaning of a key or an entry changes.
const VERSION: u32 = 1;

/// Limits of a [`Cache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Largest answer that is kept or read, in bytes.
    pub entry_bytes: u64,
    /// Most bytes of all answers together; beyond it none is added.
    pub total_bytes: u64,
}

impl Default for CacheLimits {
    /// 16 MiB an answer, 4 GiB in all.
    fn default() -> Self {
        Self {
            entry_bytes: 16 << 20,
            total_bytes: 4 << 30,
        }
    }
}

/// A cache that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the cache `{path}`: {source}", path = .path.display())]
pub struct CacheError {
    path: PathBuf,
    source: io::Error,
}

impl CacheError {
    /// Who has to act.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        Owner::Configuration
    }
}

/// A folder of answers. Cloning is cheap; several programs may use one folder at the same time.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    limits: CacheLimits,
    /// Bytes of all answers, as far as this program knows.
    total: AtomicU64,
    told_full: AtomicBool,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    key: String,
    model: String,
    reply: Box<RawValue>,
}

/// What an answer is kept under.
#[derive(Debug, Clone)]
pub(crate) struct Key(String);

impl Cache {
    /// Uses `folder`, which is made if needed.
    ///
    /// # Errors
    /// [`CacheError`] when it cannot be made or looked through.
    pub fn open(folder: impl Into<PathBuf>, limits: CacheLimits) -> Result<Self, CacheError> {
        let folder = folder.into();
        let total = std::fs::create_dir_all(&folder).and_then(|()| size_of(&folder));
        let total = total.map_err(|source| CacheError {
            path: folder.clone(),
            source,
        })?;
        Ok(Self(Arc::new(Inner {
            folder,
            limits,
            total: AtomicU64::new(total),
            told_full: AtomicBool::new(false),
        })))
    }

    /// The key of `question`, which `request` asks the model `model` at `place`.
    pub(crate) fn key(
        question: &Question,
        request: &ChatRequest<'_>,
        model: &str,
        place: &str,
    ) -> Key {
        let headers = request.extra_args.get("extra_headers");
        let headers = headers.map_or_else(String::new, ToString::to_string);
        let crate_version = env!("CARGO_PKG_VERSION");
        Key(sha256(&format!(
            "{VERSION}\n{crate_version}\n{model}\n{place}\n{headers}\n{}",
            question.key
        )))
    }

    /// The answer that is kept under `key`. One that cannot be read is none, and is told in the log.
    pub(crate) async fn get(&self, key: &Key, question: &Question) -> Option<Reply> {
        let path = self.path(key);
        let limit = self.0.limits.entry_bytes;
        let expected = key.0.clone();
        let read = {
            let path = path.clone();
            move || read(&path, limit, &expected)
        };
        let found = match tokio::task::spawn_blocking(read).await.ok()? {
            Ok(None) => return None,
            Ok(Some(json)) => serde_json::from_str::<StoredReply>(&question.drawn_into(json))
                .map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        match found {
            Ok(stored) => Some(stored.into()),
            Err(reason) => {
                tracing::warn!(path = %path.display(), %reason, "a kept answer cannot be used");
                None
            }
        }
    }

    /// Keeps `response` if it is a whole one. A failure costs only the next call, and is told in the log.
    pub(crate) async fn put(
        &self,
        key: &Key,
        question: &Question,
        model: &str,
        response: &ChatResponse,
    ) {
        if !is_whole(response) {
            return;
        }
        let json = question.written(&StoredReply::new(response));
        let Ok(reply) = RawValue::from_string(json) else {
            return;
        };
        let length = reply.get().len() as u64;
        let limits = self.0.limits;
        if length > limits.entry_bytes {
            return;
        }
        if self.0.total.load(Ordering::Relaxed).saturating_add(length) > limits.total_bytes {
            if !self.0.told_full.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    folder = %self.0.folder.display(), limit = limits.total_bytes,
                    "the cache is full (`total_bytes`); nothing is added"
                );
            }
            return;
        }
        let path = self.path(key);
        let entry = Entry {
            version: VERSION,
            key: key.0.clone(),
            model: model.to_owned(),
            reply,
        };
        let write = move || document::write("kept answer", &path, &entry);
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {
                self.0.total.fetch_add(length, Ordering::Relaxed);
            }
            Ok(Err(error)) => tracing::warn!(%error, "an answer cannot be kept"),
            Err(error) => tracing::warn!(%error, "an answer cannot be kept"),
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = format!("{}.json", key.0);
        self.0.folder.join(&key.0[..2]).join(name)
    }
}

/// Whether `response` would be a good answer the next time too.
fn is_whole(response: &ChatResponse) -> bool {
    let message = &response.message;
    let says_something = message
        .content
        .as_ref()
        .is_some_and(|content| !content.is_blank());
    match response.finish_reason {
        FinishReason::Stop => says_something || !message.tool_calls.is_empty(),
        FinishReason::ToolCalls => !message.tool_calls.is_empty(),
        _ => false,
    }
}

/// The reply in the file at `path`, `None` where there is no file.
fn read(path: &Path, limit: u64, key: &str) -> Result<Option<String>, String> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // The frame around a reply is small.
    if size > limit.saturating_mul(2) {
        return Err(format!(
            "it has {size} bytes, the limit is {limit} (`entry_bytes`)"
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let entry: Entry = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if entry.version != VERSION || entry.key != key {
        return Err("it belongs to another version or another key".to_owned());
    }
    Ok(Some(entry.reply.get().to_owned()))
}

/// Bytes of the answers in `folder`.
fn size_of(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for group in std::fs::read_dir(folder)? {
        let group = group?;
        if !group.file_type()?.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(group.path())? {
            // Another program may just rename it.
            total += entry?.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    Ok(total)
}
