//! Bytes between the request loop and the blocking threads that pack and unpack.
//!
//! Both ways go through a bounded channel, so that the slower side sets the pace, and both end with
//! an explicit mark: a side that vanishes in the middle is never taken for the end.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Chunks on their way.
const DEPTH: usize = 8;

/// Bytes of a chunk that is written.
const CHUNK: usize = 128 * 1024;

#[derive(Debug)]
enum Piece {
    Data(Bytes),
    End,
    Failed(String),
}

/// From the request loop to a blocking reader.
pub(crate) fn upload() -> (UploadSender, UploadReader) {
    let (sender, receiver) = mpsc::channel(DEPTH);
    let reader = UploadReader {
        receiver,
        current: Bytes::new(),
        ended: false,
    };
    (UploadSender(sender), reader)
}

/// The sending half of an upload. Dropping it without [`end`](Self::end) makes the reader fail.
pub(crate) struct UploadSender(mpsc::Sender<Piece>);

impl UploadSender {
    /// Whether the reader still takes anything.
    pub(crate) async fn send(&self, data: Bytes) -> bool {
        self.0.send(Piece::Data(data)).await.is_ok()
    }

    pub(crate) async fn end(self) {
        // A reader that is gone has said why.
        let _ = self.0.send(Piece::End).await;
    }
}

/// The blocking half of an upload.
pub(crate) struct UploadReader {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

impl Read for UploadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Piece::Data(data)) => self.current = data,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Failed(reason)) => return Err(io::Error::other(reason)),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "the upload ended in the middle",
                    ));
                }
            }
        }
        let count = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// From a blocking writer to a response body.
pub(crate) fn download(stall: Duration) -> (DownloadWriter, DownloadStream) {
    let (sender, receiver) = mpsc::channel(DEPTH);
    let writer = DownloadWriter {
        sender,
        buffer: BytesMut::with_capacity(CHUNK),
        stall,
        runtime: Handle::current(),
    };
    let stream = DownloadStream {
        receiver,
        ended: false,
    };
    (writer, stream)
}

/// The blocking half of a download. Dropping it without [`finish`](Self::finish) breaks the transfer.
pub(crate) struct DownloadWriter {
    sender: mpsc::Sender<Piece>,
    buffer: BytesMut,
    stall: Duration,
    runtime: Handle,
}

impl DownloadWriter {
    /// Ends the transfer: well, or with a failure that the client sees as a broken connection.
    pub(crate) fn finish(mut self, result: Result<(), String>) {
        let last = match result.and_then(|()| self.flush().map_err(|error| error.to_string())) {
            Ok(()) => Piece::End,
            Err(reason) => Piece::Failed(reason),
        };
        // A client that is gone needs no end.
        let _ = self.send(last);
    }

    fn send(&self, piece: Piece) -> io::Result<()> {
        use tokio::sync::mpsc::error::SendTimeoutError;
        self.runtime
            .block_on(self.sender.send_timeout(piece, self.stall))
            .map_err(|error| match error {
                SendTimeoutError::Timeout(_) => io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!(
                        "the client took nothing for {:?} (transfer_stall)",
                        self.stall
                    ),
                ),
                SendTimeoutError::Closed(_) => {
                    io::Error::new(io::ErrorKind::BrokenPipe, "the client went away")
                }
            })
    }
}

impl Write for DownloadWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(CHUNK - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == CHUNK {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, BytesMut::with_capacity(CHUNK));
        self.send(Piece::Data(full.freeze()))
    }
}

/// The body of a download. It ends with an error unless the writer said that all is well.
pub(crate) struct DownloadStream {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
}

impl Stream for DownloadStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = ready!(self.receiver.poll_recv(context));
        let reason = match piece {
            Some(Piece::Data(data)) => return Poll::Ready(Some(Ok(data))),
            Some(Piece::End) => {
                self.ended = true;
                return Poll::Ready(None);
            }
            Some(Piece::Failed(reason)) => reason,
            None => "the writer vanished".to_owned(),
        };
        self.ended = true;
        Poll::Ready(Some(Err(io::Error::other(reason))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;

    const STALL: Duration = Duration::from_secs(60);

    async fn collect(stream: DownloadStream) -> (Vec<u8>, Option<String>) {
        let mut bytes = Vec::new();
        let mut failure = None;
        for item in stream.collect::<Vec<_>>().await {
            match item {
                Ok(data) => bytes.extend_from_slice(&data),
                Err(error) => failure = Some(error.to_string()),
            }
        }
        (bytes, failure)
    }

    #[tokio::test]
    async fn a_download_ends_well_only_when_the_writer_says_so() {
        let big = vec![7; 3 * CHUNK + 5];
        for (result, right) in [
            (Ok(()), None),
            (Err("no".to_owned()), Some("no".to_owned())),
        ] {
            let (mut writer, stream) = download(STALL);
            let content = big.clone();
            let writing = tokio::task::spawn_blocking(move || {
                writer.write_all(&content).unwrap();
                writer.finish(result);
            });
            let (bytes, failure) = collect(stream).await;
            writing.await.unwrap();
            assert_eq!(failure, right);
            if right.is_none() {
                assert_eq!(bytes, big);
            }
        }
        let (writer, stream) = download(STALL);
        drop(writer);
        assert_eq!(
            collect(stream).await.1.as_deref(),
            Some("the writer vanished")
        );
    }

    #[tokio::test]
    async fn a_writer_ends_when_its_client_goes_away_or_sleeps() {
        let (mut writer, stream) = download(STALL);
        drop(stream);
        let gone = tokio::task::spawn_blocking(move || writer.write_all(&vec![0; 2 * CHUNK]));
        assert_eq!(
            gone.await.unwrap().unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );

        let (mut writer, _sleeping) = download(Duration::from_millis(20));
        let slow =
            tokio::task::spawn_blocking(move || writer.write_all(&vec![0; (DEPTH + 2) * CHUNK]));
        assert_eq!(
            slow.await.unwrap().unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
    }

    #[tokio::test]
    async fn an_upload_that_stops_in_the_middle_is_an_error() {
        let read_all = |mut reader: UploadReader| {
            tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).map(|_| bytes)
            })
        };
        let (sender, reader) = upload();
        let reading = read_all(reader);
        assert!(sender.send(Bytes::from_static(b"ab")).await);
        assert!(sender.send(Bytes::from_static(b"c")).await);
        sender.end().await;
        assert_eq!(reading.await.unwrap().unwrap(), b"abc");

        let (sender, reader) = upload();
        let reading = read_all(reader);
        assert!(sender.send(Bytes::from_static(b"ab")).await);
        drop(sender);
        assert_eq!(
            reading.await.unwrap().unwrap_err().kind(),
            io::ErrorKind::ConnectionAborted
        );
    }
}
