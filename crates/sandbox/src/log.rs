//! What an environment prints: all of it into a file, the last lines into memory.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use crate::SandboxError;

/// What is kept of an environment's output.
#[derive(Debug, Clone)]
pub(crate) struct LogLimits {
    /// Bytes in the file.
    pub(crate) bytes: u64,
    /// Lines for error messages.
    pub(crate) last_lines: usize,
    /// Bytes of such a line.
    pub(crate) line_bytes: usize,
}

/// Opens the log at `path` for appending, its folder included.
pub(crate) async fn open(path: &Path) -> Result<tokio::fs::File, SandboxError> {
    let open = async {
        if let Some(folder) = path.parent() {
            tokio::fs::create_dir_all(folder).await?;
        }
        let mut options = tokio::fs::OpenOptions::new();
        options.create(true).append(true).open(path).await
    };
    open.await.map_err(|source| SandboxError::Folder {
        what: "the environment's log",
        path: path.to_owned(),
        source,
    })
}

/// The last lines of an environment, shared between the task that reads them and error messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLog(Arc<Mutex<VecDeque<String>>>);

impl LastLog {
    fn push(&self, line: String, limit: usize) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= limit {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The lines so far, the oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// Reads `output` to its end, appends it to `file` and looks for the address, where somebody waits
/// for that.
///
/// A pipe ends when every holder of its other end is gone.
pub(crate) async fn follow(
    mut output: impl AsyncRead + Unpin,
    mut file: tokio::fs::File,
    last: LastLog,
    mut address: Option<oneshot::Sender<String>>,
    limits: LogLimits,
) {
    let mut lines = Lines::new(limits.line_bytes);
    let mut space = limits.bytes;
    let mut chunk = vec![0; 16 << 10];
    let mut seen = |line: String| {
        if address.is_some()
            && let Some(url) = address_in(&line)
            && let Some(address) = address.take()
        {
            // Nobody waits any more when the start was given up.
            let _ = address.send(url);
        }
        last.push(line, limits.last_lines);
    };
    // A pipe that cannot be read any more has no more to say.
    while let Ok(read @ 1..) = output.read(&mut chunk).await {
        keep(&mut file, &chunk[..read], &mut space, limits.bytes).await;
        lines.add(&chunk[..read], &mut seen);
    }
    lines.finish(&mut seen);
    let _ = file.flush().await;
}

/// Appends `bytes` to the log as far as there is `space`.
///
/// A full disk must not stop the environment, so write errors end the log and nothing else.
async fn keep(file: &mut tokio::fs::File, bytes: &[u8], space: &mut u64, limit: u64) {
    if *space == 0 {
        return;
    }
    let fits = usize::try_from(*space).map_or(bytes.len(), |space| bytes.len().min(space));
    *space -= fits as u64;
    let mut written = file.write_all(&bytes[..fits]).await;
    if *space == 0 {
        let note = format!("\n[the log limit of {limit} bytes is reached; the rest is dropped]\n");
        written = written.and(file.write_all(note.as_bytes()).await);
    }
    if let Err(error) = written.and(file.flush().await) {
        tracing::warn!(%error, "the environment's log cannot be written; the rest is dropped");
        *space = 0;
    }
}

/// The address in a line such as `listening on http://127.0.0.1:8080`.
fn address_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listening on ")?;
    if !rest.starts_with("http://") {
        return None;
    }
    let end = rest
        .find(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | ',' | '`'))
        .unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('/').to_owned())
}

/// Cuts a stream of bytes into lines of bounded length.
struct Lines {
    line: Vec<u8>,
    limit: usize,
}

impl Lines {
    const fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
        }
    }

    fn add(&mut self, mut bytes: &[u8], seen: &mut impl FnMut(String)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            self.finish(seen);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let space = self.limit.saturating_sub(self.line.len());
        self.line
            .extend_from_slice(&bytes[..bytes.len().min(space)]);
    }

    fn finish(&mut self, seen: &mut impl FnMut(String)) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line))
            .trim_end()
            .to_owned();
        if !line.is_empty() {
            seen(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_across_chunks_and_bounded() {
        let mut lines = Lines::new(5);
        let mut all = Vec::new();
        let mut seen = |line: String| all.push(line);
        for chunk in [&b"ab"[..], b"c\r\n\nlonger than", b" five\nend"] {
            lines.add(chunk, &mut seen);
        }
        lines.finish(&mut seen);
        assert_eq!(all, ["abc", "longe", "end"]);
    }

    #[test]
    fn the_address_is_found_in_plain_and_dressed_lines() {
        for line in [
            "listening on http://127.0.0.1:80",
            "2026-01-01T00:00:00Z INFO env: listening on http://127.0.0.1:80/ pid=3",
            "\u{1b}[32mlistening on http://127.0.0.1:80\u{1b}[0m",
            r#"{"message":"listening on http://127.0.0.1:80","level":"info"}"#,
        ] {
            assert_eq!(
                address_in(line).as_deref(),
                Some("http://127.0.0.1:80"),
                "{line}"
            );
        }
        assert_eq!(address_in("not listening on anything"), None);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let last = LastLog::default();
        for line in ["a", "b", "c"] {
            last.push(line.to_owned(), 2);
        }
        assert_eq!(last.lines(), ["b", "c"]);
    }
}
