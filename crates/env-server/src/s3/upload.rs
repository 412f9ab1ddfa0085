//! Members of a snapshot to objects of S3.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, WriteMultipart};
use snapshot::archive::{Member, MemberKind, Sink};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::client;
use super::jobs::Progress;
use crate::data::transfer::DownloadStream;

/// Bytes of one part. S3 allows 10,000 of them, and those on their way lie in memory.
pub(super) const PART: usize = 8 << 20;

/// Parts of one object on their way side by side.
pub(super) const PARTS: usize = 3;

/// Objects that fit into one request, on their way side by side.
const SIDE_BY_SIDE: usize = 8;

/// Bytes that are handed over at once.
const PIECE: usize = 1 << 20;

/// Objects up to this size are sent in one request.
const WHOLE: u64 = 2 << 20;

enum Piece {
    /// A whole object.
    Whole(String, Bytes),
    /// The beginning of one that comes in pieces.
    Begin(String),
    Data(Bytes),
    End,
}

/// Takes the members of a world on a blocking thread.
pub(super) struct UploadSink {
    prefix: String,
    pieces: mpsc::Sender<Piece>,
}

/// The other end: sends what the sink takes.
pub(super) struct Uploads {
    pieces: mpsc::Receiver<Piece>,
}

/// What was sent.
#[derive(Debug, Default)]
pub(super) struct Uploaded {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Keys that could not be sent, with the reason, after all tries of the client.
    pub(super) failed: Vec<(String, String)>,
}

/// A sink for objects below `prefix`, and its other end.
pub(super) fn uploads(prefix: &str) -> (UploadSink, Uploads) {
    let (sender, receiver) = mpsc::channel(2);
    let sink = UploadSink {
        prefix: prefix.to_owned(),
        pieces: sender,
    };
    (sink, Uploads { pieces: receiver })
}

impl UploadSink {
    fn send(&self, piece: Piece) -> io::Result<()> {
        self.pieces
            .blocking_send(piece)
            .map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the upload ended"))
    }
}

impl Sink for UploadSink {
    fn append(&mut self, member: &Member<'_>, content: &mut dyn Read) -> io::Result<u64> {
        let MemberKind::File(size) = member.kind else {
            return Ok(0);
        };
        let key = format!("{}{}", self.prefix, key_of(member.name));
        // A file that grows is cut at its size, as in an archive; one that shrinks is sent as it is.
        let mut content = content.take(size);
        if size <= WHOLE {
            let mut whole = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            content.read_to_end(&mut whole)?;
            let missing = size - whole.len() as u64;
            self.send(Piece::Whole(key, whole.into()))?;
            return Ok(missing);
        }
        self.send(Piece::Begin(key))?;
        let mut left = size;
        loop {
            let mut piece = BytesMut::zeroed(PIECE);
            let count = content.read(&mut piece)?;
            if count == 0 {
                break;
            }
            left -= count as u64;
            piece.truncate(count);
            self.send(Piece::Data(piece.freeze()))?;
        }
        self.send(Piece::End)?;
        Ok(left)
    }
}

/// The name of a file as part of a key. Control characters and bytes that are not UTF-8, which no key
/// may hold, become `%` and two digits.
fn key_of(name: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut key = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_ascii_control() {
                let _ = write!(key, "%{:02X}", u32::from(letter));
            } else {
                key.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(key, "%{byte:02X}");
        }
    }
    key
}

impl Uploads {
    /// Sends everything until the sink is dropped. One object that fails does not end the others.
    pub(super) async fn run(mut self, store: &Arc<AmazonS3>, progress: &Progress) -> Uploaded {
        let mut done = Uploaded::default();
        let mut running = JoinSet::new();
        while let Some(piece) = self.pieces.recv().await {
            match piece {
                Piece::Whole(key, bytes) => {
                    if running.len() >= SIDE_BY_SIDE
                        && let Some(result) = running.join_next().await
                    {
                        done.count(result.ok(), progress);
                    }
                    let store = Arc::clone(store);
                    running.spawn(async move {
                        let length = bytes.len() as u64;
                        let sent = put(&store, &key, bytes).await;
                        (key, sent.map(|()| length))
                    });
                }
                Piece::Begin(key) => {
                    let sent = self.multipart(store, &key).await;
                    done.count(Some((key, sent)), progress);
                }
                // The rest of an object that failed.
                Piece::Data(_) | Piece::End => {}
            }
        }
        while let Some(result) = running.join_next().await {
            done.count(result.ok(), progress);
        }
        done
    }

    async fn multipart(&mut self, store: &AmazonS3, key: &str) -> Result<u64, String> {
        let mut parts = begin(store, key).await?;
        let mut length = 0;
        loop {
            match self.pieces.recv().await {
                Some(Piece::Data(bytes)) => {
                    length += bytes.len() as u64;
                    if let Err(error) = parts.wait_for_capacity(PARTS).await {
                        give_up(key, parts).await;
                        return Err(client::reason(&error));
                    }
                    parts.put(bytes);
                }
                Some(Piece::End) => break,
                _ => {
                    give_up(key, parts).await;
                    return Err("the file could not be read to its end".to_owned());
                }
            }
        }
        parts
            .finish()
            .await
            .map(|_| length)
            .map_err(|error| client::reason(&error))
    }
}

impl Uploaded {
    fn count(&mut self, result: Option<(String, Result<u64, String>)>, progress: &Progress) {
        match result {
            Some((_, Ok(length))) => {
                self.files += 1;
                self.bytes += length;
                progress.object();
                progress.bytes(length);
            }
            Some((key, Err(reason))) => {
                tracing::warn!(key, reason, "an object cannot be uploaded");
                self.failed.push((key, reason));
            }
            None => self
                .failed
                .push(("?".to_owned(), "the upload ended".to_owned())),
        }
    }
}

async fn put(store: &AmazonS3, key: &str, bytes: Bytes) -> Result<(), String> {
    store
        .put(&path(key)?, bytes.into())
        .await
        .map(drop)
        .map_err(|error| client::reason(&error))
}

/// Begins an object that comes in parts.
pub(super) async fn begin(store: &AmazonS3, key: &str) -> Result<WriteMultipart, String> {
    let upload = store
        .put_multipart(&path(key)?)
        .await
        .map_err(|error| client::reason(&error))?;
    Ok(WriteMultipart::new_with_chunk_size(upload, PART))
}

/// Sends a stream as one object; answers its bytes. An upload that fails is given up, so that its
/// parts are not kept, and paid for.
pub(super) async fn stream(
    store: &AmazonS3,
    key: &str,
    mut pieces: DownloadStream,
    progress: &Progress,
) -> Result<u64, String> {
    let mut parts = begin(store, key).await?;
    let mut size = 0;
    while let Some(piece) = pieces.next().await {
        let ready = match piece {
            Ok(piece) => match parts.wait_for_capacity(PARTS).await {
                Ok(()) => Ok(piece),
                Err(error) => Err(client::reason(&error)),
            },
            Err(error) => Err(error.to_string()),
        };
        match ready {
            Ok(piece) => {
                size += piece.len() as u64;
                progress.bytes(piece.len() as u64);
                parts.put(piece);
            }
            Err(reason) => {
                give_up(key, parts).await;
                return Err(reason);
            }
        }
    }
    let finished = parts.finish().await;
    finished.map_err(|error| client::reason(&error))?;
    progress.object();
    Ok(size)
}

async fn give_up(key: &str, parts: WriteMultipart) {
    if let Err(error) = parts.abort().await {
        tracing::warn!(key, %error, "an upload cannot be given up");
    }
}

fn path(key: &str) -> Result<Path, String> {
    Path::parse(key).map_err(|error| format!("`{key}` cannot be a key: {error}"))
}

#[cfg(test)]
mod tests {
    use super::key_of;

    #[test]
    fn names_that_no_key_may_hold() {
        assert_eq!(key_of("a/ä [1] 100%.txt".as_bytes()), "a/ä [1] 100%.txt");
        assert_eq!(key_of(b"new\nline"), "new%0Aline");
        assert_eq!(key_of(b"x\xff\xfe"), "x%FF%FE");
    }
}
