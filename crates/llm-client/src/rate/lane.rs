//! One lane: who is let in, and when.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{RateLimit, WaitNotice, WaitReason};

/// The span in which requests and tokens are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Waits below this are none worth telling.
const NOTICEABLE: Duration = Duration::from_millis(1);

/// The line in front of one server.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The provider or model whose limits these are.
    name: String,
    limit: RateLimit,
    /// Held by the call that is next; the lock is fair, so the line keeps its order.
    line: tokio::sync::Mutex<()>,
    /// Tells the next one that a place is free.
    freed: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_flight: u32,
    /// Most calls in flight after the provider refused some; `None` before that.
    window: Option<u32>,
    paused_until: Option<Instant>,
    /// The calls of the last minute, oldest first; kept only where they are counted.
    recent: VecDeque<Admission>,
    tokens: u64,
    next: u64,
}

#[derive(Debug)]
struct Admission {
    id: u64,
    at: Instant,
    tokens: u64,
}

/// What stands in the way, and when it will be over if that is known.
#[derive(Debug, Clone, Copy)]
struct Obstacle {
    reason: WaitReason,
    until: Option<Instant>,
}

/// A call waited as long as the settings allow.
#[derive(Debug, thiserror::Error)]
#[error("no turn within {limit:?} (`longest_wait_seconds` of the rate limits of `{name}`)")]
pub(crate) struct TooLong {
    name: String,
    limit: Duration,
}

impl Lane {
    pub(super) fn new(name: &str, limit: RateLimit) -> Self {
        Self {
            name: name.to_owned(),
            limit,
            line: tokio::sync::Mutex::default(),
            freed: Notify::new(),
            state: Mutex::default(),
        }
    }

    /// Whether calls are admitted by their tokens.
    pub(crate) const fn counts_tokens(&self) -> bool {
        self.limit.tokens_per_minute.is_some()
    }

    /// Waits until a call of `tokens` may begin.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tokens: u64,
    ) -> Result<(Pass, Option<WaitNotice>), TooLong> {
        let started = Instant::now();
        let limit = self.limit.longest_wait();
        let (pass, reason) = tokio::time::timeout(limit, self.queue(tokens))
            .await
            .map_err(|_| TooLong {
                name: self.name.clone(),
                limit,
            })?;
        let waited = started.elapsed();
        let notice = (waited >= NOTICEABLE).then_some(WaitNotice { waited, reason });
        Ok((pass, notice))
    }

    async fn queue(self: &Arc<Self>, tokens: u64) -> (Pass, WaitReason) {
        let mut last = WaitReason::Concurrency;
        let _first_in_line = self.line.lock().await;
        loop {
            let Obstacle { reason, until } = match self.admit(tokens) {
                Ok(id) => {
                    let pass = Pass {
                        lane: Arc::clone(self),
                        id,
                    };
                    return (pass, last);
                }
                Err(obstacle) => obstacle,
            };
            last = reason;
            match until {
                Some(until) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = self.freed.notified() => {}
                },
                None => self.freed.notified().await,
            }
        }
    }

    /// Lets a call in, or says what stands in the way.
    fn admit(&self, tokens: u64) -> Result<u64, Obstacle> {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(until) = state.paused_until.filter(|until| *until > now) {
            return Err(Obstacle {
                reason: WaitReason::Provider,
                until: Some(until),
            });
        }
        let set = self.limit.concurrency.map_or(u32::MAX, NonZeroU32::get);
        if state.in_flight >= set.min(state.window.unwrap_or(u32::MAX)) {
            return Err(Obstacle {
                reason: WaitReason::Concurrency,
                until: None,
            });
        }
        state.forget_before(now);
        if let Some(obstacle) = self.full_minute(&state, tokens) {
            return Err(obstacle);
        }
        let id = state.next;
        state.next += 1;
        state.in_flight += 1;
        if self.limit.requests_per_minute.is_some() || self.counts_tokens() {
            state.tokens = state.tokens.saturating_add(tokens);
            state.recent.push_back(Admission {
                id,
                at: now,
                tokens,
            });
        }
        Ok(id)
    }

    /// Which limit of the last minute leaves no room for a call of `tokens`.
    fn full_minute(&self, state: &State, tokens: u64) -> Option<Obstacle> {
        let requests = self
            .limit
            .requests_per_minute
            .map(|most| most.get() as usize);
        if requests.is_some_and(|most| state.recent.len() >= most) {
            let oldest = state.recent.front()?;
            return Some(Obstacle {
                reason: WaitReason::Requests,
                until: Some(oldest.at + MINUTE),
            });
        }
        let most = self.limit.tokens_per_minute?.get();
        let mut left = state.tokens;
        let mut until = None;
        for admission in &state.recent {
            if left.saturating_add(tokens) <= most {
                break;
            }
            left = left.saturating_sub(admission.tokens);
            until = Some(admission.at + MINUTE);
        }
        until.map(|until| Obstacle {
            reason: WaitReason::Tokens,
            until: Some(until),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_before(&mut self, now: Instant) {
        while let Some(oldest) = self.recent.front() {
            if now.duration_since(oldest.at) < MINUTE {
                break;
            }
            self.tokens = self.tokens.saturating_sub(oldest.tokens);
            self.recent.pop_front();
        }
    }
}

/// The right to make one attempt; given back when dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    lane: Arc<Lane>,
    id: u64,
}

impl Pass {
    /// The provider answered; `tokens` is what it counted, if it did.
    pub(crate) fn answered(&self, tokens: Option<u64>) {
        let mut state = self.lane.state();
        state.window = state.window.map(|most| most.saturating_add(1));
        let Some(tokens) = tokens else { return };
        let Ok(at) = state.recent.binary_search_by_key(&self.id, |one| one.id) else {
            return;
        };
        let before = std::mem::replace(&mut state.recent[at].tokens, tokens);
        state.tokens = state.tokens.saturating_sub(before).saturating_add(tokens);
    }

    /// The provider refused for being asked too much, and asks to `wait`.
    pub(crate) fn refused(&self, wait: Option<Duration>) {
        let now = Instant::now();
        let mut state = self.lane.state();
        let paused = state.paused_until.is_some_and(|until| until > now);
        if !paused {
            // Calls that were in flight together are refused together: that counts once.
            state.window = Some((state.in_flight / 2).max(1));
        }
        if let Some(until) = wait.and_then(|wait| now.checked_add(wait)) {
            state.paused_until = state.paused_until.max(Some(until));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.lane.state().in_flight -= 1;
        self.lane.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lane(requests: u32, tokens: u64, concurrency: u32) -> Arc<Lane> {
        Arc::new(Lane::new(
            "p",
            RateLimit {
                requests_per_minute: requests.try_into().ok(),
                tokens_per_minute: tokens.try_into().ok(),
                concurrency: concurrency.try_into().ok(),
                longest_wait_seconds: None,
            },
        ))
    }

    /// The second, from the start of the test, at which a call is let in; it takes no time.
    async fn at(lane: &Arc<Lane>, tokens: u64, start: Instant) -> u64 {
        let _pass = lane.enter(tokens).await.unwrap();
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_requests_than_set_begin_within_any_minute() {
        let lane = lane(3, 0, 0);
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..4 {
            times.push(at(&lane, 0, start).await);
            tokio::time::sleep(10 * SECOND).await;
        }
        // At 0, 10, 20; the fourth waits for the first to be a minute old.
        assert_eq!(times, [0, 10, 20, 60]);
        // The next is asked for at 70, when the one of 10 has just left.
        assert_eq!(at(&lane, 0, start).await, 70);
        assert_eq!(at(&lane, 0, start).await, 80);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_counted_as_estimated_and_then_as_told() {
        let lane = lane(0, 100, 0);
        let start = Instant::now();
        let (pass, notice) = lane.enter(90).await.unwrap();
        assert_eq!(notice, None);
        pass.answered(Some(30));
        drop(pass);
        // 30 + 60 fit; 20 more do not before the 30 are a minute old.
        assert_eq!(at(&lane, 60, start).await, 0);
        let (pass, notice) = lane.enter(20).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 60);
        let notice = notice.unwrap();
        assert_eq!(notice.reason, WaitReason::Tokens);
        assert_eq!(notice.waited.as_secs(), 60);
        drop(pass);
        // More than the whole limit: alone, once everything else has left.
        assert_eq!(at(&lane, 500, start).await, 120);
        assert_eq!(at(&lane, 1, start).await, 180);
    }

    #[tokio::test(start_paused = true)]
    async fn the_line_keeps_its_order_and_dropping_out_of_it_blocks_nobody() {
        let lane = lane(0, 0, 1);
        let (first, _) = lane.enter(0).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..5 {
            let (lane, order) = (Arc::clone(&lane), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _pass = lane.enter(0).await.unwrap();
                order.lock().unwrap().push(number);
                tokio::time::sleep(SECOND).await;
            }));
            tokio::task::yield_now().await;
        }
        waiting.remove(2).abort();
        tokio::time::sleep(SECOND).await;
        assert!(order.lock().unwrap().is_empty());
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_holds_everyone_back_and_then_lets_them_in_by_degrees() {
        let lane = lane(0, 0, 0);
        let start = Instant::now();
        let mut passes = Vec::new();
        for _ in 0..8 {
            passes.push(lane.enter(0).await.unwrap().0);
        }
        for pass in &passes {
            pass.refused(Some(20 * SECOND));
        }
        drop(passes);
        let mut inside = Vec::new();
        for _ in 0..4 {
            let (pass, notice) = lane.enter(0).await.unwrap();
            if inside.is_empty() {
                assert_eq!(notice.unwrap().reason, WaitReason::Provider);
            }
            inside.push(pass);
        }
        assert_eq!(start.elapsed().as_secs(), 20);
        // Half of the eight are in flight; a fifth gets in when one of them is answered.
        let fifth = tokio::time::timeout(SECOND, lane.enter(0)).await;
        assert!(fifth.is_err());
        inside[0].answered(None);
        inside.remove(0);
        let two = [
            lane.enter(0).await.unwrap().0,
            lane.enter(0).await.unwrap().0,
        ];
        assert!(tokio::time::timeout(SECOND, lane.enter(0)).await.is_err());
        drop(two);
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_is_longer_than_set() {
        let limit = RateLimit {
            concurrency: 1.try_into().ok(),
            longest_wait_seconds: 30.try_into().ok(),
            ..RateLimit::default()
        };
        let lane = Arc::new(Lane::new("openai", limit));
        let _pass = lane.enter(0).await.unwrap();
        let start = Instant::now();
        let error = lane.enter(0).await.unwrap_err().to_string();
        assert_eq!(start.elapsed().as_secs(), 30);
        assert!(
            error.contains("30s")
                && error.contains("longest_wait_seconds")
                && error.contains("`openai`"),
            "{error}"
        );
    }
}
