//! What an eval is: a kind of check with typed settings, which looks at a case and gives a verdict.
//!
//! Implement [`Eval`] to make one; [`Typed`] hides its settings types, so that evals of all kinds
//! fit into one table as [`AnyEval`]. A [`Case`] is one verifier with all it may look at. What the
//! agent got wrong is a [`Verdict`]; an [`EvalError`] means that there is none.

pub mod error;

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use evidence::Evidence;
use formats::Object;
use formats::grades::{VerifierResult, VerifierStatus};
use formats::task::{EvalConfig, Verifier};
use futures::future::BoxFuture;
use judge::Judge;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use settings::problem::Findings;
use tokio::sync::Semaphore;

use crate::error::EvalError;
pub use confinement::IsolationRule;

/// A kind of check. Implement it and register it to add one.
///
/// The settings are parsed before [`evaluate`](Self::evaluate) is called, and checked by
/// [`check`](Self::check) both when a task is validated and before each evaluation, so `evaluate`
/// can rely on them.
pub trait Eval: Send + Sync + 'static {
    /// Settings of one verifier (`verifier_values`). Keys must have the names of the task files.
    type Values: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// Settings shared by verifiers (`eval_config_values`).
    type Config: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The id by which eval configs name it (`eval_defn_id`).
    fn id(&self) -> &str;

    /// What it checks, in one sentence.
    fn about(&self) -> &str;

    /// Whether a verifier with these settings asks the judge.
    fn uses_judge(&self, values: &Self::Values, config: &Self::Config) -> bool {
        let _ = (values, config);
        false
    }

    /// Whether a verifier with these settings looks at what the agent said or called, so that it
    /// cannot be judged without a transcript.
    fn needs_transcript(&self, values: &Self::Values, config: &Self::Config) -> bool {
        let _ = (values, config);
        false
    }

    /// How many verifiers of this kind may run at the same time; no limit of its own if `None`.
    fn at_once(&self) -> Option<usize> {
        None
    }

    /// Reports what is wrong with the settings beyond their types: patterns that do not compile,
    /// bounds that exclude each other, and so on. A reported error keeps the verifier from running.
    fn check(&self, values: &Self::Values, config: &Self::Config, findings: &mut Findings) {
        let _ = (values, config, findings);
    }

    /// Judges one verifier.
    ///
    /// What the agent got wrong is a verdict; an error means that no verdict is possible.
    /// Long computations belong on a blocking thread. Dropping the future cancels.
    fn evaluate(
        &self,
        values: &Self::Values,
        config: &Self::Config,
        case: &Case,
    ) -> impl Future<Output = Result<Verdict, EvalError>> + Send;
}

/// One verifier to be judged, with all it may look at.
pub struct Case {
    /// The verifier as it stands in the file.
    pub verifier: Verifier,
    /// Its eval config.
    pub eval_config: EvalConfig,
    /// What the agent did: answer, tool calls, changes of the world. Shared by all verifiers.
    pub evidence: Arc<Evidence>,
    /// Results of the verifiers that this one depends on, in the order in which it names them.
    pub dependencies: Vec<VerifierResult>,
    /// The judge, or why there is none.
    pub judge: Result<Judge, EvalError>,
    /// The folder of the task, for programs that lie in it.
    pub task_folder: Option<PathBuf>,
    /// Where programs are looked for.
    pub program_path: OsString,
    /// Whether programs must be isolated.
    pub isolation: IsolationRule,
}

impl Case {
    /// The judge.
    ///
    /// # Errors
    /// [`EvalError`] where the settings name no usable judge.
    pub fn judge(&self) -> Result<&Judge, EvalError> {
        self.judge.as_ref().map_err(Clone::clone)
    }
}

/// What an eval decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Usually 0 or 1.
    pub score: f64,
    /// What stands beside the score in `verifier_result_values`.
    pub values: Object,
    /// A sentence for people; may be empty.
    pub message: String,
}

impl Verdict {
    /// Score 1 if `passed`, else 0, with `values` (an object) beside it.
    #[must_use]
    pub fn new(passed: bool, values: Object) -> Self {
        Self {
            score: if passed { 1.0 } else { 0.0 },
            values,
            message: String::new(),
        }
    }

    /// The same verdict with a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}

/// What is known about a verifier from its settings alone.
pub struct Inspection {
    /// About the verifier's own settings.
    pub verifier: Findings,
    /// About the settings that it shares with others.
    pub config: Findings,
    /// Whether it asks the judge.
    pub uses_judge: bool,
    /// Whether it cannot be judged without a transcript.
    pub needs_transcript: bool,
}

/// An eval whose settings types are hidden, so that evals of all types fit into one table.
pub trait AnyEval: Send + Sync {
    /// The id by which eval configs name it.
    fn id(&self) -> &str;
    /// What it checks, in one sentence.
    fn about(&self) -> &str;
    /// JSON Schema of `verifier_values`.
    fn values_schema(&self) -> Schema;
    /// JSON Schema of `eval_config_values`.
    fn config_schema(&self) -> Schema;
    /// Places for verifiers of this kind that run at the same time, where it has a limit of its own.
    fn slots(&self) -> Option<Arc<Semaphore>>;
    /// What the settings alone say about a verifier.
    fn inspect(&self, verifier: &Verifier, config: &EvalConfig) -> Inspection;
    /// Judges one verifier; settings that cannot work are an error.
    fn run(self: Arc<Self>, case: Case) -> BoxFuture<'static, Result<Verdict, EvalError>>;
}

/// An eval on its way into a table.
pub struct Typed<E> {
    eval: E,
    slots: Option<Arc<Semaphore>>,
}

/// The settings of a verifier and of its eval config.
type Settings<E> = (<E as Eval>::Values, <E as Eval>::Config);

impl<E: Eval> Typed<E> {
    /// Wraps `eval`.
    pub fn new(eval: E) -> Self {
        let slots = eval
            .at_once()
            .map(|count| Arc::new(Semaphore::new(count.max(1))));
        Self { eval, slots }
    }

    fn parse(&self, verifier: &Verifier, config: &EvalConfig) -> (Inspection, Option<Settings<E>>) {
        let mut inspection = Inspection {
            verifier: Findings::default(),
            config: Findings::default(),
            uses_judge: false,
            needs_transcript: false,
        };
        let values =
            settings::parse::<E::Values>(&verifier.verifier_values, &mut inspection.verifier);
        let shared =
            settings::parse::<E::Config>(&config.eval_config_values, &mut inspection.config);
        let parsed = values.zip(shared);
        if let Some((values, shared)) = &parsed {
            inspection.uses_judge = self.eval.uses_judge(values, shared);
            inspection.needs_transcript = self.eval.needs_transcript(values, shared);
            self.eval.check(values, shared, &mut inspection.verifier);
        }
        (inspection, parsed)
    }
}

impl<E: Eval> AnyEval for Typed<E> {
    fn id(&self) -> &str {
        self.eval.id()
    }

    fn about(&self) -> &str {
        self.eval.about()
    }

    fn values_schema(&self) -> Schema {
        schemars::schema_for!(E::Values)
    }

    fn config_schema(&self) -> Schema {
        schemars::schema_for!(E::Config)
    }

    fn slots(&self) -> Option<Arc<Semaphore>> {
        self.slots.clone()
    }

    fn inspect(&self, verifier: &Verifier, config: &EvalConfig) -> Inspection {
        let (mut inspection, _) = self.parse(verifier, config);
        settings::warn_of_unknown_keys(
            &verifier.verifier_values,
            &self.values_schema(),
            settings::ANNOTATIONS,
            &mut inspection.verifier,
        );
        settings::warn_of_unknown_keys(
            &config.eval_config_values,
            &self.config_schema(),
            &[],
            &mut inspection.config,
        );
        inspection
    }

    fn run(self: Arc<Self>, case: Case) -> BoxFuture<'static, Result<Verdict, EvalError>> {
        Box::pin(async move {
            let (mut inspection, parsed) = self.parse(&case.verifier, &case.eval_config);
            inspection.verifier.look_for_programs(&case.program_path);
            if let Some(errors) = inspection.verifier.errors() {
                return Err(EvalError::config(errors));
            }
            if let Some(errors) = inspection.config.errors() {
                let id = &case.eval_config.eval_config_id;
                return Err(EvalError::config(format!("eval config `{id}`: {errors}")));
            }
            let Some((values, config)) = parsed else {
                return Err(EvalError::config("the settings cannot be read"));
            };
            self.eval.evaluate(&values, &config, &case).await
        })
    }
}

/// What stands in `grades.json` of the verifier with this outcome.
#[must_use]
pub fn result_of(verifier: &Verifier, outcome: Result<Verdict, EvalError>) -> VerifierResult {
    let base = |score, values, status, message| VerifierResult {
        verifier_id: verifier.verifier_id.clone(),
        verifier_version: verifier.verifier_version,
        score,
        verifier_result_values: values,
        status,
        message,
    };
    match outcome {
        // NaN cannot stand in JSON and would poison every average.
        Ok(verdict) if !verdict.score.is_finite() => result_of(
            verifier,
            Err(EvalError::new(
                error::ErrorKind::Internal,
                format!("the eval gave the score {}", verdict.score),
            )),
        ),
        Ok(verdict) => base(
            verdict.score,
            verdict.values,
            VerifierStatus::Ok,
            verdict.message,
        ),
        Err(error) => {
            let mut values = error.values;
            values.insert("error".to_owned(), error.message.clone().into());
            values.insert("error_kind".to_owned(), error.kind.as_str().into());
            values.insert("error_owner".to_owned(), error.kind.owner().as_str().into());
            base(0.0, values, VerifierStatus::Error, error.message)
        }
    }
}

/// The members of a JSON object literal.
#[must_use]
pub fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
