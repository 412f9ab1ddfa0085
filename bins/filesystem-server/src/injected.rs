//! Failures on purpose, to see what an agent makes of them (§1.6).
//!
//! A task may put a file with rules among the private data of this server. It is looked for at each call
//! until it is there, and read once.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use crate::files::Pattern;

/// Bytes of the file.
const MAX_BYTES: u64 = 1 << 20;

/// The failures of one server.
#[derive(Debug)]
pub(crate) struct InjectedErrors {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The file was not there yet.
    Waiting,
    Rules(Vec<Rule>, fastrand::Rng),
    /// The file cannot be used.
    Off,
}

/// The file.
#[derive(Debug, Deserialize)]
struct Document {
    /// The same seed and the same calls give the same failures.
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    error_rules: Vec<RuleText>,
}

#[derive(Debug, Deserialize)]
struct RuleText {
    #[serde(rename = "error_type")]
    kind: ErrorKind,
    /// A shell pattern for the name of the tool.
    #[serde(default = "any")]
    tool: String,
    #[serde(default = "always")]
    probability: f64,
    #[serde(default)]
    message: Option<String>,
    /// Shell patterns, one of which has to match an argument that is a text.
    #[serde(default)]
    paths: Option<Vec<String>>,
    #[serde(default)]
    max_occurrences: Option<u64>,
}

/// What a failure stands for. The agent sees the message only.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorKind {
    Timeout,
    RateLimit,
    PermissionDenied,
    ServerError,
    MalformedResponse,
}

#[derive(Debug)]
struct Rule {
    kind: ErrorKind,
    tool: Pattern,
    probability: f64,
    message: String,
    paths: Vec<Pattern>,
    /// How often it may still fail a call.
    left: Option<u64>,
}

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is no file")]
    NoFile,
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("it is not what it should be: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`probability` is {0}, not 0 to 1")]
    Probability(f64),
}

impl InjectedErrors {
    /// Rules of the file at `path`, once it is there.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::new(State::Waiting),
        }
    }

    /// The message with which this call has to fail; `None` where it may go on.
    pub(crate) fn failure(&self, tool: &str, arguments: &JsonObject) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Waiting) {
            *state = self.look()?;
        }
        let State::Rules(rules, random) = &mut *state else {
            return None;
        };
        // The first rule that is about the call decides, whichever way.
        let rule = rules
            .iter_mut()
            .filter(|rule| rule.left != Some(0))
            .find(|rule| rule.is_about(tool, arguments))?;
        if random.f64() >= rule.probability {
            return None;
        }
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        tracing::info!(tool, kind = ?rule.kind, "a call fails on purpose");
        Some(rule.message.clone())
    }

    /// What the file says; `None` while there is none.
    fn look(&self) -> Option<State> {
        match read(&self.path) {
            Ok((seed, rules)) => {
                tracing::info!(path = %self.path.display(), rules = rules.len(), "calls fail on purpose by these rules");
                let random = seed.map_or_else(fastrand::Rng::new, |seed| {
                    fastrand::Rng::with_seed(seed.cast_unsigned())
                });
                Some(State::Rules(rules, random))
            }
            Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "no call fails on purpose, since the rules cannot be used");
                Some(State::Off)
            }
        }
    }
}

fn read(path: &Path) -> Result<(Option<i64>, Vec<Rule>), FileError> {
    if !path.metadata()?.is_file() {
        return Err(FileError::NoFile);
    }
    let mut text = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(FileError::TooLarge);
    }
    let document: Document = serde_json::from_slice(&text)?;
    let rules = document.error_rules.into_iter().map(Rule::try_from);
    Ok((document.seed, rules.collect::<Result<_, _>>()?))
}

impl TryFrom<RuleText> for Rule {
    type Error = FileError;

    fn try_from(text: RuleText) -> Result<Self, FileError> {
        if !(0.0..=1.0).contains(&text.probability) {
            return Err(FileError::Probability(text.probability));
        }
        let paths = text.paths.unwrap_or_default();
        Ok(Self {
            kind: text.kind,
            tool: Pattern::new(&text.tool),
            probability: text.probability,
            message: text.message.unwrap_or_else(|| "Error".to_owned()),
            paths: paths.iter().map(|path| Pattern::new(path)).collect(),
            left: text.max_occurrences,
        })
    }
}

impl Rule {
    fn is_about(&self, tool: &str, arguments: &JsonObject) -> bool {
        let mut texts = arguments.values().filter_map(Value::as_str);
        self.tool.matches(tool)
            && (self.paths.is_empty()
                || texts.any(|text| self.paths.iter().any(|path| path.matches(text))))
    }
}

fn any() -> String {
    "*".to_owned()
}

const fn always() -> f64 {
    1.0
}
