//! Servers of the first revision that are reached over HTTP (MCP 2024-11-05, "HTTP with SSE"): one
//! event stream from the server, whose first event names the address to which messages are posted.

use std::sync::Arc;

use formats::apps::ServerConfig;
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, header};
use reqwest::{Response, Url};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::peer::{CallError, NoticeSink, Outgoing, Peer};
use super::remote::{DELIVERY, HttpConfigError, Remote, client, content_type};
use super::sse::SseDecoder;
use crate::options::GatewayOptions;

/// How many messages may wait to be sent.
const OUTBOX: usize = 64;

/// A session with a server: it lasts as long as the event stream.
pub(crate) struct EventsLink {
    pub(crate) peer: Peer,
    name: Arc<str>,
    closing: CancellationToken,
}

impl EventsLink {
    /// Opens the event stream in the background; the MCP handshake is the caller's.
    pub(crate) fn open(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        notices: NoticeSink,
    ) -> Result<Self, HttpConfigError> {
        // The stream may be silent between two calls for as long as it likes.
        let remote = Arc::new(Remote::new(name, config, options, client(options))?);
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let peer = Peer::new(name.clone(), outbox, notices);
        let closing = CancellationToken::new();
        tokio::spawn({
            let (peer, closing) = (peer.clone(), closing.clone());
            async move {
                tokio::select! {
                    ended = follow(&remote, &peer, messages, &closing) => {
                        let name = &remote.name;
                        let reason = ended.map_or_else(
                            |error| error.to_string(),
                            |()| format!("server `{name}` closed its event stream"),
                        );
                        tracing::warn!(server = %name, "{reason}");
                        peer.close(&reason);
                        closing.cancel();
                    }
                    () = closing.cancelled() => {}
                }
            }
        });
        Ok(Self {
            peer,
            name: name.clone(),
            closing,
        })
    }

    /// Ends the session: the server sees its stream closed.
    pub(crate) fn stop(self) {
        let reason = format!("the session with server `{}` was ended", self.name);
        self.peer.close(&reason);
    }
}

impl Drop for EventsLink {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Reads the event stream to its end.
async fn follow(
    remote: &Arc<Remote>,
    peer: &Peer,
    messages: mpsc::Receiver<Outgoing>,
    closing: &CancellationToken,
) -> Result<(), CallError> {
    let response = connect(remote).await?;
    let broken = |what: String| CallError::Upstream(format!("server `{}`: {what}", remote.name));
    let mut messages = Some(messages);
    let mut decoder = SseDecoder::new(remote.max_message_bytes);
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| remote.failure(&error))?;
        let events = decoder
            .feed(&piece)
            .map_err(|error| broken(error.to_string()))?;
        for event in events {
            match event.kind.as_str() {
                "message" => peer.receive(event.data.as_bytes(), None),
                "endpoint" => {
                    let Some(messages) = messages.take() else {
                        return Err(broken("a second `endpoint` event".to_owned()));
                    };
                    let address = endpoint(remote, &event.data).map_err(broken)?;
                    let (remote, peer) = (remote.clone(), peer.clone());
                    tokio::spawn(closing.clone().run_until_cancelled_owned(send_messages(
                        remote,
                        peer,
                        address,
                        messages,
                        closing.clone(),
                    )));
                }
                kind => {
                    tracing::debug!(server = %remote.name, kind, "ignored an event");
                }
            }
        }
    }
    Ok(())
}

async fn connect(remote: &Remote) -> Result<Response, CallError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    );
    let request = remote.prepare(remote.client.get(remote.url.clone()), headers);
    let response = request
        .send()
        .await
        .map_err(|error| remote.failure(&error))?;
    let status = response.status();
    if status.is_success() && content_type(&response) == Some("text/event-stream") {
        return Ok(response);
    }
    let body = remote.collect(response).await?;
    Err(remote.bad_status(status, &body))
}

/// The address that an `endpoint` event names. Messages carry the configured credentials, so it has
/// to be of the same origin.
fn endpoint(remote: &Remote, data: &str) -> Result<Url, String> {
    let address = remote
        .url
        .join(data.trim())
        .map_err(|error| format!("its `endpoint` is not an address: {error}"))?;
    if address.origin() == remote.url.origin() {
        Ok(address)
    } else {
        Err("its `endpoint` is of another origin".to_owned())
    }
}

/// Posts messages: requests side by side, all others in order.
async fn send_messages(
    remote: Arc<Remote>,
    peer: Peer,
    address: Url,
    mut messages: mpsc::Receiver<Outgoing>,
    closing: CancellationToken,
) {
    while let Some(message) = messages.recv().await {
        let (request, given_up) = (message.request, message.given_up.clone());
        let (remote, address) = (remote.clone(), address.clone());
        let Some(id) = request else {
            let posted = tokio::time::timeout(DELIVERY, post(remote.clone(), address, message));
            if let Ok(Err(error)) = posted.await {
                tracing::debug!(server = %remote.name, %error, "a message was not delivered");
            }
            continue;
        };
        let (peer, closing) = (peer.clone(), closing.clone());
        tokio::spawn(async move {
            tokio::select! {
                posted = post(remote, address, message) => if let Err(error) = posted {
                    peer.fail(id, error);
                },
                () = given_up.cancelled() => {}
                () = closing.cancelled() => {}
            }
        });
    }
}

/// Posts one message; its answer comes on the event stream.
async fn post(remote: Arc<Remote>, address: Url, message: Outgoing) -> Result<(), CallError> {
    let mut headers = message.headers;
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let request = remote.prepare(remote.client.post(address), headers);
    let response = request
        .body(message.text)
        .send()
        .await
        .map_err(|error| remote.failure(&error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = remote.collect(response).await?;
    Err(remote.bad_status(status, &body))
}
