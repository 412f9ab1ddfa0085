//! What is wrong with a plan, said before anything is run or paid.

use std::ffi::OsStr;
use std::fmt;

use serde_json::Value;

/// Whether a problem stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Grading cannot work like this.
    Error,
    /// Probably a mistake; grading works all the same.
    Warning,
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The verifier of this id.
    Verifier(String),
    /// The eval config of this id.
    EvalConfig(String),
    /// The scoring config.
    ScoringConfig,
    /// The grading settings.
    GradingSettings,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verifier(id) => write!(f, "verifier `{id}`"),
            Self::EvalConfig(id) => write!(f, "eval config `{id}`"),
            Self::ScoringConfig => f.write_str("scoring config"),
            Self::GradingSettings => f.write_str("grading settings"),
        }
    }
}

/// One problem: where, which key, which rule, which value.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Whether it stands in the way.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// The key, as a path such as `expected_args.city`.
    pub key: Option<String>,
    /// The rule that is broken, in words.
    pub rule: String,
    /// The value that breaks it.
    pub value: Option<Value>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(key) = &self.key {
            write!(f, ", `{key}`")?;
        }
        write!(f, ": {}", self.rule)?;
        if let Some(value) = &self.value {
            write!(f, ", got {}", shortened(value))?;
        }
        Ok(())
    }
}

/// The value as JSON, cut to a length that fits into a message.
fn shortened(value: &Value) -> String {
    const LIMIT: usize = 120;
    let text = value.to_string();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What an eval or a scoring method finds in its settings.
#[derive(Debug, Default)]
pub struct Findings {
    /// All of them, in the order in which they were found.
    pub list: Vec<Finding>,
    /// Programs that the check runs: the key that asks for one, its name, what it comes with.
    programs: Vec<(String, &'static str, &'static str)>,
}

/// A [`Problem`] that does not know its place yet.
#[derive(Debug)]
pub struct Finding {
    /// Whether it stands in the way.
    pub severity: Severity,
    /// The key, as a path such as `expected_args.city`.
    pub key: Option<String>,
    /// The rule that is broken, in words.
    pub rule: String,
    /// The value that breaks it.
    pub value: Option<Value>,
}

impl Findings {
    /// The value of `key` breaks `rule` and the check cannot work.
    pub fn error(&mut self, key: &str, rule: impl Into<String>, value: impl Into<Value>) {
        self.push(Severity::Error, key, rule, Some(value.into()));
    }

    /// `key` is needed and absent.
    pub fn missing(&mut self, key: &str, rule: impl Into<String>) {
        self.push(Severity::Error, key, rule, None);
    }

    /// The value of `key` is probably a mistake.
    pub fn warning(&mut self, key: &str, rule: impl Into<String>, value: impl Into<Value>) {
        self.push(Severity::Warning, key, rule, Some(value.into()));
    }

    /// The check runs the program `name`, which comes with `package`, because of `key`. Whether it
    /// is there is looked for later, where it is known in which folders.
    pub fn needs_program(&mut self, key: &str, name: &'static str, package: &'static str) {
        let need = (key.to_owned(), name, package);
        if !self.programs.contains(&need) {
            self.programs.push(need);
        }
    }

    /// Makes errors of the programs that are in no folder of `path`, which is written as in `PATH`.
    pub fn look_for_programs(&mut self, path: &OsStr) {
        for (key, name, package) in std::mem::take(&mut self.programs) {
            let mut folders = std::env::split_paths(path);
            if !folders.any(|folder| folder.is_absolute() && folder.join(name).is_file()) {
                let rule = format!(
                    "needs `{name}` ({package}), which is in no folder of the programs of verifiers"
                );
                self.error(&key, rule, path.to_string_lossy().into_owned());
            }
        }
    }

    fn push(
        &mut self,
        severity: Severity,
        key: &str,
        rule: impl Into<String>,
        value: Option<Value>,
    ) {
        self.list.push(Finding {
            severity,
            key: (!key.is_empty()).then(|| key.to_owned()),
            rule: rule.into(),
            value,
        });
    }

    /// The errors as one sentence, if there are any.
    #[must_use]
    pub fn errors(&self) -> Option<String> {
        let errors: Vec<String> = self
            .list
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .map(Finding::sentence)
            .collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    }

    /// The findings as problems at `place`.
    pub fn at(self, place: &Place) -> impl Iterator<Item = Problem> + '_ {
        self.list.into_iter().map(|finding| Problem {
            severity: finding.severity,
            place: place.clone(),
            key: finding.key,
            rule: finding.rule,
            value: finding.value,
        })
    }
}

impl Finding {
    fn sentence(&self) -> String {
        let mut text = String::new();
        if let Some(key) = &self.key {
            text = format!("`{key}`: ");
        }
        text.push_str(&self.rule);
        if let Some(value) = &self.value {
            text.push_str(", got ");
            text.push_str(&shortened(value));
        }
        text
    }
}
