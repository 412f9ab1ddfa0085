//! Lines of a pipe, with a limit on their length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// How much of a line that is too long is kept at either end.
const KEPT: usize = 512;

/// One line without its line break.
#[derive(Debug)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// A line above the limit: how long it was, how it began and ended.
    TooLong {
        bytes: usize,
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

/// Reads the next line; `None` at the end. Not cancellation-safe.
pub(crate) async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    limit: usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut over: Option<Line> = None;
    let mut read_any = false;
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(read_any.then(|| over.unwrap_or(Line::Whole(line))));
        }
        read_any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        match &mut over {
            None if line.len() + part.len() <= limit => line.extend_from_slice(part),
            None => {
                line.extend_from_slice(part);
                let bytes = line.len();
                let tail = line[bytes.saturating_sub(KEPT)..].to_vec();
                let mut head = std::mem::take(&mut line);
                head.truncate(KEPT);
                over = Some(Line::TooLong { bytes, head, tail });
            }
            Some(Line::TooLong { bytes, tail, .. }) => {
                *bytes += part.len();
                tail.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
                tail.drain(..tail.len().saturating_sub(KEPT));
            }
            Some(Line::Whole(_)) => {}
        }
        let used = end.map_or(chunk.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(over.unwrap_or(Line::Whole(line))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = format!("short\n{}END\nlast", "x".repeat(5000));
        let mut reader = tokio::io::BufReader::with_capacity(64, text.as_bytes());
        let mut next = async || next_line(&mut reader, 1000).await.unwrap();
        assert!(matches!(next().await, Some(Line::Whole(line)) if line == b"short"));
        let Some(Line::TooLong { bytes, head, tail }) = next().await else {
            panic!("too long");
        };
        assert_eq!((bytes, head.len()), (5003, 512));
        assert!(tail.ends_with(b"xEND"));
        assert!(matches!(next().await, Some(Line::Whole(line)) if line == b"last"));
        assert!(next().await.is_none());
    }
}
