//! Arguments of a call, checked against the tool's parameters, with the reference's texts (§1.5).

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Kind, Parameter, ToolError};

/// Checks arguments and fills in defaults. Lenient where models are careless: a number or a truth value may come as text,
/// and `null` stands for the default.
pub(crate) fn check(
    parameters: &[Parameter],
    mut given: JsonObject,
) -> Result<JsonObject, ToolError> {
    let mut checked = JsonObject::new();
    let mut faults = Vec::new();
    for parameter in parameters {
        let value = given.shift_remove(parameter.name);
        match fit(parameter.kind, value) {
            Ok(value) => {
                checked.insert(parameter.name.to_owned(), value);
            }
            Err(fault) => faults.push(format!("{}: {fault}", parameter.name)),
        }
    }
    faults.extend(
        given
            .keys()
            .map(|name| format!("{name}: Unexpected keyword argument")),
    );
    if faults.is_empty() {
        Ok(checked)
    } else {
        Err(ToolError::Arguments(faults.join("; ")))
    }
}

/// Reads checked arguments into a tool's own type.
pub(crate) fn parse<T: DeserializeOwned>(checked: JsonObject) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(checked))
        .map_err(|error| ToolError::Arguments(error.to_string()))
}

fn fit(kind: Kind, value: Option<Value>) -> Result<Value, &'static str> {
    match (kind, value) {
        (Kind::Required, None) => Err("Missing required argument"),
        (Kind::Required | Kind::Text(_), Some(value @ Value::String(_))) => Ok(value),
        (Kind::Text(default), None | Some(Value::Null)) => Ok(default.into()),
        (Kind::Required | Kind::Text(_), _) => Err("Input should be a valid string"),
        (Kind::Integer(default), None | Some(Value::Null)) => Ok(default.into()),
        (Kind::Integer(_), Some(value)) => integer(&value)
            .map(Value::from)
            .ok_or("Input should be a valid integer"),
        (Kind::Boolean(default), None | Some(Value::Null)) => Ok(default.into()),
        (Kind::Boolean(_), Some(value)) => boolean(&value)
            .map(Value::from)
            .ok_or("Input should be a valid boolean"),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// `5.0` is an integer, `5.5` is not. Beyond 2⁵³ a float no longer tells one integer from the next.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        format!("{number:.0}").parse().ok()
    } else {
        None
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter {
            name: "path",
            kind: Kind::Required,
            description: "",
        },
        Parameter {
            name: "mark",
            kind: Kind::Text("x"),
            description: "",
        },
        Parameter {
            name: "depth",
            kind: Kind::Integer(3),
            description: "",
        },
        Parameter {
            name: "deep",
            kind: Kind::Boolean(true),
            description: "",
        },
    ];

    fn checked(given: Value) -> Result<Value, String> {
        let Value::Object(given) = given else {
            panic!("not an object")
        };
        check(PARAMETERS, given)
            .map(Value::Object)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_filled_in_and_null_means_the_default() {
        let filled = json!({"path": "/", "mark": "x", "depth": 3, "deep": true});
        assert_eq!(checked(json!({"path": "/"})).unwrap(), filled);
        assert_eq!(
            checked(json!({"path": "/", "mark": null, "depth": null, "deep": null})).unwrap(),
            filled
        );
    }

    #[test]
    fn numbers_and_truth_values_may_come_as_text() {
        let wanted = json!({"path": "/", "mark": "x", "depth": 5, "deep": false});
        assert_eq!(
            checked(json!({"path": "/", "depth": "5", "deep": "False"})).unwrap(),
            wanted
        );
        assert_eq!(
            checked(json!({"path": "/", "depth": 5.0, "deep": 0})).unwrap(),
            wanted
        );
    }

    #[test]
    fn every_fault_is_named_in_one_message() {
        let message =
            checked(json!({"depth": 1.5, "deep": "maybe", "mark": 7, "bogus": 1})).unwrap_err();
        assert_eq!(
            message,
            "Validation error: path: Missing required argument; mark: Input should be a valid string; \
             depth: Input should be a valid integer; deep: Input should be a valid boolean; \
             bogus: Unexpected keyword argument"
        );
    }

    #[test]
    fn null_is_no_value_for_a_required_argument() {
        assert_eq!(
            checked(json!({"path": null})).unwrap_err(),
            "Validation error: path: Input should be a valid string"
        );
    }
}
