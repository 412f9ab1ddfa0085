//! Large parts of a saved trajectory, kept beside it in files named by their SHA-256.
//!
//! A trajectory with many pictures or long results can be hundreds of megabytes of JSON. With a
//! [`BlobFolder`] it holds references, and the same picture is kept once. It is off unless asked
//! for: readers that know nothing of it see shortened texts. Ours read with [`read_trajectory`],
//! which puts everything back.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::chat::{Block, Content, KnownBlock, Message};
use crate::document::{self, DocumentError};
use crate::trajectory::Trajectory;

/// The name of the folder beside a trajectory.
pub const FOLDER: &str = "blobs";

/// The key of a message or a text block whose text is kept in a file, with the file's name.
const KEY: &str = "blob";

/// The scheme of a picture that is kept in a file: `blob:<sha-256 in hex>`.
const SCHEME: &str = "blob:";

/// How much of a text stays in the trajectory, in characters.
const HEAD: usize = 200;

/// What a document is called in errors.
const WHAT: &str = "trajectory";

/// Reads the trajectory at `path`, whole: what was kept in the folder [`FOLDER`] beside it is put
/// back.
///
/// # Errors
/// [`DocumentError`] when the trajectory or one of the files that it names cannot be read.
pub fn read_trajectory(path: &Path) -> Result<Trajectory, DocumentError> {
    let mut trajectory = document::read(WHAT, path)?;
    BlobFolder::beside(path)
        .resolve(&mut trajectory)
        .map_err(|source| DocumentError::Read {
            what: WHAT,
            path: path.to_owned(),
            source,
        })?;
    Ok(trajectory)
}

/// Writes `trajectory` to `path`, with pictures and long texts in the folder [`FOLDER`] beside it.
///
/// # Errors
/// [`DocumentError`] when one of the files cannot be written.
pub fn write_trajectory(path: &Path, mut trajectory: Trajectory) -> Result<(), DocumentError> {
    BlobFolder::beside(path)
        .store(&mut trajectory)
        .map_err(|source| DocumentError::Write {
            what: WHAT,
            path: path.to_owned(),
            source,
        })?;
    document::write(WHAT, path, &trajectory)
}

/// A folder of files, each named by the SHA-256 of its content in hex.
#[derive(Debug, Clone)]
pub struct BlobFolder {
    path: PathBuf,
    /// Smallest part that is kept in a file, in bytes. Default 16 KiB.
    pub least_bytes: usize,
}

impl BlobFolder {
    /// The folder at `path`, made when something is to be kept.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            least_bytes: 16 * 1024,
        }
    }

    /// The folder beside the trajectory at `path`.
    #[must_use]
    pub fn beside(path: &Path) -> Self {
        Self::new(path.with_file_name(FOLDER))
    }

    /// Moves pictures and long texts of `trajectory` into the folder. The last message stays whole:
    /// it is the answer.
    ///
    /// # Errors
    /// When a file cannot be written; then some parts are references and their files are there.
    pub fn store(&self, trajectory: &mut Trajectory) -> io::Result<()> {
        let before_last = trajectory.messages.len().saturating_sub(1);
        for message in trajectory.messages.iter_mut().take(before_last) {
            match &mut message.content {
                Some(Content::Text(text)) => {
                    if let Some(name) = self.shorten(text)? {
                        message.extra.insert(KEY.to_owned(), name.into());
                    }
                }
                Some(Content::Blocks(blocks)) => {
                    for block in blocks {
                        self.store_block(block)?;
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    fn store_block(&self, block: &mut Block) -> io::Result<()> {
        match block {
            Block::Known(KnownBlock::Text { text, extra, .. }) => {
                if let Some(name) = self.shorten(text)? {
                    extra.insert(KEY.to_owned(), name.into());
                }
            }
            Block::Known(KnownBlock::ImageUrl { image_url, .. })
                if image_url.url.starts_with("data:")
                    && image_url.url.len() >= self.least_bytes =>
            {
                image_url.url = format!("{SCHEME}{}", self.keep(image_url.url.as_bytes())?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts the parts back that [`BlobFolder::store`] moved. Keys of other writers that only look
    /// like its own stay.
    ///
    /// # Errors
    /// When a file cannot be read or its content is not what its name says.
    pub fn resolve(&self, trajectory: &mut Trajectory) -> io::Result<()> {
        for message in &mut trajectory.messages {
            self.resolve_message(message)?;
        }
        Ok(())
    }

    fn resolve_message(&self, message: &mut Message) -> io::Result<()> {
        match &mut message.content {
            Some(Content::Text(text)) => {
                if let Some(name) = take_name(&mut message.extra) {
                    *text = self.read(&name)?;
                }
            }
            Some(Content::Blocks(blocks)) => {
                for block in blocks {
                    match block {
                        Block::Known(KnownBlock::Text { text, extra, .. }) => {
                            if let Some(name) = take_name(extra) {
                                *text = self.read(&name)?;
                            }
                        }
                        Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
                            let name = image_url.url.strip_prefix(SCHEME);
                            if let Some(name) = name.filter(|name| is_name(name)) {
                                image_url.url = self.read(name)?;
                            }
                        }
                        _ => {}
                    }
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Keeps a long text and leaves its beginning; gives the name of the file.
    fn shorten(&self, text: &mut String) -> io::Result<Option<String>> {
        if text.len() < self.least_bytes {
            return Ok(None);
        }
        let name = self.keep(text.as_bytes())?;
        let head: String = text.chars().take(HEAD).collect();
        *text = format!("{head}… [{} bytes, kept in the file {name}]", text.len());
        Ok(Some(name))
    }

    fn keep(&self, content: &[u8]) -> io::Result<String> {
        let name = name_of(content);
        let path = self.path.join(&name);
        if !path.exists() {
            std::fs::create_dir_all(&self.path)?;
            // Whole or not at all, also when two trajectories keep the same part at once.
            document::write_atomically(&path, |file| file.write_all(content))?;
        }
        Ok(name)
    }

    fn read(&self, name: &str) -> io::Result<String> {
        let invalid = |reason: &str| {
            let message = format!("kept part `{name}` {reason}");
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let path = self.path.join(name);
        let content = std::fs::read(&path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot read `{}`: {error}", path.display()),
            )
        })?;
        if name_of(&content) != name {
            return Err(invalid("is not what its name says"));
        }
        String::from_utf8(content).map_err(|_| invalid("is no text"))
    }

    /// Where the files are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Takes the name of a kept text out of the keys of its holder.
fn take_name(extra: &mut crate::Object) -> Option<String> {
    let name = extra.get(KEY).and_then(Value::as_str)?;
    if !is_name(name) {
        return None;
    }
    let name = name.to_owned();
    extra.remove(KEY);
    Some(name)
}

/// Whether `name` is one that [`name_of`] gives; no other is ever looked for.
fn is_name(name: &str) -> bool {
    name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn name_of(content: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(64);
    for byte in Sha256::digest(content) {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trajectory() -> Trajectory {
        let long = "wörd ".repeat(10_000);
        let picture = format!("data:image/png;base64,{}", "A".repeat(40_000));
        let mut looked = Message::user("");
        looked.content = Some(
            vec![
                Block::image_url(picture.as_str()),
                Block::text(long.as_str()),
                Block::text("short"),
            ]
            .into(),
        );
        let messages = vec![
            Message::user(long.as_str()),
            looked.clone(),
            looked,
            Message::tool("c", "t", "short"),
            Message::assistant(long.as_str()),
        ];
        serde_json::from_value(json!({
            "messages": messages, "status": "completed", "time_elapsed": 1.0
        }))
        .unwrap()
    }

    #[test]
    fn large_parts_are_kept_once_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::new(folder.path().join("blobs"));
        let whole = trajectory();
        let mut small = whole.clone();
        blobs.store(&mut small).unwrap();
        assert_eq!(std::fs::read_dir(blobs.path()).unwrap().count(), 2);
        let written = serde_json::to_string(&small).unwrap();
        assert!(
            written.len() < 70_000,
            "only the answer is whole: {}",
            written.len()
        );
        assert_eq!(small.messages[4], whole.messages[4]);
        assert!(small.messages[0].text().starts_with("wörd wörd"));
        let mut read: Trajectory = serde_json::from_str(&written).unwrap();
        blobs.resolve(&mut read).unwrap();
        assert_eq!(read, whole);
    }

    #[test]
    fn a_file_that_was_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::new(folder.path());
        let mut small = trajectory();
        blobs.store(&mut small).unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::write(entry.unwrap().path(), "other").unwrap();
        }
        let error = blobs.resolve(&mut small.clone()).unwrap_err();
        assert!(
            error.to_string().contains("not what its name says"),
            "{error}"
        );
    }

    #[test]
    fn keys_of_others_stay_as_they_are_and_no_other_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trajectory.json");
        let mut message = Message::user("hello");
        message.extra.insert(KEY.into(), "../../etc/passwd".into());
        let mut picture = Message::user("");
        picture.content = Some(vec![Block::image_url("blob:https://example.org/5")].into());
        let mut other = trajectory();
        other.messages = vec![message, picture];
        document::write(WHAT, &path, &other).unwrap();
        assert_eq!(read_trajectory(&path).unwrap(), other);
    }

    #[test]
    fn a_trajectory_is_written_with_its_folder_and_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trajectory.json");
        let whole = trajectory();
        write_trajectory(&path, whole.clone()).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 70_000);
        assert_eq!(read_trajectory(&path).unwrap(), whole);
        std::fs::remove_dir_all(folder.path().join(FOLDER)).unwrap();
        let error = read_trajectory(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read trajectory") && error.contains("blobs"),
            "{error}"
        );
        // Nothing large, no folder.
        let mut short = trajectory();
        short.messages.truncate(1);
        write_trajectory(&path, short).unwrap();
        assert!(!folder.path().join(FOLDER).exists());
    }
}
