//! The texts that a judge is given: templates in files, with a version and a hash.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Question;
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

/// A prompt set whose files lie in `prompts/<name>/`.
macro_rules! prompt_set {
    ($name:literal: $($file:literal),+) => {
        PromptSet {
            name: $name,
            version: include_str!(concat!("../../prompts/", $name, "/VERSION")),
            files: &[$((
                $file,
                include_str!(concat!("../../prompts/", $name, "/", $file, ".md")),
            )),+],
        }
    };
}

/// The texts of the `output_llm` family.
pub(crate) static OUTPUT_LLM: PromptSet = prompt_set!(
    "output_llm": "system", "guard", "user", "selection_system", "selection_user"
);

/// Whether an answer says the same as a reference answer.
pub(crate) static GOLDEN_RESPONSE: PromptSet = prompt_set!("golden_response": "system", "user");

/// Whether an answer meets a criterion.
pub(crate) static APEX_V1: PromptSet = prompt_set!("apex_v1": "system", "user");

/// Whether tool calls meet a criterion.
pub(crate) static TOOL_CALLS: PromptSet = prompt_set!("tool_calls": "system", "user");

/// Whether changes of rows meet a criterion.
pub(crate) static ROWS: PromptSet = prompt_set!("rows": "system", "user");

/// All sets.
#[cfg(test)]
static ALL: [&PromptSet; 5] = [&OUTPUT_LLM, &GOLDEN_RESPONSE, &APEX_V1, &TOOL_CALLS, &ROWS];

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

    /// The templates `system` and `user`, both filled with `context`, as a question whose markers
    /// have `code`.
    pub(crate) fn question(
        &self,
        context: &impl Serialize,
        code: &str,
    ) -> Result<Question, EvalError> {
        let system = self.render("system", context)?;
        let user = self.render("user", context)?;
        Ok(Question::new(system, user).with_code(code))
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
    fn the_version_files_belong_to_the_texts() {
        for set in ALL {
            let stated = set.version.trim().split_once(' ').unwrap().1;
            let (name, actual) = (set.name, set.hash());
            assert_eq!(
                stated, actual,
                "the texts were changed: raise the number in prompts/{name}/VERSION and set the hash"
            );
        }
    }
}
