//! How fast a provider is asked: one lane per server, shared by all models of a program.
//!
//! A call waits in line, first come first served, until the limits allow it. What the provider says
//! of its own limits counts for everyone in the lane: after a 429 with a wait nobody is let in before
//! that is over, and then fewer calls at the same time, until answers come again.

mod lane;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use lane::{Lane, Pass};
pub use settings::{RateLimit, RateLimits, SettingError};

/// A wait for a turn, which counts for no time limit of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitNotice {
    /// How long it was.
    pub waited: Duration,
    /// What stood in the way last.
    pub reason: WaitReason,
}

/// Why a call had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// `requests_per_minute` of the settings.
    Requests,
    /// `tokens_per_minute` of the settings.
    Tokens,
    /// `concurrency` of the settings, or fewer calls at once after the provider refused some.
    Concurrency,
    /// The provider asked for a wait.
    Provider,
    /// The worst case of calls in flight leaves too little of a budget for now.
    Budget,
}

impl WaitReason {
    /// A stable word for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests_per_minute",
            Self::Tokens => "tokens_per_minute",
            Self::Concurrency => "concurrency",
            Self::Provider => "provider",
            Self::Budget => "budget",
        }
    }
}

/// The lanes of a program.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    limits: RateLimits,
    lanes: Mutex<BTreeMap<String, Arc<Lane>>>,
}

impl Lanes {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            lanes: Mutex::default(),
        }
    }

    /// The lane of the model `name` of `provider` at the server `place`.
    pub(crate) fn of(&self, provider: &str, name: &str, place: &str) -> Arc<Lane> {
        let (key, limit) = self.limits.of(provider, name);
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes
            .entry(format!("{key} {place}"))
            .or_insert_with(|| Arc::new(Lane::new(key, limit)));
        Arc::clone(lane)
    }
}
