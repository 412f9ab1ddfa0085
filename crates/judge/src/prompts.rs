//! The texts that a judge is given: templates in files, with a version and a hash.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Question;
use crate::error::{JudgeError, JudgeErrorKind};

/// A set of templates that belong together.
#[derive(Debug, Clone, Copy)]
pub struct PromptSet {
    /// The name in results.
    pub name: &'static str,
    /// The version: a number and the [hash](Self::hash) of the texts that it belongs to. A test
    /// should hold the two against each other, so that a change of wording cannot go unnoticed.
    pub version: &'static str,
    /// Names and texts of the templates (Jinja syntax).
    pub files: &'static [(&'static str, &'static str)],
}

impl PromptSet {
    /// What a result says about the prompts it was made with.
    #[must_use]
    pub fn provenance(&self) -> Value {
        let version = self.version.trim();
        let number = version
            .split_once(' ')
            .map_or(version, |(number, _)| number);
        json!({ "name": self.name, "version": number, "hash": self.hash() })
    }

    /// The hash of all texts: the first 16 hexadecimal digits of their SHA-256.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for (name, text) in self.files {
            hasher.update(name);
            hasher.update([0]);
            hasher.update(text);
            hasher.update([0]);
        }
        let digest = hasher.finalize();
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The templates `system` and `user`, both filled with `context`, as a question whose markers
    /// have `code`.
    ///
    /// # Errors
    /// A template that is missing or broken.
    pub fn question(&self, context: &impl Serialize, code: &str) -> Result<Question, JudgeError> {
        let system = self.render("system", context)?;
        let user = self.render("user", context)?;
        Ok(Question::new(system, user).with_code(code))
    }

    /// Fills the template `file` with `context`. Values are inserted as they are.
    ///
    /// # Errors
    /// A template that is missing or broken.
    pub fn render(&self, file: &str, context: &impl Serialize) -> Result<String, JudgeError> {
        let defect = |error: &dyn std::fmt::Display| {
            let name = self.name;
            JudgeError::new(
                JudgeErrorKind::Internal,
                format!("prompt `{name}/{file}`: {error}"),
            )
        };
        let text = self
            .files
            .iter()
            .find(|(name, _)| *name == file)
            .map(|(_, text)| *text)
            .ok_or_else(|| defect(&"no such file"))?;
        ENVIRONMENT
            .render_str(text, minijinja::value::Serde(context))
            .map_err(|error| defect(&error))
    }
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment
});

/// A code for the markers of one message, which nobody can have foreseen and none of `texts` has
/// in it.
pub fn marker_code<'a>(texts: &(impl Iterator<Item = &'a str> + Clone)) -> String {
    loop {
        let code: String = uuid::Uuid::new_v4().simple().to_string()[..20].to_owned();
        if !texts.clone().any(|text| text.contains(&code)) {
            return code;
        }
    }
}
