//! The tool by which a model gives a structured answer where its interface cannot describe one.

use formats::chat::ToolDefinition;

/// Its names; the second one is for callers who have a tool of the first name.
const NAMES: [&str; 2] = ["give_answer", "give_structured_answer"];

/// What it is for, to the model.
pub const USE: &str = "Gives the final answer. Call it once, when the answer is ready, with the answer as its arguments, and write no other text.";

/// What the model is told where any JSON object will do.
pub const JSON_ONLY: &str = "Answer with one JSON object and nothing else.";

/// Its name beside `tools`.
pub fn name(tools: &[ToolDefinition]) -> &'static str {
    let taken = |name: &str| tools.iter().any(|tool| tool.function.name == name);
    NAMES
        .into_iter()
        .find(|name| !taken(name))
        .unwrap_or(NAMES[0])
}
