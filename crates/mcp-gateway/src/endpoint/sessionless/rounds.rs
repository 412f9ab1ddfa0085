//! Calls that take several rounds: each ends with the result, or with what the server wants to
//! know before there is one.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::results;
use crate::endpoint::caller::Caller;
use crate::endpoint::stream::EventStream;
use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Outcome, Raw, RawObject, RpcError};

/// A call that is being run for a client. Dropping it cancels the call and what its server asked.
pub(super) struct Exchange {
    pub(super) caller: Arc<Caller>,
    pub(super) method: String,
    /// A hash of what the call is about, so that its state is not used for another.
    pub(super) about: u64,
    pub(super) answer: oneshot::Receiver<Outcome>,
    pub(super) _cancel: DropGuard,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(questions) = self.caller.questions() {
            questions.give_up();
        }
    }
}

/// Calls that wait for their clients to come back, by `requestState`.
#[derive(Default)]
pub(crate) struct Rounds(Arc<Mutex<HashMap<String, Waiting>>>);

struct Waiting {
    exchange: Exchange,
    /// Ends the timer that gives the call up.
    _taken: DropGuard,
}

/// The limits of calls that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitLimits {
    pub(super) count: usize,
    pub(super) time: Duration,
}

impl Rounds {
    /// The call that `state` stands for, if it is the same call.
    pub(super) fn take(&self, state: &str, method: &str, about: u64) -> Result<Exchange, RpcError> {
        let mut all = lock(&self.0);
        let is_same = all.get(state).is_some_and(|waiting| {
            waiting.exchange.method == method && waiting.exchange.about == about
        });
        if !is_same {
            return Err(RpcError::new(
                INVALID_PARAMS,
                "invalid parameters: `requestState` is of no call that waits for this client",
            ));
        }
        all.remove(state)
            .map(|waiting| waiting.exchange)
            .ok_or_else(|| RpcError::new(INTERNAL_ERROR, "the call has ended"))
    }

    /// Keeps a call until its client comes back, and returns its state: a random text, so that
    /// nobody can guess or change one.
    fn keep(&self, exchange: Exchange, limits: WaitLimits) -> Result<String, RpcError> {
        exchange.caller.pause();
        let state = uuid::Uuid::new_v4().simple().to_string();
        let taken = CancellationToken::new();
        {
            let mut all = lock(&self.0);
            if all.len() >= limits.count {
                return Err(RpcError::new(
                    INTERNAL_ERROR,
                    format!(
                        "{} calls wait for their clients, the limit is {} (max_waiting_calls)",
                        all.len(),
                        limits.count
                    ),
                ));
            }
            let waiting = Waiting {
                exchange,
                _taken: taken.clone().drop_guard(),
            };
            all.insert(state.clone(), waiting);
        }
        let (all, key) = (Arc::downgrade(&self.0), state.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(limits.time) => {}
                () = taken.cancelled() => return,
            }
            if let Some(all) = all.upgrade() {
                lock(&all).remove(&key);
            }
        });
        Ok(state)
    }

    /// Gives all calls up.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds").finish_non_exhaustive()
    }
}

fn lock(all: &Mutex<HashMap<String, Waiting>>) -> MutexGuard<'_, HashMap<String, Waiting>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One round: a request over HTTP and its answer.
pub(super) struct Round {
    pub(super) id: Raw,
    pub(super) stream: Arc<EventStream>,
    /// The HTTP status of the answer, set before it is on the stream.
    pub(super) status: Arc<OnceLock<StatusCode>>,
    /// Cancelled when the client has gone, which cancels the call.
    pub(super) gone: CancellationToken,
}

impl Round {
    /// Runs the round to its end.
    pub(super) async fn run(self, mut exchange: Exchange, rounds: &Rounds, limits: WaitLimits) {
        enum Next {
            Answer(Outcome),
            Asked(Raw),
        }
        let next = loop {
            let gathered = async {
                match exchange.caller.questions() {
                    Some(questions) => {
                        questions.gathered().await;
                        questions.requests()
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.gone.cancelled() => return,
                outcome = &mut exchange.answer => break Next::Answer(outcome.unwrap_or_else(|_| {
                    Err(RpcError::new(INTERNAL_ERROR, "the call was interrupted"))
                })),
                // The server may have taken its questions back.
                requests = gathered => if let Some(requests) = requests {
                    break Next::Asked(requests);
                },
            }
        };
        let outcome = match next {
            Next::Answer(outcome) => {
                results::complete(&exchange.method, outcome, exchange.caller.questions())
            }
            Next::Asked(requests) => rounds
                .keep(exchange, limits)
                .map(|state| results::input_required(requests, &state)),
        };
        self.finish(&outcome);
    }

    pub(super) fn finish(&self, outcome: &Outcome) {
        // Set once: a round ends once.
        let _ = self.status.set(results::status(outcome));
        self.stream.finish(jsonrpc::response(&self.id, outcome));
    }
}

/// A hash of what a call is about, as far as its rounds have to have it in common.
pub(super) fn about(params: &RawObject) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for key in ["name", "uri", "arguments"] {
        // As values: white space and escapes may differ.
        params.read::<serde_json::Value>(key).hash(&mut hasher);
    }
    hasher.finish()
}
