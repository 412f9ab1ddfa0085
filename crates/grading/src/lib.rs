//! Grading: from two worlds, a trajectory and verifiers to results and a score.
//!
//! [`validate`] says everything about a task's verifiers that can be known before a judge is paid.
//! [`grade`] judges one trajectory: each verifier is run by an [`Eval`] of the [`Registry`], on the
//! [evidence](evidence::Evidence) that all share, and a [`Scoring`] method makes one score of the
//! results. A verifier that cannot be judged is an error of its own: it has no part in a score and
//! takes no other verifier with it.
//!
//! The crate reads files and asks a judge through `llm-client`; it never runs a model or a world.

mod calibrate;
mod evals;
mod golden_state;
mod input;
mod order;
mod registry;
mod run;
mod skip;
mod validate;

// The rooms below, by the names that the modules here use.
use ::eval::{self, error};
use ::scoring;
use ::settings::{self, problem};

pub use ::evidence;
pub use calibrate::{Calibration, JudgedCase, Labelled, LabelledCase, calibration, judge_cases};
pub use error::{ErrorKind, EvalError};
pub use eval::{Case, Eval, IsolationRule, Verdict};
pub use golden_state::{check_golden_state, no_trajectory};
pub use input::{GradeOptions, GradingInput, GradingPlan};
pub use judge::{
    Decision, Judge, JudgeError, JudgeErrorKind, JudgeOptions, Opinion, Question, Ruling, Shape,
};
pub use problem::{Findings, Place, Problem, Severity};
pub use registry::{Entry, Registry};
pub use run::{grade, grade_with};
pub use scoring::{Judged, OnVerifierError, Scoring};
pub use settings::{NoSettings, Sources};
pub use validate::{Validated, validate};
