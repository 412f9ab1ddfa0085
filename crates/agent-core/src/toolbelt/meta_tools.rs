//! The agent's own tools, as the model is told of them (`spec/agents.md` §12.2).

use formats::chat::ToolDefinition;
use serde_json::{Value, json};

pub(super) const LIST: &str = "toolbelt_list_tools";
pub(super) const INSPECT: &str = "toolbelt_inspect_tool";
pub(super) const ADD: &str = "toolbelt_add_tool";
pub(super) const REMOVE: &str = "toolbelt_remove_tool";
pub(super) const TODO: &str = "todo_write";
pub(super) const FINAL_ANSWER: &str = "final_answer";

/// Whether a name is one of the agent's own tools; such a name hides a tool of a server.
pub(super) fn is_own(name: &str) -> bool {
    [LIST, INSPECT, ADD, REMOVE, TODO, FINAL_ANSWER].contains(&name)
}

/// The meta-tools, in the order in which they are offered.
pub(super) fn definitions() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            LIST,
            "Names the tools that exist but are not in your toolbelt yet. Only tools in the toolbelt can be called.",
            parameters(&json!({}), &[]),
        ),
        ToolDefinition::new(
            INSPECT,
            "Shows what a tool does and which parameters it takes, whether or not it is in your toolbelt.",
            one_name("Name of the tool to show."),
        ),
        ToolDefinition::new(
            ADD,
            "Puts a tool into your toolbelt. From then on you can call it.",
            one_name("Name of the tool to put in."),
        ),
        ToolDefinition::new(
            REMOVE,
            "Takes a tool out of your toolbelt, which makes room for another one.",
            one_name("Name of the tool to take out."),
        ),
        ToolDefinition::new(
            TODO,
            "Keeps your list of todos: plan the work with it and record progress. `final_answer` is refused while a todo is neither completed nor cancelled.",
            parameters(
                &json!({
                    "todos": {
                        "type": "array",
                        "description": "The todos to create or change.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "string", "description": "Identifies the todo."},
                                "content": {
                                    "type": "string",
                                    "description": "What is to be done. Needed for a new todo; leave it out to keep that of a known one."
                                },
                                "status": {
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed", "cancelled"],
                                    "description": "How far it is."
                                }
                            },
                            "required": ["id", "status"]
                        }
                    },
                    "merge": {
                        "type": "boolean",
                        "description": "true: change the todos with these ids and add the others. false: forget the list first."
                    }
                }),
                &["todos", "merge"],
            ),
        ),
    ]
}

/// The tool that ends the run.
pub(super) fn final_answer() -> ToolDefinition {
    ToolDefinition::new(
        FINAL_ANSWER,
        "Hands in your answer and ends the work. Call it once everything is done, or when you cannot go on.",
        parameters(
            &json!({
                "answer": {"type": "string", "description": "The whole answer to the task."},
                "status": {
                    "type": "string",
                    "enum": ["completed", "blocked", "failed"],
                    "description": "completed: the task is done. blocked: you cannot go on. failed: the task is impossible."
                }
            }),
            &["answer", "status"],
        ),
    )
}

fn one_name(description: &str) -> Value {
    parameters(
        &json!({"tool_name": {"type": "string", "description": description}}),
        &["tool_name"],
    )
}

fn parameters(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}
