//! The tools that the model has chosen (`spec/agents.md` §12.1 to §12.3).

use std::sync::Arc;

use formats::chat::ToolDefinition;
use serde_json::{Value, json};

use super::meta_tools;
use crate::tools::flatten;

/// Most tools in the belt.
pub(super) const CAPACITY: usize = 80;

/// What is offered to the model: the meta-tools, the belt in the order in which tools were added,
/// `final_answer`. The list is kept, not built anew for each request, and its head never changes,
/// so that prompt caches hold.
pub(super) struct Belt {
    catalog: Arc<[ToolDefinition]>,
    offered: Vec<ToolDefinition>,
    /// How many meta-tools there are before the belt.
    before: usize,
}

impl Belt {
    pub(super) fn new(catalog: Arc<[ToolDefinition]>) -> Self {
        let mut offered = meta_tools::definitions();
        let before = offered.len();
        offered.push(meta_tools::final_answer());
        Self {
            catalog,
            offered,
            before,
        }
    }

    pub(super) fn offered(&self) -> &[ToolDefinition] {
        &self.offered
    }

    fn size(&self) -> usize {
        self.offered.len() - self.before - 1
    }

    /// Where a tool of the belt stands among the offered ones.
    fn position(&self, name: &str) -> Option<usize> {
        self.offered
            .iter()
            .take(self.before + self.size())
            .skip(self.before)
            .position(|tool| tool.function.name == name)
            .map(|index| index + self.before)
    }

    pub(super) fn holds(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    fn known(&self, name: &str) -> Option<&ToolDefinition> {
        self.catalog.iter().find(|tool| tool.function.name == name)
    }

    /// The names of the tools that can be added, sorted.
    pub(super) fn list(&self) -> Value {
        let mut names: Vec<&str> = self
            .catalog
            .iter()
            .map(|tool| tool.function.name.as_str())
            .filter(|name| !self.holds(name) && !meta_tools::is_own(name))
            .collect();
        names.sort_unstable();
        json!(names)
    }

    pub(super) fn inspect(&self, name: &str) -> Value {
        if name.is_empty() {
            return no_name();
        }
        match self.known(name) {
            Some(tool) => json!({
                "name": name,
                "description": tool.function.description,
                "parameters": flatten(&tool.function.parameters),
            }),
            None => unknown(name),
        }
    }

    pub(super) fn add(&mut self, name: &str) -> Value {
        if name.is_empty() {
            return no_name();
        }
        let Some(tool) = self.known(name) else {
            return unknown(name);
        };
        if self.holds(name) || meta_tools::is_own(name) {
            return json!({"error": format!("the tool `{name}` is already in the toolbelt")});
        }
        if self.size() >= CAPACITY {
            return json!({"error": format!(
                "the toolbelt is full ({CAPACITY} tools); remove one with `toolbelt_remove_tool` first"
            )});
        }
        let tool = tool.clone();
        self.offered.insert(self.before + self.size(), tool);
        json!({"success": true, "toolbelt_size": self.size()})
    }

    pub(super) fn remove(&mut self, name: &str) -> Value {
        if name.is_empty() {
            return no_name();
        }
        match self.position(name) {
            Some(position) => {
                self.offered.remove(position);
                json!({"success": true, "toolbelt_size": self.size()})
            }
            None => json!({"error": format!("the tool `{name}` is not in the toolbelt")}),
        }
    }
}

fn no_name() -> Value {
    json!({"error": "`tool_name` is required"})
}

fn unknown(name: &str) -> Value {
    json!({"error": format!("there is no tool `{name}`")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belt(names: &[&str]) -> Belt {
        Belt::new(
            names
                .iter()
                .map(|name| ToolDefinition::new(*name, "about it", json!({"type": "object"})))
                .collect(),
        )
    }

    fn offered(belt: &Belt) -> Vec<&str> {
        belt.offered()
            .iter()
            .map(|tool| tool.function.name.as_str())
            .collect()
    }

    #[test]
    fn a_round_trip_keeps_the_order_of_adding() {
        let mut belt = belt(&["zebra", "apple", "mango", "todo_write"]);
        assert_eq!(belt.list(), json!(["apple", "mango", "zebra"]));
        assert_eq!(
            belt.add("zebra"),
            json!({"success": true, "toolbelt_size": 1})
        );
        assert_eq!(
            belt.add("apple"),
            json!({"success": true, "toolbelt_size": 2})
        );
        assert_eq!(belt.list(), json!(["mango"]));
        assert_eq!(
            offered(&belt),
            [
                "toolbelt_list_tools",
                "toolbelt_inspect_tool",
                "toolbelt_add_tool",
                "toolbelt_remove_tool",
                "todo_write",
                "zebra",
                "apple",
                "final_answer"
            ]
        );
        assert_eq!(
            belt.inspect("mango"),
            json!({"name": "mango", "description": "about it", "parameters": {"type": "object"}})
        );
        assert_eq!(
            belt.remove("zebra"),
            json!({"success": true, "toolbelt_size": 1})
        );
        assert!(!belt.holds("zebra") && belt.holds("apple"));
        for refused in [
            belt.add(""),
            belt.add("nope"),
            belt.add("apple"),
            belt.add("todo_write"),
            belt.remove(""),
            belt.remove("zebra"),
            belt.remove("todo_write"),
            belt.inspect(""),
            belt.inspect("nope"),
        ] {
            let keys: Vec<&String> = refused.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["error"]);
        }
    }

    #[test]
    fn the_belt_has_room_for_eighty() {
        let names: Vec<String> = (0..81).map(|number| format!("t{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut belt = belt(&names);
        for name in &names[..80] {
            assert_eq!(belt.add(name)["success"], true);
        }
        assert!(belt.add("t80").get("error").is_some());
        assert_eq!(belt.offered().len(), 86);
        belt.remove("t3");
        assert_eq!(
            belt.add("t80"),
            json!({"success": true, "toolbelt_size": 80})
        );
    }
}
