//! Waiting, on a clock that the test moves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use futures::FutureExt;
use futures::future::BoxFuture;
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, Model, Provider, Reply,
    RetryNotice, RetryPolicy,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Fails as told, then answers. Every attempt takes a while.
struct Failing {
    failures: Mutex<Vec<ChatError>>,
    takes: Duration,
}

impl Provider for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn send<'a>(&'a self, _: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        async move {
            tokio::time::sleep(self.takes).await;
            match self.failures.lock().unwrap().pop() {
                Some(error) => Err(error),
                None => Ok(Reply::new("m", Message::assistant("done"))),
            }
        }
        .boxed()
    }
}

fn failure(kind: ChatErrorKind, retry_after: Option<u64>) -> ChatError {
    let mut error = ChatError::new(kind, "failing", "told to");
    error.retry_after = retry_after.map(Duration::from_secs);
    error
}

struct Outcome {
    answer: Result<ChatResponse, ChatError>,
    waits: Vec<Duration>,
    took: Duration,
}

async fn call(policy: RetryPolicy, takes: Duration, failures: Vec<ChatError>) -> Outcome {
    let provider = Arc::new(Failing {
        failures: Mutex::new(failures.into_iter().rev().collect()),
        takes,
    });
    let model = Model::new("failing/m", provider).with_retry(policy);
    let request = ChatRequest {
        messages: &[],
        tools: &[],
        extra_args: &Object::new(),
        timeout: Duration::from_secs(600),
        labels: CallLabels::default(),
    };
    let started = Instant::now();
    let waits = Mutex::new(Vec::new());
    let answer = model
        .chat(request, &|notice| {
            let mut waits = waits.lock().unwrap();
            waits.push(notice.wait);
            assert_eq!(notice.attempt as usize, waits.len());
        })
        .await;
    Outcome {
        answer,
        waits: waits.into_inner().unwrap(),
        took: started.elapsed(),
    }
}

fn policy() -> RetryPolicy {
    RetryPolicy {
        attempts: 10,
        first_wait: Duration::from_secs(1),
        longest_wait: Duration::from_secs(60),
        total: Duration::from_secs(1800),
    }
}

#[tokio::test(start_paused = true)]
async fn waits_double_up_to_the_longest_and_are_spread() {
    let second = Duration::from_secs(1);
    let mut spread = false;
    for _ in 0..5 {
        let failures = vec![failure(ChatErrorKind::Server, None); 9];
        let outcome = call(policy(), second, failures).await;
        let answer = outcome.answer.unwrap();
        assert_eq!(answer.attempts, 10);
        let most = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(Duration::from_secs);
        assert_eq!(outcome.waits.len(), 9);
        for (wait, most) in outcome.waits.iter().zip(most) {
            assert!(*wait <= most, "{wait:?} of {most:?}");
        }
        spread |= outcome.waits.windows(2).any(|pair| pair[1] < pair[0]);
        let waited: Duration = outcome.waits.iter().sum();
        // The clock counts whole milliseconds.
        let expected = waited + 10 * second;
        assert!(outcome.took >= expected && outcome.took < expected + second);
        assert_eq!(answer.duration, outcome.took);
    }
    assert!(spread, "45 random waits never fell");
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_asks_for_is_waited() {
    let failures = vec![
        failure(ChatErrorKind::RateLimit, Some(7)),
        failure(ChatErrorKind::Overloaded, Some(0)),
        failure(ChatErrorKind::RateLimit, Some(90)),
    ];
    let outcome = call(policy(), Duration::ZERO, failures).await;
    assert_eq!(outcome.answer.unwrap().attempts, 4);
    assert_eq!(outcome.waits, [7, 0, 60].map(Duration::from_secs));
}

#[tokio::test(start_paused = true)]
async fn the_last_error_comes_out_when_the_attempts_are_used_up() {
    let failures = vec![failure(ChatErrorKind::Connection, None); 20];
    let policy = RetryPolicy {
        attempts: 3,
        ..policy()
    };
    let outcome = call(policy, Duration::ZERO, failures).await;
    assert_eq!(outcome.answer.unwrap_err().kind, ChatErrorKind::Connection);
    assert_eq!(outcome.waits.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_total_is_never_exceeded() {
    let total = Duration::from_secs(100);
    let policy = RetryPolicy { total, ..policy() };
    // Each attempt takes 30 seconds: after three of them a wait may still fit, a fifth does not.
    let failures = vec![failure(ChatErrorKind::Timeout, Some(1)); 20];
    let outcome = call(policy, Duration::from_secs(30), failures).await;
    assert_eq!(outcome.answer.unwrap_err().kind, ChatErrorKind::Timeout);
    assert!(outcome.took <= total, "{:?}", outcome.took);
    assert_eq!(outcome.waits.len(), 3);

    // An hour is asked for and 100 seconds are left: there is nothing to wait for.
    let failures = vec![failure(ChatErrorKind::RateLimit, Some(3600)); 2];
    let outcome = call(policy, Duration::ZERO, failures).await;
    assert_eq!(outcome.answer.unwrap_err().kind, ChatErrorKind::RateLimit);
    assert_eq!(outcome.took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_end_the_call_at_once() {
    use ChatErrorKind::{
        Auth, BadRequest, Budget, ContentFilter, ContextWindow, Credit, NotFound, Script, TooLarge,
        UnsupportedParameter,
    };
    for kind in [
        Auth,
        BadRequest,
        Budget,
        ContentFilter,
        ContextWindow,
        Credit,
        NotFound,
        Script,
        TooLarge,
        UnsupportedParameter,
    ] {
        let outcome = call(policy(), Duration::ZERO, vec![failure(kind, Some(1))]).await;
        assert_eq!(outcome.answer.unwrap_err().kind, kind);
        assert!(outcome.waits.is_empty());
    }
    let mut last_word = failure(ChatErrorKind::Server, None);
    last_word.final_word = true;
    let outcome = call(policy(), Duration::ZERO, vec![last_word]).await;
    assert!(outcome.answer.is_err() && outcome.waits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_attempt_is_cut_off_and_repeated() {
    let provider = Arc::new(Failing {
        failures: Mutex::new(Vec::new()),
        takes: Duration::from_secs(100),
    });
    let model = Model::new("failing/m", provider).with_retry(RetryPolicy {
        attempts: 2,
        ..policy()
    });
    let request = ChatRequest {
        messages: &[],
        tools: &[],
        extra_args: &Object::new(),
        timeout: Duration::from_secs(10),
        labels: CallLabels::default(),
    };
    let started = Instant::now();
    let error = model.chat(request, &|_| {}).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Timeout);
    assert!(error.message.contains("10s"), "{error}");
    assert!(started.elapsed() >= Duration::from_secs(20));
    assert!(started.elapsed() <= Duration::from_secs(22));
}

#[tokio::test(start_paused = true)]
async fn waiting_holds_no_slot_and_waiting_for_one_is_not_time_spent() {
    let slots = Arc::new(Semaphore::new(1));
    let provider = Failing {
        failures: Mutex::new(vec![failure(ChatErrorKind::RateLimit, Some(30))]),
        takes: Duration::from_secs(2),
    };
    let short = RetryPolicy {
        total: Duration::from_secs(60),
        ..policy()
    };
    let model = Model::new("failing/m", Arc::new(provider))
        .with_retry(short)
        .with_slots(Arc::clone(&slots));
    let extra_args = Object::new();
    let request = ChatRequest {
        messages: &[],
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(600),
        labels: CallLabels::default(),
    };
    let held = Arc::clone(&slots).acquire_owned().await.unwrap();
    let started = Instant::now();
    let free_in_wait = Mutex::new(Vec::new());
    let on_retry = |_: RetryNotice<'_>| {
        free_in_wait.lock().unwrap().push(slots.available_permits());
    };
    let (answer, ()) = tokio::join!(
        model.chat(request, &on_retry),
        // Longer than the call's total.
        async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(held);
        }
    );
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(*free_in_wait.lock().unwrap(), [1]);
    assert_eq!(started.elapsed().as_secs(), 100 + 2 + 30 + 2);
    assert_eq!(slots.available_permits(), 1);
}
