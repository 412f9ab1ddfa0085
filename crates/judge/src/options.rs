//! Limits and choices of one grading run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Limits and choices for the judges of one grading run. All have defaults.
#[derive(Debug, Clone)]
pub struct JudgeOptions {
    /// Slots for calls in flight. Default 10 for this run; give several runs the same semaphore to
    /// limit them together.
    pub slots: Arc<Semaphore>,
    /// How often a judge is asked until it gives a verdict that can be read. Default 3.
    /// (Transport failures are repeated by `llm-client`, within each of these attempts.)
    pub attempts: u32,
    /// Limit of one attempt of a call. Default 600 s.
    pub timeout: Duration,
    /// A folder in which answers are kept, so that the same question is not asked twice.
    /// Default: none.
    pub cache: Option<PathBuf>,
    /// US dollars that the calls of this run may cost; calls whose price is not known count as 10
    /// dollars per million tokens of input and 30 of output. Default: no limit.
    pub max_usd: Option<f64>,
    /// How often each judge is asked. Default: what the settings say.
    pub votes: Option<u32>,
    /// Names of further judges that vote, beside those of the settings. Default: none.
    pub panel: Vec<String>,
}

impl Default for JudgeOptions {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(10)),
            attempts: 3,
            timeout: Duration::from_secs(600),
            cache: None,
            max_usd: None,
            votes: None,
            panel: Vec::new(),
        }
    }
}
