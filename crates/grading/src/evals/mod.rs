//! The evals of this crate (`spec/grading.md` §6). Each is an entry of the registry.

mod content_length;
mod file_diff;
mod output_llm;
mod path_pattern;
mod pattern_match;
mod template;
mod tool_call;

use crate::registry::Registry;

pub(crate) fn register(registry: &mut Registry) {
    registry
        .register(template::Template)
        .register(pattern_match::PatternMatchCheck)
        .register(file_diff::FileDiffCheck)
        .register(content_length::ContentLengthCheck)
        .register(tool_call::ToolCallCheck);
    for id in output_llm::IDS {
        registry.register(output_llm::OutputLlm { id });
    }
}

/// The members of a JSON object literal.
fn object(value: serde_json::Value) -> formats::Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => formats::Object::new(),
    }
}
