//! One logical call: attempts, waits, limits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::around::{Admission, Around};
use crate::budget::{Budget, worst_case};
use crate::cache::{Cache, Key};
use crate::rate::WaitNotice;
use crate::recording::{Happened, Question, StoredDelta};
use crate::retry::{RetryNotice, RetryPolicy};
use llm_wire::extra_args::Settings;
use llm_wire::{
    ChatError, ChatErrorKind, ChatRequest, ChatResponse, Delta, DeltaSink, Price, Provider, Reply,
};

/// A model that can be asked. Cloning is cheap.
#[derive(Clone)]
pub struct Model {
    name: Arc<str>,
    provider: Arc<dyn Provider>,
    retry: RetryPolicy,
    price: Option<Price>,
    around: Around,
}

/// Who hears of what happens during a call.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Hears of every failed attempt that is repeated.
    pub on_retry: Option<&'a (dyn Fn(RetryNotice<'_>) + Send + Sync)>,
    /// Hears of every wait for a turn, when it is over.
    pub on_wait: Option<&'a (dyn Fn(WaitNotice) + Send + Sync)>,
    /// Hears of the pieces of the reply while they come.
    pub on_delta: Option<DeltaSink<'a>>,
}

impl Model {
    /// A model by its full name, answered by `provider`.
    pub fn new(name: impl Into<Arc<str>>, provider: Arc<dyn Provider>) -> Self {
        Self {
            name: name.into(),
            provider,
            retry: RetryPolicy::default(),
            price: None,
            around: Around::default(),
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
        self.around.slots = Some(slots);
        self
    }

    /// The same model, whose calls are also paid from `budget`.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        // The narrower ones first: who waits for the widest holds all others, never the other way.
        self.around.budgets.insert(0, budget);
        self
    }

    pub(crate) fn with_around(mut self, around: Around) -> Self {
        self.around = around;
        self
    }

    #[cfg(test)]
    pub(crate) fn has_lane(&self) -> bool {
        self.around.lane.is_some()
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
    /// failed. Waiting for a turn (rate limits, slots, budgets) counts for no limit of the call.
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    /// The last [`ChatError`] when the call cannot succeed, the attempts are used up, or the wait for
    /// the next one would go beyond the policy's total.
    pub async fn chat(
        &self,
        request: ChatRequest<'_>,
        on_retry: &(dyn Fn(RetryNotice<'_>) + Send + Sync),
    ) -> Result<ChatResponse, ChatError> {
        let hooks = Hooks {
            on_retry: Some(on_retry),
            ..Hooks::default()
        };
        self.chat_with(request, hooks).await
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
        let hooks = Hooks {
            on_retry: Some(on_retry),
            on_delta: Some(on_delta),
            ..Hooks::default()
        };
        self.chat_with(request, hooks).await
    }

    /// The same as [`Self::chat`] with all that can be heard.
    ///
    /// # Errors
    /// As [`Self::chat`].
    pub async fn chat_with(
        &self,
        request: ChatRequest<'_>,
        hooks: Hooks<'_>,
    ) -> Result<ChatResponse, ChatError> {
        let settings = Settings::read(request.extra_args).map_err(|reason| {
            ChatError::new(ChatErrorKind::UnsupportedParameter, self.provider(), reason)
        })?;
        let limit = settings.timeout.unwrap_or(request.timeout);
        let attempts = settings.attempts.unwrap_or(self.retry.attempts).max(1);
        let call_id = match request.labels.call_id {
            Some(id) => id.to_owned(),
            // It has to be unlike others, not unforeseeable: the system need not be asked.
            None => uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes())
                .into_uuid()
                .to_string(),
        };
        let mut one = request;
        one.labels.call_id = Some(&call_id);
        let question = self.around.question(&one);
        let started = Instant::now();
        if let Some(reply) = self.kept(&one, question.as_ref()).await? {
            return Ok(self.response(reply, 0, started.elapsed()));
        }
        let mut queued = Duration::ZERO;
        let mut attempt = 1;
        loop {
            let asked_at = Instant::now();
            let admission = self.admit(&one, hooks).await?;
            queued += asked_at.elapsed();
            let spent = started.elapsed().saturating_sub(queued);
            let left = self.retry.total.saturating_sub(spent);
            one.labels.attempt = Some(attempt);
            let begun = Instant::now();
            let (outcome, deltas) = self.attempt(one, limit.min(left), hooks.on_delta).await;
            let error = match outcome {
                Ok(reply) => {
                    let response = self.response(reply, attempt, started.elapsed());
                    admission.answered(&response);
                    let answered = Ok(&response);
                    self.record(&one, question.as_ref(), begun.elapsed(), deltas, answered)
                        .await?;
                    self.keep(&one, question.as_ref(), &response).await;
                    return Ok(response);
                }
                Err(error) => error,
            };
            let spent = started.elapsed().saturating_sub(queued);
            let left = self.retry.total.saturating_sub(spent);
            let wait = self.retry.wait_after(attempt, &error, fastrand::f64());
            admission.failed(&error, self.retry.longest_wait);
            self.record(
                &one,
                question.as_ref(),
                begun.elapsed(),
                deltas,
                Err(&error),
            )
            .await?;
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
            if let Some(on_retry) = hooks.on_retry {
                on_retry(RetryNotice {
                    attempt,
                    wait,
                    error: &error,
                });
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// Waits until the attempt may begin.
    async fn admit(
        &self,
        request: &ChatRequest<'_>,
        hooks: Hooks<'_>,
    ) -> Result<Admission<'_>, ChatError> {
        let worst = || worst_case(request, &self.name, self.price);
        let on_wait = |notice: WaitNotice| {
            if let Some(on_wait) = hooks.on_wait {
                on_wait(notice);
            }
        };
        self.around
            .admit(request, &worst, &on_wait)
            .await
            .map_err(|(kind, reason)| {
                let mut error = ChatError::new(kind, self.provider(), reason);
                error.final_word = true;
                error
            })
    }

    async fn attempt(
        &self,
        request: ChatRequest<'_>,
        limit: Duration,
        on_delta: Option<DeltaSink<'_>>,
    ) -> (Result<Reply, ChatError>, Vec<StoredDelta>) {
        let told = Mutex::new(Vec::new());
        let recording = self.around.tape.is_some();
        let tell = |delta: Delta<'_>| {
            if recording {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.extend(StoredDelta::of(delta));
            }
            if let Some(sink) = on_delta {
                sink(delta);
            }
        };
        let reply = match on_delta {
            Some(_) => self.provider.send_streaming(request, &tell),
            None => self.provider.send(request),
        };
        let outcome = match tokio::time::timeout(limit, reply).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ChatError::new(
                ChatErrorKind::Timeout,
                self.provider(),
                format!("no whole reply within {limit:?}"),
            )),
        };
        let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
        (outcome, told)
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

    /// Records an attempt, where that is asked for.
    async fn record(
        &self,
        request: &ChatRequest<'_>,
        question: Option<&Question>,
        took: Duration,
        deltas: Vec<StoredDelta>,
        outcome: Result<&ChatResponse, &ChatError>,
    ) -> Result<(), ChatError> {
        let (Some(tape), Some(question)) = (&self.around.tape, question) else {
            return Ok(());
        };
        let happened = Happened {
            model: &self.name,
            question,
            labels: request.labels,
            took,
            deltas,
            outcome,
        };
        tape.keep(happened).await.map_err(|error| {
            ChatError::new(ChatErrorKind::Recording, self.provider(), error.to_string())
        })
    }

    /// The cache and the key of a request, where answers are kept.
    fn cache(
        &self,
        request: &ChatRequest<'_>,
        question: Option<&Question>,
    ) -> Option<(&Cache, Key)> {
        let cache = self.around.cache.as_ref()?;
        let key = Cache::key(question?, request, &self.name, self.provider.place()?);
        Some((cache, key))
    }

    /// The answer that is kept of an earlier call, which costs nothing.
    async fn kept(
        &self,
        request: &ChatRequest<'_>,
        question: Option<&Question>,
    ) -> Result<Option<Reply>, ChatError> {
        let (Some((cache, key)), Some(question)) = (self.cache(request, question), question) else {
            return Ok(None);
        };
        let Some(mut reply) = cache.get(&key, question).await else {
            return Ok(None);
        };
        reply.cost_usd = Some(0.0);
        let response = self.response(reply.clone(), 0, Duration::ZERO);
        self.record(
            request,
            Some(question),
            Duration::ZERO,
            Vec::new(),
            Ok(&response),
        )
        .await?;
        Ok(Some(reply))
    }

    async fn keep(
        &self,
        request: &ChatRequest<'_>,
        question: Option<&Question>,
        response: &ChatResponse,
    ) {
        if let (Some((cache, key)), Some(question)) = (self.cache(request, question), question) {
            cache.put(&key, question, &self.name, response).await;
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
