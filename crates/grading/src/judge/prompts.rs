//! The texts that a judge is given: templates in files, with a version and a hash.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{ErrorKind, EvalError};

/// A set of templates that belong together.
pub(crate) struct PromptSet {
    /// The name in results.
    name: &'static str,
    /// The version: a number and the hash of the texts that it belongs to. A test holds the two
    /// against each other, so that a change of wording cannot go unnoticed.
    version: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// The texts of the `output_llm` family.
pub(crate) static OUTPUT_LLM: PromptSet = PromptSet {
    name: "output_llm",
    version: include_str!("../../prompts/output_llm/VERSION"),
    files: &[
        ("system", include_str!("../../prompts/output_llm/system.md")),
        ("guard", include_str!("../../prompts/output_llm/guard.md")),
        ("user", include_str!("../../prompts/output_llm/user.md")),
        (
            "selection_system",
            include_str!("../../prompts/output_llm/selection_system.md"),
        ),
        (
            "selection_user",
            include_str!("../../prompts/output_llm/selection_user.md"),
        ),
    ],
};

impl PromptSet {
    /// What a result says about the prompts it was made with.
    pub(crate) fn provenance(&self) -> Value {
        let version = self.version.trim();
        let number = version
            .split_once(' ')
            .map_or(version, |(number, _)| number);
        json!({ "name": self.name, "version": number, "hash": self.hash() })
    }

    /// The hash of all texts: the first 16 hexadecimal digits of their SHA-256.
    fn hash(&self) -> String {
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

    /// Fills the template `file` with `context`. Values are inserted as they are.
    pub(crate) fn render(&self, file: &str, context: &impl Serialize) -> Result<String, EvalError> {
        let defect = |error: &dyn std::fmt::Display| {
            let name = self.name;
            EvalError::new(
                ErrorKind::Internal,
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
pub(crate) fn marker_code<'a>(texts: &(impl Iterator<Item = &'a str> + Clone)) -> String {
    loop {
        let code: String = uuid::Uuid::new_v4().simple().to_string()[..20].to_owned();
        if !texts.clone().any(|text| text.contains(&code)) {
            return code;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_file_belongs_to_the_texts() {
        let stated = OUTPUT_LLM.version.trim().split_once(' ').unwrap().1;
        let actual = OUTPUT_LLM.hash();
        assert_eq!(
            stated, actual,
            "the texts were changed: raise the number in prompts/output_llm/VERSION and set the hash"
        );
    }
}
