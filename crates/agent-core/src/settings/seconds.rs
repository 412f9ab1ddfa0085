//! A time limit in a settings file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest limit that makes sense: a year.
const LONGEST: f64 = 31_557_600.0;

/// A time limit, written as a number of seconds.
///
/// In a settings struct, add `#[schemars(with = "f64", range(min = …, max = …))]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds(Duration);

impl Seconds {
    /// So many whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// As a duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// Not a usable time limit.
#[derive(Debug, thiserror::Error)]
#[error("must be more than 0 and at most {LONGEST} seconds")]
pub struct SecondsError;

impl TryFrom<f64> for Seconds {
    type Error = SecondsError;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        if seconds > 0.0 && seconds <= LONGEST {
            Duration::try_from_secs_f64(seconds)
                .map(Self)
                .map_err(|_| SecondsError)
        } else {
            Err(SecondsError)
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0.as_secs_f64()
    }
}
