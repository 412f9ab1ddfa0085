//! The texts that judges are given: templates in files, with a version and a hash.

use judge::PromptSet;

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

/// Questions that are a list of materials.
pub(crate) static SECTIONS: PromptSet = prompt_set!(
    "sections": "user", "response", "short_answer", "tool_shares", "style", "comparison"
);

/// All sets.
#[cfg(test)]
static ALL: [&PromptSet; 6] = [
    &OUTPUT_LLM,
    &GOLDEN_RESPONSE,
    &APEX_V1,
    &TOOL_CALLS,
    &ROWS,
    &SECTIONS,
];

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
