//! What a server writes to stderr: logged under its name, the last lines kept for error messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, BufReader};
use tokio_util::sync::CancellationToken;

use super::lines::{Line, next_line};

/// The longest part of a line that is kept and logged, in bytes.
const MAX_LINE: usize = 2000;
/// How many of the kept lines an error message quotes.
const QUOTED: usize = 10;

/// The last lines of a stderr.
#[derive(Debug, Clone)]
pub(crate) struct Stderr {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: CancellationToken,
}

impl Stderr {
    /// Reads `pipe` to its end in the background.
    pub(crate) fn drain<R>(server: Arc<str>, pipe: R, keep: usize) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
    {
        let stderr = Self {
            lines: Arc::default(),
            ended: CancellationToken::new(),
        };
        let lines = stderr.lines.clone();
        let ended = stderr.ended.clone().drop_guard();
        tokio::spawn(async move {
            let _ended = ended;
            let mut reader = BufReader::new(pipe);
            while let Ok(Some(line)) = next_line(&mut reader, MAX_LINE).await {
                let text = printable(&match line {
                    Line::Whole(line) => line,
                    Line::TooLong { head, .. } => head,
                });
                tracing::info!(target: "mcp_gateway::stderr", server = %server, "{text}");
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push_back(text);
                if lines.len() > keep {
                    lines.pop_front();
                }
            }
        });
        stderr
    }

    /// Waits until everything was read, but no longer than `limit`: a grandchild may hold the pipe.
    pub(crate) async fn settled(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.ended.cancelled()).await;
    }

    /// The last lines as the end of a sentence; empty when nothing was written.
    pub(crate) fn quoted(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return String::new();
        }
        let skipped = lines.len().saturating_sub(QUOTED);
        let last: Vec<&str> = lines.iter().skip(skipped).map(String::as_str).collect();
        format!("; last lines of stderr:\n{}", last.join("\n"))
    }
}

/// Text without control characters, which could steer a terminal.
fn printable(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .chars()
        .filter(|letter| !letter.is_control() || *letter == '\t')
        .collect()
}
