//! One logical call: attempts, waits, limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use uuid::Uuid;

use crate::call::{ChatRequest, ChatResponse};
use crate::error::{ChatError, ChatErrorKind};
use crate::extra_args::Settings;
use crate::prices::Price;
use crate::provider::{DeltaSink, Provider, Reply};

/// A model that can be asked. Cloning is cheap.
#[derive(Clone)]
pub struct Model {
    name: Arc<str>,
    provider: Arc<dyn Provider>,
    retry: RetryPolicy,
    price: Option<Price>,
    slots: Option<Arc<Semaphore>>,
}

/// How often and how patiently a call is repeated (`spec/llm.md` §7).
///
/// The wait after the k-th failure is drawn between zero and `first_wait`·2^(k−1), at most
/// `longest_wait`, so that many trials do not come back all at once. Where the provider says how long
/// to wait, that is what counts, again at most `longest_wait`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Wait after the first failure; doubled after each further one.
    pub first_wait: Duration,
    /// Longest single wait.
    pub longest_wait: Duration,
    /// Limit of all attempts and waits together.
    pub total: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 10,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            total: Duration::from_secs(1800),
        }
    }
}

impl RetryPolicy {
    /// A policy that never repeats.
    #[must_use]
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// The wait after the failed `attempt` (from 1); `share` is a random number from 0 to 1.
    fn wait_after(&self, attempt: u32, error: &ChatError, share: f64) -> Duration {
        if let Some(asked) = error.retry_after {
            return asked.min(self.longest_wait);
        }
        let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.first_wait
            .saturating_mul(factor)
            .min(self.longest_wait)
            .mul_f64(share)
    }
}

/// A failed attempt that will be repeated.
#[derive(Debug)]
#[non_exhaustive]
pub struct RetryNotice<'a> {
    /// Which attempt failed, counted from 1.
    pub attempt: u32,
    /// How long the wait is.
    pub wait: Duration,
    /// What failed.
    pub error: &'a ChatError,
}

impl Model {
    /// A model by its full name, answered by `provider`.
    pub fn new(name: impl Into<Arc<str>>, provider: Arc<dyn Provider>) -> Self {
        Self {
            name: name.into(),
            provider,
            retry: RetryPolicy::default(),
            price: None,
            slots: None,
        }
    }

    /// The same model with another retry policy.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The same model with another price; `None` for an unknown one.
    #[must_use]
    pub fn with_price(mut self, price: Option<Price>) -> Self {
        self.price = price;
        self
    }

    /// The same model, of which each attempt holds one of `slots` while it is in flight. Waits
    /// between attempts hold none, and waiting for a slot counts for no time limit.
    #[must_use]
    pub fn with_slots(mut self, slots: Arc<Semaphore>) -> Self {
        self.slots = Some(slots);
        self
    }

    /// The full name, `provider/model`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The provider's name.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.provider.name()
    }

    /// What it costs, if that is known.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.price
    }

    /// Makes one logical call. `on_retry` hears of every failed attempt that is repeated.
    ///
    /// The extra arguments `timeout` (seconds) and `num_retries` win over the request's timeout and
    /// the policy's number of attempts. An attempt that takes longer than its limit by the clock has
    /// failed. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The last [`ChatError`] when the call cannot succeed, the attempts are used up, or the wait for
    /// the next one would go beyond the policy's total.
    pub async fn chat(
        &self,
        request: ChatRequest<'_>,
        on_retry: &(dyn Fn(RetryNotice<'_>) + Send + Sync),
    ) -> Result<ChatResponse, ChatError> {
        self.call(request, on_retry, None).await
    }

    /// The same as [`Self::chat`], and tells `on_delta` of the pieces of the reply while they come.
    ///
    /// A repeated attempt tells its reply from the beginning; `on_retry` is called between the two.
    /// Providers that do not stream tell nothing.
    ///
    /// # Errors
    /// As [`Self::chat`].
    pub async fn chat_streaming(
        &self,
        request: ChatRequest<'_>,
        on_retry: &(dyn Fn(RetryNotice<'_>) + Send + Sync),
        on_delta: DeltaSink<'_>,
    ) -> Result<ChatResponse, ChatError> {
        self.call(request, on_retry, Some(on_delta)).await
    }

    async fn call(
        &self,
        request: ChatRequest<'_>,
        on_retry: &(dyn Fn(RetryNotice<'_>) + Send + Sync),
        on_delta: Option<DeltaSink<'_>>,
    ) -> Result<ChatResponse, ChatError> {
        let settings = Settings::read(request.extra_args).map_err(|reason| {
            ChatError::new(ChatErrorKind::UnsupportedParameter, self.provider(), reason)
        })?;
        let limit = settings.timeout.unwrap_or(request.timeout);
        let attempts = settings.attempts.unwrap_or(self.retry.attempts).max(1);
        let call_id = match request.labels.call_id {
            Some(id) => id.to_owned(),
            None => Uuid::new_v4().to_string(),
        };
        let started = Instant::now();
        let mut queued = Duration::ZERO;
        let mut attempt = 1;
        loop {
            let asked_at = Instant::now();
            let slot = self.slot().await?;
            queued += asked_at.elapsed();
            let spent = started.elapsed().saturating_sub(queued);
            let left = self.retry.total.saturating_sub(spent);
            let mut one = request;
            one.labels.call_id = Some(&call_id);
            one.labels.attempt = Some(attempt);
            let error = match self.attempt(one, limit.min(left), on_delta).await {
                Ok(reply) => return Ok(self.response(reply, attempt, started.elapsed())),
                Err(error) => error,
            };
            drop(slot);
            let spent = started.elapsed().saturating_sub(queued);
            let left = self.retry.total.saturating_sub(spent);
            let wait = self.retry.wait_after(attempt, &error, fastrand::f64());
            if !error.is_retryable() || attempt >= attempts || wait >= left {
                return Err(error);
            }
            // Asking for more than all the time that is left is a refusal for our purposes.
            if error.retry_after.is_some_and(|asked| asked >= left) {
                return Err(error);
            }
            tracing::debug!(
                model = %self.name, attempt, ?wait, kind = error.kind.as_str(), "attempt failed"
            );
            on_retry(RetryNotice {
                attempt,
                wait,
                error: &error,
            });
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn slot(&self) -> Result<Option<SemaphorePermit<'_>>, ChatError> {
        let Some(slots) = &self.slots else {
            return Ok(None);
        };
        slots.acquire().await.map(Some).map_err(|_| {
            let text = "no more calls are made";
            ChatError::new(ChatErrorKind::Budget, self.provider(), text)
        })
    }

    async fn attempt(
        &self,
        request: ChatRequest<'_>,
        limit: Duration,
        on_delta: Option<DeltaSink<'_>>,
    ) -> Result<Reply, ChatError> {
        let reply = match on_delta {
            Some(sink) => self.provider.send_streaming(request, sink),
            None => self.provider.send(request),
        };
        match tokio::time::timeout(limit, reply).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ChatError::new(
                ChatErrorKind::Timeout,
                self.provider(),
                format!("no whole reply within {limit:?}"),
            )),
        }
    }

    fn response(&self, reply: Reply, attempts: u32, duration: Duration) -> ChatResponse {
        let reckoned = || self.price?.cost(reply.usage.as_ref()?);
        ChatResponse {
            cost_usd: reply.cost_usd.or_else(reckoned),
            message: reply.message,
            finish_reason: reply.finish_reason,
            usage: reply.usage,
            model: reply.model,
            raw: reply.raw,
            request_id: reply.request_id,
            attempts,
            duration,
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
