//! Typed settings of verifiers and scoring methods, and what is wrong with them.
//!
//! Evals and scoring methods read the open maps of task files (`verifier_values`,
//! `eval_config_values`, `scoring_config_values`) as types of their own. [`parse`] does it, and
//! reports what cannot be read to [`Findings`](problem::Findings), with the key and the value;
//! each finding becomes a [`Problem`](problem::Problem) as soon as it is known whose it is.
//! [`Sources`] finds the file and the line of a problem.

pub mod problem;
mod source;
mod typed;

pub use source::Sources;
pub use typed::{
    ANNOTATIONS, NoSettings, flag, number, optional_number, parse, warn_of_unknown_keys, yes,
};
