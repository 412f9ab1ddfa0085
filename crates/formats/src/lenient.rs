//! Values of the open maps in task files, read as leniently as the files were written: numbers and
//! booleans may be text.

use serde_json::Value;

/// The boolean that `value` stands for: itself, 1 or 0, or one of the usual words.
#[must_use]
pub fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(word) => match word.trim().to_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The finite number that `value` stands for.
#[must_use]
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_numbers_stand_for_booleans() {
        for (value, expected) in [
            (json!(true), Some(true)),
            (json!(0.0), Some(false)),
            (json!(2), None),
            (json!(" On "), Some(true)),
            (json!("n"), Some(false)),
            (json!("perhaps"), None),
            (json!(null), None),
        ] {
            assert_eq!(flag(&value), expected, "{value}");
        }
    }

    #[test]
    fn text_stands_for_a_number_if_it_is_finite() {
        for (value, expected) in [
            (json!(3), Some(3.0)),
            (json!(" -2.5 "), Some(-2.5)),
            (json!("inf"), None),
            (json!("7 %"), None),
            (json!([1]), None),
        ] {
            assert_eq!(number(&value), expected, "{value}");
        }
    }
}
