//! How often and how patiently a call is repeated.

use std::time::Duration;

use llm_wire::ChatError;

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
    pub(crate) fn wait_after(&self, attempt: u32, error: &ChatError, share: f64) -> Duration {
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
