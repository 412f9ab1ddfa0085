//! The client request on whose behalf a server is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use http::HeaderMap;
use serde_json::value::RawValue;

use super::session::{Session, log_rank};
use super::sessionless::questions::Questions;
use super::stream::EventStream;
use crate::backend::turns::{Turn, Turns};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, Outcome, Raw, RawObject, RpcError};

/// Where messages of a server go that belong to one client request.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The session of the client; a request without one has a session of its own.
    pub(crate) session: Arc<Session>,
    /// Headers for servers over HTTP.
    pub(crate) headers: HeaderMap,
    /// Changes with each round of a request without a session.
    destination: ArcSwap<Destination>,
    asking: Asking,
    turn: Mutex<TurnState>,
}

/// The turn of the call on its server.
#[derive(Debug, Default)]
struct TurnState {
    /// While the call runs.
    held: Option<Turn>,
    /// Where to take it from, and what the call is about.
    from: Option<(Arc<Turns>, String)>,
    /// Whether the call stands still until the client comes back to it.
    is_waiting: bool,
}

/// A call on a server; its turn ends when this is dropped.
pub(crate) struct Begun(Arc<Caller>);

impl Drop for Begun {
    fn drop(&mut self) {
        *self.0.turn() = TurnState::default();
    }
}

/// How messages reach the client at the moment.
#[derive(Debug)]
pub(crate) struct Destination {
    /// The stream of the request's answer.
    pub(crate) stream: Arc<EventStream>,
    /// The token by which the client wants to hear of progress, as it wrote it.
    pub(crate) progress_token: Option<Raw>,
    /// Which log messages it wants.
    pub(crate) logs: Logs,
}

/// Which log messages a client wants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Logs {
    /// Those that its session was set to.
    OfSession,
    /// Those of this rank and above.
    From(usize),
    /// None.
    Off,
}

/// How a request of a server is put to the client.
#[derive(Debug)]
pub(crate) enum Asking {
    /// As a request on the stream.
    OnStream,
    /// As a part of an answer, for the client to come back with what was asked.
    InRounds(Questions),
    /// Not at all.
    Never,
}

impl Caller {
    pub(crate) fn new(
        session: Arc<Session>,
        headers: HeaderMap,
        destination: Destination,
        asking: Asking,
    ) -> Self {
        Self {
            session,
            headers,
            destination: ArcSwap::from_pointee(destination),
            asking,
            turn: Mutex::default(),
        }
    }

    /// Waits for the turn of the call.
    pub(crate) async fn begin(this: &Arc<Self>, turns: &Arc<Turns>, about: String) -> Begun {
        let turn = turns.take(&this.session.id, &about).await;
        *this.turn() = TurnState {
            held: Some(turn),
            from: Some((turns.clone(), about)),
            is_waiting: false,
        };
        Begun(this.clone())
    }

    /// Lets the call stand still: others go on meanwhile.
    pub(crate) fn pause(&self) {
        let mut turn = self.turn();
        turn.is_waiting = true;
        turn.held = None;
    }

    /// Lets the call go on, in its turn.
    pub(crate) async fn resume(&self) {
        let from = self.turn().from.clone();
        let taken = match from {
            Some((turns, about)) => Some(turns.take(&self.session.id, &about).await),
            None => None,
        };
        let mut turn = self.turn();
        turn.is_waiting = false;
        if turn.from.is_some() {
            turn.held = taken;
        }
    }

    /// Whether the call stands still until its client comes back to it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.turn().is_waiting
    }

    fn turn(&self) -> MutexGuard<'_, TurnState> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what comes from now on somewhere else.
    pub(crate) fn redirect(&self, destination: Destination) {
        self.destination.store(Arc::new(destination));
    }

    /// What the server waits for, where the client is asked in rounds.
    pub(crate) fn questions(&self) -> Option<&Questions> {
        match &self.asking {
            Asking::InRounds(questions) => Some(questions),
            Asking::OnStream | Asking::Never => None,
        }
    }

    pub(crate) fn wants_progress(&self) -> bool {
        self.destination.load().progress_token.is_some()
    }

    /// Passes progress on under the client's own token.
    pub(crate) fn progress(&self, params: &RawValue) {
        let destination = self.destination.load();
        let Some(token) = &destination.progress_token else {
            return;
        };
        let Ok(mut params) = RawObject::parse(Some(params)) else {
            return;
        };
        params.set("progressToken", token.clone());
        destination.stream.push(jsonrpc::notification(
            "notifications/progress",
            Some(&params.to_raw()),
        ));
    }

    /// Passes a log message on, if the client wants its level.
    pub(crate) fn log(&self, params: &RawValue) {
        let destination = self.destination.load();
        let wanted = match destination.logs {
            Logs::OfSession => self.session.log_rank(),
            Logs::From(rank) => Some(rank),
            Logs::Off => return,
        };
        let level = RawObject::parse(Some(params))
            .ok()
            .and_then(|params| params.text("level"))
            .and_then(|level| log_rank(&level));
        if let (Some(level), Some(wanted)) = (level, wanted)
            && level < wanted
        {
            return;
        }
        let text = jsonrpc::notification("notifications/message", Some(params));
        destination.stream.push(text);
    }

    /// Passes any other notification on.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawValue>) {
        let text = jsonrpc::notification(method, params);
        self.destination.load().stream.push(text);
    }

    /// Puts a request of the server, with the server's `id`, to the client.
    pub(crate) async fn ask(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Outcome {
        if let Some((turns, about)) = &self.turn().from {
            turns.learn(about);
        }
        if let Some(refusal) = self.session.refusal(method, params) {
            if let Asking::InRounds(questions) = &self.asking {
                questions.refused(method);
            }
            return Err(refusal);
        }
        match &self.asking {
            Asking::OnStream => {
                let stream = self.destination.load().stream.clone();
                self.session.ask(&stream, method, params).await
            }
            Asking::InRounds(questions) => questions.ask(id, method, params).await,
            Asking::Never => Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("the client cannot be asked for `{method}` during this request"),
            )),
        }
    }
}
