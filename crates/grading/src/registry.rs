//! The tables of evals and scoring methods.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::Schema;

use crate::eval::{AnyEval, Eval, Typed};
use crate::scoring::{AnyScoring, Scoring, TypedScoring};
use crate::{evals, scoring};

/// Former ids that task files still use.
const EVAL_ALIASES: &[(&str, &str)] = &[("code_runner_verifier", "llm_code_verifier")];

/// The evals and scoring methods that verifiers and scoring configs may name.
#[derive(Clone, Default)]
pub struct Registry {
    evals: BTreeMap<String, Arc<dyn AnyEval>>,
    scoring: BTreeMap<String, Arc<dyn AnyScoring>>,
}

/// What an entry of the registry is, for lists and editors.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The id.
    pub id: String,
    /// What it does, in one sentence.
    pub about: String,
    /// JSON Schema of the verifier's settings; for a scoring method, of its own settings.
    pub settings: Schema,
    /// JSON Schema of the eval config's settings; absent for a scoring method.
    pub shared_settings: Option<Schema>,
}

impl Registry {
    /// A registry without entries.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The evals of this crate and of `checks`, and the methods of `scoring`.
    #[must_use]
    pub fn builtin() -> Self {
        let evals = checks::all().into_iter().chain(evals::all());
        let scoring = scoring::all().into_iter();
        Self {
            evals: evals.map(|eval| (eval.id().to_owned(), eval)).collect(),
            scoring: scoring
                .map(|method| (method.id().to_owned(), method))
                .collect(),
        }
    }

    /// Adds `eval`; it replaces an eval of the same id.
    pub fn register(&mut self, eval: impl Eval) -> &mut Self {
        let id = eval.id().to_owned();
        self.evals.insert(id, Arc::new(Typed::new(eval)));
        self
    }

    /// Adds a scoring method; it replaces one of the same id.
    pub fn register_scoring(&mut self, method: impl Scoring) -> &mut Self {
        let id = method.id().to_owned();
        self.scoring.insert(id, Arc::new(TypedScoring(method)));
        self
    }

    /// The ids of all evals, sorted.
    pub fn eval_ids(&self) -> impl Iterator<Item = &str> {
        self.evals.keys().map(String::as_str)
    }

    /// The ids of all scoring methods, sorted.
    pub fn scoring_ids(&self) -> impl Iterator<Item = &str> {
        self.scoring.keys().map(String::as_str)
    }

    /// Every eval with its schemas, by id.
    #[must_use]
    pub fn evals(&self) -> Vec<Entry> {
        let entry = |eval: &Arc<dyn AnyEval>| Entry {
            id: eval.id().to_owned(),
            about: eval.about().to_owned(),
            settings: eval.values_schema(),
            shared_settings: Some(eval.config_schema()),
        };
        self.evals.values().map(entry).collect()
    }

    /// Every scoring method with its schema, by id.
    #[must_use]
    pub fn scoring_methods(&self) -> Vec<Entry> {
        let entry = |method: &Arc<dyn AnyScoring>| Entry {
            id: method.id().to_owned(),
            about: method.about().to_owned(),
            settings: method.schema(),
            shared_settings: None,
        };
        self.scoring.values().map(entry).collect()
    }

    pub(crate) fn eval(&self, id: &str) -> Option<Arc<dyn AnyEval>> {
        self.evals.get(meant(id, EVAL_ALIASES)).cloned()
    }

    pub(crate) fn scoring(&self, id: &str) -> Option<Arc<dyn AnyScoring>> {
        self.scoring.get(meant(id, &scoring::ALIASES)).cloned()
    }
}

/// The id that `id` stands for.
fn meant<'a>(id: &'a str, aliases: &[(&'a str, &'a str)]) -> &'a str {
    let alias = aliases.iter().find(|(alias, _)| *alias == id);
    alias.map_or(id, |(_, id)| id)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("evals", &self.evals.keys())
            .field("scoring", &self.scoring.keys())
            .finish()
    }
}
