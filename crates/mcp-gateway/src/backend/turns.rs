//! Whose turn it is on a server that several clients share.
//!
//! What such a server asks over its one connection does not say for which call. So a call that is
//! known to ask (its tool has asked before) does not run beside a call of another client: then
//! there is only one client whom the question can be for. Calls wait for each other no longer than
//! the patience; after that they run side by side, and a question between them is refused.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How many tools are remembered to ask.
const MAX_KNOWN: usize = 1000;

/// The calls on one server.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Notify,
    patience: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Methods with the name or address of what has asked.
    asking: HashSet<String>,
    running: HashMap<u64, Running>,
    next: u64,
    waiting: usize,
}

#[derive(Debug)]
struct Running {
    client: String,
    asks: bool,
}

/// The turn of one call; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Turns {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            patience,
        }
    }

    /// Waits until `client` may call what is named by `about`.
    pub(crate) async fn take(self: &Arc<Self>, client: &str, about: &str) -> Turn {
        if let Some(turn) = self.try_take(client, about) {
            return turn;
        }
        let admitted = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(turn) = self.try_take(client, about) {
                    return turn;
                }
                changed.await;
            }
        };
        let waiting = Waiting::new(self);
        let turn = tokio::time::timeout(self.patience, admitted).await;
        drop(waiting);
        match turn {
            Ok(turn) => turn,
            Err(_) => self.enter(&mut self.lock(), client, about),
        }
    }

    /// Remembers that what is named by `about` asks, if nothing else can have asked.
    pub(crate) fn learn(&self, about: &str) {
        let mut state = self.lock();
        if state.running.len() == 1 && state.asking.len() < MAX_KNOWN {
            state.asking.insert(about.to_owned());
        }
    }

    fn try_take(self: &Arc<Self>, client: &str, about: &str) -> Option<Turn> {
        let mut state = self.lock();
        let asks = state.asking.contains(about);
        let mut others = state.running.values().filter(|one| one.client != client);
        let is_free = others.all(|other| !asks && !other.asks);
        is_free.then(|| self.enter(&mut state, client, about))
    }

    fn enter(self: &Arc<Self>, state: &mut State, client: &str, about: &str) -> Turn {
        let number = state.next;
        state.next += 1;
        let running = Running {
            client: client.to_owned(),
            asks: state.asking.contains(about),
        };
        state.running.insert(number, running);
        Turn {
            turns: self.clone(),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.running.remove(&self.number);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.turns.changed.notify_waiters();
        }
    }
}

struct Waiting<'a>(&'a Turns);

impl<'a> Waiting<'a> {
    fn new(turns: &'a Turns) -> Self {
        turns.lock().waiting += 1;
        Self(turns)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than a test takes that does not wait for it.
    const LONG: Duration = Duration::from_secs(60);

    fn waits(turns: &Arc<Turns>, client: &'static str) -> tokio::task::JoinHandle<Turn> {
        let turns = turns.clone();
        tokio::spawn(async move { turns.take(client, "tool").await })
    }

    async fn is_waiting(call: &tokio::task::JoinHandle<Turn>) -> bool {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        !call.is_finished()
    }

    #[tokio::test]
    async fn a_call_that_asks_runs_alone_among_the_clients() {
        let turns = Arc::new(Turns::new(LONG));
        let first = turns.take("a", "tool").await;
        turns.learn("tool");
        drop(first);
        let other = turns.take("b", "other").await;
        let asking = waits(&turns, "a");
        assert!(is_waiting(&asking).await);
        drop(other);
        let asking = asking.await.unwrap();
        // Its own client's calls go on beside it, those of others wait.
        let own = turns.take("a", "other").await;
        let beside = waits(&turns, "b");
        assert!(is_waiting(&beside).await);
        drop((asking, own));
        drop(beside.await.unwrap());
    }

    #[tokio::test]
    async fn nothing_is_learned_of_two_calls_and_nobody_waits_for_ever() {
        let turns = Arc::new(Turns::new(Duration::from_millis(50)));
        let first = turns.take("a", "tool").await;
        let second = turns.take("b", "tool").await;
        turns.learn("tool");
        assert!(!is_waiting(&waits(&turns, "c")).await);
        drop((first, second));
        let alone = turns.take("a", "tool").await;
        turns.learn("tool");
        drop(alone);
        let held = turns.take("a", "tool").await;
        let impatient = tokio::time::timeout(LONG, turns.take("b", "tool")).await;
        drop((held, impatient.unwrap()));
    }
}
