//! Requests of a server that its caller answers in the next round.
//!
//! A client without a session is not sent requests. Its call is answered with what the server
//! wants to know, and it calls again with the answers (multi round-trip requests, MCP 2026-07-28).
//! Meanwhile the server's call stays in flight.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Outcome, Raw, RawObject, RpcError};

/// How long further questions are waited for after the first: a server may ask several at once.
const GATHER: Duration = Duration::from_millis(20);

/// What a server asked on behalf of one call.
#[derive(Debug)]
pub(crate) struct Questions {
    open: Mutex<Vec<Question>>,
    changed: Notify,
    /// Cancelled when the call has ended.
    given_up: CancellationToken,
    /// Capabilities that a question needed and the client lacks.
    missing: Mutex<Option<&'static str>>,
    answer_timeout: Duration,
}

#[derive(Debug)]
struct Question {
    /// The server's id of its request, as text: a name that the client sees.
    key: String,
    request: Raw,
    answer: oneshot::Sender<Outcome>,
}

impl Questions {
    pub(crate) fn new(answer_timeout: Duration) -> Self {
        Self {
            open: Mutex::default(),
            changed: Notify::new(),
            given_up: CancellationToken::new(),
            missing: Mutex::default(),
            answer_timeout,
        }
    }

    /// Puts a question and waits for its answer.
    pub(crate) async fn ask(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Outcome {
        let mut request = RawObject::default();
        request.set("method", jsonrpc::raw(method));
        request.set(
            "params",
            params.map_or_else(|| jsonrpc::raw(&json!({})), ToOwned::to_owned),
        );
        let (sender, answer) = oneshot::channel();
        let asked = {
            let mut open = self.lock();
            let mut key =
                serde_json::from_str::<String>(id.get()).unwrap_or_else(|_| id.get().to_owned());
            // `1` and `"1"` are two ids.
            while open.iter().any(|other| other.key == key) {
                key.push('\'');
            }
            open.push(Question {
                key: key.clone(),
                request: request.to_raw(),
                answer: sender,
            });
            Asked {
                questions: self,
                key,
            }
        };
        self.changed.notify_waiters();
        let answer = tokio::select! {
            answer = tokio::time::timeout(self.answer_timeout, answer) => answer,
            () = self.given_up.cancelled() => {
                return Err(RpcError::new(INTERNAL_ERROR, "the client's call ended"));
            }
        };
        drop(asked);
        match answer {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(RpcError::new(INTERNAL_ERROR, "the client's call ended")),
            Err(_) => Err(RpcError::new(
                INTERNAL_ERROR,
                format!(
                    "the client did not answer `{method}` within {} s (client_answer_timeout)",
                    self.answer_timeout.as_secs_f64()
                ),
            )),
        }
    }

    /// Answers all that is asked, now and later, with an error.
    pub(crate) fn give_up(&self) {
        self.given_up.cancel();
    }

    /// Remembers that the client lacks what `method` needs.
    pub(crate) fn refused(&self, method: &str) {
        let capability = match method {
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            _ => return,
        };
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = Some(capability);
    }

    /// The capability that the client lacked for the last question.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are questions, and a moment for others asked at the same time.
    pub(crate) async fn gathered(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.lock().is_empty() {
                break;
            }
            changed.await;
        }
        tokio::time::sleep(GATHER).await;
    }

    /// The open questions by name, as `inputRequests` has them; `None` where there are none.
    pub(crate) fn requests(&self) -> Option<Raw> {
        let mut requests = RawObject::default();
        for question in self.lock().iter() {
            requests.set(&question.key, question.request.clone());
        }
        (!requests.is_empty()).then(|| requests.to_raw())
    }

    /// Hands the answers of the client to the server. Names that nobody asked for are ignored, and
    /// what is not answered stays open.
    pub(crate) fn answer(&self, responses: Option<&RawValue>) -> Result<(), RpcError> {
        let Some(responses) = responses else {
            return Ok(());
        };
        let responses = Self::check(responses)?;
        let answered: Vec<_> = {
            let mut open = self.lock();
            open.extract_if(.., |question| responses.contains_key(&question.key))
                .collect()
        };
        for question in answered {
            if let Some(response) = responses.get(&question.key) {
                // The server may have gone in the meantime.
                let _ = question.answer.send(Ok(response.clone()));
            }
        }
        Ok(())
    }

    /// Answers of a client: objects by name.
    pub(super) fn check(responses: &RawValue) -> Result<HashMap<String, Raw>, RpcError> {
        let invalid =
            |what: &str| RpcError::new(INVALID_PARAMS, format!("invalid parameters: {what}"));
        let responses: HashMap<String, Raw> = serde_json::from_str(responses.get())
            .map_err(|_| invalid("`inputResponses` is not an object"))?;
        for (name, response) in &responses {
            if !response.get().starts_with('{') {
                return Err(invalid(&format!(
                    "`inputResponses.{name}` is not an object"
                )));
            }
        }
        Ok(responses)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is taken back when nobody waits for its answer any more.
struct Asked<'a> {
    questions: &'a Questions,
    key: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.questions.lock().retain(|one| one.key != self.key);
    }
}
