//! Answers of judges kept on disk, so that the same question is not paid twice.
//!
//! The key is the SHA-256 of everything that the answer depends on: the model, its arguments, all
//! texts and pictures, the shape asked for, and which vote it is. Only the code of the markers is
//! left out, which is drawn anew for each message. What is kept is the reply; it is read again each
//! time, so that a rule that has become stricter also holds for old replies.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Raised when the meaning of a key or an entry changes.
const VERSION: u32 = 1;

/// The largest entry that is read, in bytes.
const MAX_ENTRY: u64 = 4 << 20;

/// A folder of answers.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    version: u32,
    model: String,
    reply: String,
}

/// The name of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The key of a question: `parts` are hashed as JSON, without `code`.
    pub(crate) fn of(parts: &Value, code: &str) -> Self {
        let mut text = parts.to_string();
        if !code.is_empty() {
            text = text.replace(code, "");
        }
        let mut hasher = Sha256::new();
        hasher.update(VERSION.to_be_bytes());
        hasher.update(text);
        let digits: Vec<String> = hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self(digits.concat())
    }
}

impl Cache {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder
            .join(&key.0[..2])
            .join(format!("{}.json", key.0))
    }

    /// The reply that was kept under `key`. An entry that cannot be read is none.
    pub(crate) async fn get(&self, key: &Key) -> Option<String> {
        let path = self.path(key);
        tokio::task::spawn_blocking(move || read(&path))
            .await
            .ok()?
    }

    /// Keeps `reply`. A failure costs only the next call.
    pub(crate) async fn put(&self, key: &Key, model: &str, reply: &str) {
        let entry = Entry {
            version: VERSION,
            model: model.to_owned(),
            reply: reply.to_owned(),
        };
        let path = self.path(key);
        let written = tokio::task::spawn_blocking(move || write(&path, &entry)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, folder = %self.folder.display(), "an answer of the judge cannot be kept");
        }
    }
}

fn read(path: &Path) -> Option<String> {
    if std::fs::metadata(path).ok()?.len() > MAX_ENTRY {
        return None;
    }
    let entry: Entry = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (entry.version == VERSION).then_some(entry.reply)
}

fn write(path: &Path, entry: &Entry) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Two runs may write the same entry at once; whoever renames last wins with an equal one.
    let part = folder.join(format!(".{}.part", uuid::Uuid::new_v4().simple()));
    let done = std::fs::write(&part, serde_json::to_vec(entry)?)
        .and_then(|()| std::fs::rename(&part, path));
    if done.is_err() {
        // Best effort: the name is hidden and nobody reads it.
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_code_of_the_markers_makes_no_difference_and_all_else_does() {
        let key = |model: &str, text: &str, code: &str| {
            Key::of(&json!({"model": model, "text": text}), code)
        };
        let one = key("m", "@@c0de BEGIN x", "c0de");
        assert_eq!(one, key("m", "@@4bcd BEGIN x", "4bcd"));
        assert_ne!(one, key("m", "@@c0de BEGIN y", "c0de"));
        assert_ne!(one, key("n", "@@c0de BEGIN x", "c0de"));
    }
}
