//! Functions as they are declared, and the names of theirs that are written differently.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use serde::Serialize;
use serde_json::Value;

use llm_wire::repair::{
    NameRule, Renamed, ToolNames, gemini_parameters, rooted_parameters, sendable_arguments,
};

/// The declaration of a function.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Cow<'a, Value>>,
}

/// In which language parameters are described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// Google's dialect, which every model takes.
    Dialect,
    /// JSON Schema as the tool gives it.
    JsonSchema,
}

/// The functions of a request.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Their names on the wire.
    pub(super) names: ToolNames,
    /// The parameters of theirs in the dialect, by the place of the tool.
    parameters: Vec<Option<Value>>,
    /// Names of parameters that are written differently, by the name of the tool.
    renamed: HashMap<String, Renamed>,
}

impl Functions {
    /// The functions for `tools`. The error is a sentence about a name that two of them have.
    pub(super) fn new(
        tools: &[ToolDefinition],
        messages: &[Message],
        language: Language,
    ) -> Result<Self, String> {
        let mut seen = HashSet::new();
        let mut functions = Self {
            names: ToolNames::under(NameRule::LetterFirst, tools, messages),
            ..Self::default()
        };
        for tool in tools {
            let name = tool.function.name.as_str();
            if !seen.insert(name) {
                return Err(format!("two tools have the name `{name}`"));
            }
            if language == Language::JsonSchema {
                continue;
            }
            let (parameters, renamed) = gemini_parameters(&tool.function.parameters);
            functions.parameters.push(parameters);
            if !renamed.is_empty() {
                functions.renamed.insert(name.to_owned(), renamed);
            }
        }
        Ok(functions)
    }

    /// The declarations of `tools`, those that these functions were made of.
    pub(super) fn declarations<'a>(&'a self, tools: &'a [ToolDefinition]) -> Vec<Declaration<'a>> {
        let declare = |(index, tool): (usize, &'a ToolDefinition)| {
            let function = &tool.function;
            let parameters = self.parameters.get(index);
            Declaration {
                name: self.names.wire(&function.name),
                description: &function.description,
                parameters: parameters.cloned().flatten(),
                parameters_json_schema: parameters
                    .is_none()
                    .then(|| rooted_parameters(&function.parameters)),
            }
        };
        tools.iter().enumerate().map(declare).collect()
    }

    /// A function of our own.
    pub(super) fn own<'a>(
        name: &'a str,
        description: &'a str,
        parameters: Option<Value>,
    ) -> Declaration<'a> {
        Declaration {
            name: Cow::Borrowed(name),
            description,
            parameters,
            parameters_json_schema: None,
        }
    }

    /// The arguments of a call of the tool `name`, as they go out.
    pub(super) fn wire_arguments<'t>(&self, name: &str, arguments: &'t str) -> Cow<'t, str> {
        let sendable = sendable_arguments(arguments);
        let Some(renamed) = self.renamed.get(name) else {
            return sendable;
        };
        match serde_json::from_str::<Value>(&sendable) {
            Ok(value) => {
                let to_wire = |key: &str| renamed.get(key).map(String::as_str);
                Cow::Owned(with_names(value, &to_wire).to_string())
            }
            Err(_) => sendable,
        }
    }

    /// The arguments of a call of the tool `name`, as its own schema names them.
    pub(super) fn own_arguments(&self, name: &str, arguments: &Value) -> String {
        match self.renamed.get(name) {
            Some(renamed) => under_own_names(arguments, renamed),
            None => arguments.to_string(),
        }
    }
}

/// `arguments` with the names that were replaced as `renamed` tells.
pub(super) fn under_own_names(arguments: &Value, renamed: &Renamed) -> String {
    let back: BTreeMap<&str, &str> = renamed
        .iter()
        .map(|(own, wire)| (wire.as_str(), own.as_str()))
        .collect();
    let to_own = |key: &str| back.get(key).copied();
    with_names(arguments.clone(), &to_own).to_string()
}

/// `value` with the keys of its objects renamed where `name` knows another one.
fn with_names<'n>(value: Value, name: &dyn Fn(&str) -> Option<&'n str>) -> Value {
    match value {
        Value::Array(list) => list
            .into_iter()
            .map(|value| with_names(value, name))
            .collect(),
        Value::Object(object) => {
            let renamed: Object = object
                .into_iter()
                .map(|(key, value)| {
                    let other = name(&key).map(str::to_owned);
                    (other.unwrap_or(key), with_names(value, name))
                })
                .collect();
            Value::Object(renamed)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_parameters_go_there_and_back() {
        let schema = json!({"type": "object", "properties": {
            "user-id": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"2nd": {"type": "integer"}}}}
        }});
        let tools = [ToolDefinition::new("f", "", schema)];
        let functions = Functions::new(&tools, &[], Language::Dialect).unwrap();
        let own = json!({"user-id": "a", "list": [{"2nd": 2}]});
        let wire = functions.wire_arguments("f", &own.to_string()).into_owned();
        assert!(
            !wire.contains("user-id") && !wire.contains("2nd\""),
            "{wire}"
        );
        let wire: Value = serde_json::from_str(&wire).unwrap();
        assert_eq!(functions.own_arguments("f", &wire), own.to_string());
        // A tool of plain names is not touched, not even in its spelling.
        assert_eq!(
            functions.wire_arguments("g", "{\"n\": 1.0}"),
            "{\"n\": 1.0}"
        );
    }
}
