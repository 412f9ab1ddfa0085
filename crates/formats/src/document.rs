//! Reading and writing JSON documents on disk, with errors that name the file, the place and the
//! rule.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::owner::Owner;

/// Why a document could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file is missing or cannot be read.
    #[error("cannot read {what} `{path}`: {source}")]
    Read {
        /// What the file is for, in words.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than this program is willing to load.
    #[error("{what} `{path}` has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// What the file is for, in words.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The text is not JSON, or not of the documented shape.
    #[error("{what} `{path}`, line {line}, column {column}: {reason}")]
    Invalid {
        /// What the file is for, in words.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Line of the first byte that does not fit, counted from 1.
        line: usize,
        /// Column of that byte, counted from 1.
        column: usize,
        /// The rule that it breaks.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write {what} `{path}`: {source}")]
    Write {
        /// What the file is for, in words.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl DocumentError {
    /// Who has to act: input files belong to whoever wrote them, a failed write to the machine.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Read { .. } | Self::TooLarge { .. } | Self::Invalid { .. } => {
                Owner::Configuration
            }
            Self::Write { .. } => Owner::Infrastructure,
        }
    }
}

/// The largest JSON document that [`read`] loads: 1 GiB. Trajectories with many pictures reach
/// hundreds of megabytes; anything above is a mistake.
pub const MAX_DOCUMENT_BYTES: u64 = 1 << 30;

/// Reads the JSON document at `path`.
///
/// `what` says in words what the file is for ("verifiers", "agent configuration"); it opens every
/// error message.
///
/// # Errors
/// [`DocumentError`] with the path, and for malformed content the line and column.
pub fn read<T: DeserializeOwned>(what: &'static str, path: &Path) -> Result<T, DocumentError> {
    let read_error = |source| DocumentError::Read {
        what,
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(read_error)?.len();
    if bytes > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge {
            what,
            path: path.to_owned(),
            bytes,
            limit: MAX_DOCUMENT_BYTES,
        });
    }
    let text = std::fs::read(path).map_err(read_error)?;
    // A byte order mark is legal in files written by some editors and not JSON.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(text).map_err(|error| invalid(what, path, &error))
}

/// The [`DocumentError`] for a parse error of `serde_json`.
fn invalid(what: &'static str, path: &Path, error: &serde_json::Error) -> DocumentError {
    let text = error.to_string();
    // serde_json appends the position, which the message already carries in front.
    let reason = match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    };
    DocumentError::Invalid {
        what,
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        reason,
    }
}

/// Writes `document` to `path` as JSON with two spaces of indentation and a final newline.
///
/// The text goes to a temporary file beside `path`, which then takes its name: a reader sees the
/// old document or the new one, never a part. Missing parent folders are made.
///
/// # Errors
/// [`DocumentError::Write`] with the path.
pub fn write<T: Serialize>(
    what: &'static str,
    path: &Path,
    document: &T,
) -> Result<(), DocumentError> {
    write_atomically(path, |file| {
        serde_json::to_writer_pretty(&mut *file, document)?;
        file.write_all(b"\n")
    })
    .map_err(|source| DocumentError::Write {
        what,
        path: path.to_owned(),
        source,
    })
}

/// Fills a temporary file beside `path` with `fill` and then gives it that name.
///
/// # Errors
/// Whatever the system or `fill` said; the temporary file is gone then.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut std::io::BufWriter<std::fs::File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The process id keeps two programs that write the same document from sharing a file.
    name.push(format!(".{}.partial", std::process::id()));
    let partial = folder.join(name);
    let result = (|| {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&partial)?);
        fill(&mut file)?;
        file.into_inner()
            .map_err(std::io::IntoInnerError::into_error)?
            .sync_all()?;
        std::fs::rename(&partial, path)
    })();
    if result.is_err() {
        // Best effort: the failure that matters is the one returned.
        let _ = std::fs::remove_file(&partial);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("formats-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_missing_file_is_named_with_its_purpose() {
        let error = read::<Vec<u8>>("verifiers", Path::new("/no/such/verifiers.json")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read verifiers `/no/such/verifiers.json`: No such file or directory (os error 2)"
        );
        assert_eq!(error.owner(), Owner::Configuration);
    }

    #[test]
    fn malformed_json_is_located() {
        let path = folder("malformed").join("x.json");
        std::fs::write(&path, "{\n  \"a\": 1,\n  oops\n}").unwrap();
        let error = read::<crate::Object>("agent configuration", &path).unwrap_err();
        let DocumentError::Invalid { line, column, .. } = &error else {
            unreachable!("{error}");
        };
        assert_eq!((*line, *column), (3, 3));
        assert!(
            error
                .to_string()
                .ends_with("line 3, column 3: key must be a string"),
            "{error}"
        );
    }

    #[test]
    fn writing_replaces_and_leaves_no_partial_file() {
        let folder = folder("write").join("deep/er");
        let path = folder.join("x.json");
        write("test", &path, &[1, 2]).unwrap();
        write("test", &path, &[3]).unwrap();
        assert_eq!(read::<Vec<u8>>("test", &path).unwrap(), [3]);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let path = folder("bom").join("x.json");
        std::fs::write(&path, b"\xef\xbb\xbf[7]").unwrap();
        assert_eq!(read::<Vec<u8>>("test", &path).unwrap(), [7]);
    }
}
