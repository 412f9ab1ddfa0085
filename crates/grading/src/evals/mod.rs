//! The evals of this crate (`spec/grading.md` §6). Each is an entry of the registry.

mod apex_v1;
mod content_length;
mod deep_research;
mod file_diff;
mod golden_response;
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
        .register(tool_call::ToolCallCheck)
        .register(tool_call::ToolCallLlmCheck)
        .register(golden_response::GoldenResponseMatch)
        .register(apex_v1::ApexV1)
        .register(deep_research::DeepResearch);
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
