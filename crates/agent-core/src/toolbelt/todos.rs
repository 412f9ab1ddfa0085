//! The model's list of todos (`spec/agents.md` §12.3).

use formats::Object;
use serde_json::{Value, json};

const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "cancelled"];

#[derive(Debug)]
struct Todo {
    id: String,
    content: String,
    status: String,
}

/// The todos in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Todos(Vec<Todo>);

impl Todos {
    /// Carries out a call of `todo_write`. Items that are right are applied even when others are
    /// not.
    pub(super) fn write(&mut self, arguments: &Object) -> Value {
        let items = match arguments.get("todos") {
            None | Some(Value::Null) => &Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => return json!({"error": "`todos` must be an array"}),
        };
        if arguments.get("merge") == Some(&Value::Bool(false)) {
            self.0.clear();
        }
        let (mut created, mut updated, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match self.apply(item) {
                Ok(Applied::Created(id)) => created.push(id),
                Ok(Applied::Updated(id)) => updated.push(id),
                Err(error) => errors.push(format!("todo {}: {error}", index + 1)),
            }
        }
        let mut result = json!({
            "success": errors.is_empty(),
            "created": created,
            "updated": updated,
            "todos": self.0.iter().map(|todo| json!({
                "id": todo.id, "content": todo.content, "status": todo.status
            })).collect::<Vec<_>>(),
            "summary": self.summary(),
        });
        if let Value::Object(object) = &mut result
            && !errors.is_empty()
        {
            object.insert("errors".to_owned(), json!(errors));
        }
        result
    }

    fn apply(&mut self, item: &Value) -> Result<Applied, String> {
        let Value::Object(item) = item else {
            return Err("must be an object".to_owned());
        };
        let id = text_of(item.get("id"));
        if id.is_empty() {
            return Err("`id` is required".to_owned());
        }
        let status = match item.get("status") {
            None | Some(Value::Null) => "pending".to_owned(),
            given => text_of(given),
        };
        if !STATUSES.contains(&status.as_str()) {
            return Err(format!(
                "`{id}`: status must be one of {}, got `{status}`",
                STATUSES.join(", ")
            ));
        }
        let content = text_of(item.get("content"));
        match self.0.iter_mut().find(|todo| todo.id == id) {
            Some(todo) => {
                todo.status = status;
                if !content.is_empty() {
                    todo.content = content;
                }
                Ok(Applied::Updated(id))
            }
            None if content.is_empty() => Err(format!("`{id}` is new and needs `content`")),
            None => {
                self.0.push(Todo {
                    id: id.clone(),
                    content,
                    status,
                });
                Ok(Applied::Created(id))
            }
        }
    }

    fn summary(&self) -> Value {
        let count = |status: &str| self.0.iter().filter(|todo| todo.status == status).count();
        let mut summary = json!({"total": self.0.len()});
        for status in STATUSES {
            if let Value::Object(object) = &mut summary {
                object.insert(status.to_owned(), count(status).into());
            }
        }
        summary
    }

    /// Id and status of each todo that is neither completed nor cancelled.
    pub(super) fn open(&self) -> Vec<(&str, &str)> {
        self.0
            .iter()
            .filter(|todo| !matches!(todo.status.as_str(), "completed" | "cancelled"))
            .map(|todo| (todo.id.as_str(), todo.status.as_str()))
            .collect()
    }
}

enum Applied {
    Created(String),
    Updated(String),
}

/// Ids and contents may come as numbers.
fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(todos: &mut Todos, arguments: Value) -> Value {
        match arguments {
            Value::Object(arguments) => todos.write(&arguments),
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn todos_are_created_updated_and_counted() {
        let mut todos = Todos::default();
        assert_eq!(
            write(
                &mut todos,
                json!({"todos": [{"id": 1, "content": "look", "status": "in_progress"},
                                 {"id": "b", "content": "tell"}], "merge": false})
            ),
            json!({"success": true, "created": ["1", "b"], "updated": [],
                "todos": [{"id": "1", "content": "look", "status": "in_progress"},
                          {"id": "b", "content": "tell", "status": "pending"}],
                "summary": {"total": 2, "pending": 1, "in_progress": 1, "completed": 0, "cancelled": 0}})
        );
        assert_eq!(todos.open(), [("1", "in_progress"), ("b", "pending")]);
        let result = write(
            &mut todos,
            json!({"todos": [{"id": "1", "status": "completed"},
                             {"id": "b", "status": "cancelled", "content": "leave it"}], "merge": true}),
        );
        assert_eq!(result["updated"], json!(["1", "b"]));
        assert_eq!(
            result["todos"],
            json!([{"id": "1", "content": "look", "status": "completed"},
                   {"id": "b", "content": "leave it", "status": "cancelled"}])
        );
        assert!(todos.open().is_empty());
    }

    #[test]
    fn wrong_items_are_named_and_the_others_applied() {
        let mut todos = Todos::default();
        let result = write(
            &mut todos,
            json!({"todos": ["x", {"status": "pending"}, {"id": "a", "status": "soon"},
                             {"id": "a"}, {"id": "ok", "content": "c"}]}),
        );
        assert_eq!(result["success"], false);
        assert_eq!(result["created"], json!(["ok"]));
        assert_eq!(result["errors"].as_array().unwrap().len(), 4);
        assert!(
            write(&mut todos, json!({"todos": "x"}))
                .get("error")
                .is_some()
        );
        // Merging is the default; replacing forgets.
        assert_eq!(write(&mut todos, json!({}))["summary"]["total"], 1);
        assert_eq!(
            write(&mut todos, json!({"merge": false}))["summary"]["total"],
            0
        );
    }
}
