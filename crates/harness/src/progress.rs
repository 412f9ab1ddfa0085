//! What a run tells while it goes on.

use formats::event::Event;
use formats::grades::VerifierResult;
use formats::run::TrialSummary;

use crate::trial::TrialId;

/// Someone who follows a run. Called from several trials at once; must not block for long.
pub trait Progress: Send + Sync {
    /// Something happened in `trial`.
    fn news(&self, trial: &TrialId, news: News<'_>);
}

/// What happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum News<'a> {
    /// A part of the trial begins.
    Stage(Stage),
    /// Something a reader of the account should know, such as a rewritten path.
    Remark(&'a str),
    /// The agent did something.
    Agent(&'a Event),
    /// A verifier was judged.
    Verdict(&'a VerifierResult),
    /// An earlier run already settled this trial.
    Kept(&'a TrialSummary),
    /// The trial is over.
    Finished(&'a TrialSummary),
}

/// The parts of a trial, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The sandbox starts the environment.
    Environment,
    /// The world is loaded.
    World,
    /// The MCP servers start.
    Servers,
    /// The agent works.
    Agent,
    /// The final state is saved and compared.
    Snapshot,
    /// The verifiers judge.
    Grading,
}

impl Stage {
    /// A few words for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "starting the environment",
            Self::World => "loading the world",
            Self::Servers => "starting the MCP servers",
            Self::Agent => "the agent works",
            Self::Snapshot => "saving the final state",
            Self::Grading => "grading",
        }
    }
}

/// Follows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn news(&self, _trial: &TrialId, _news: News<'_>) {}
}
