//! What becomes of the score where a verifier could not be judged.

use std::str::FromStr;

/// What becomes of the score where a verifier could not be judged (§3.6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnVerifierError {
    /// There is no score.
    #[default]
    FailRun,
    /// The verifier counts with a score of 0.
    ScoreAsZero,
    /// The score is that of the other verifiers.
    Exclude,
}

impl OnVerifierError {
    /// The word in results and flags.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailRun => "fail_run",
            Self::ScoreAsZero => "score_as_zero",
            Self::Exclude => "exclude",
        }
    }
}

impl FromStr for OnVerifierError {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        [Self::FailRun, Self::ScoreAsZero, Self::Exclude]
            .into_iter()
            .find(|choice| choice.as_str() == word)
            .ok_or_else(|| "must be fail_run, score_as_zero or exclude".to_owned())
    }
}
