//! Reading `agent_config_values` (`spec/agents.md` §6.4).
//!
//! The settings of existing tasks come from web forms: numbers as strings, `null` for an empty
//! field, values outside the documented range. All of that is understood, guided by the JSON
//! Schema of the settings type; what makes no sense is refused before the run begins. A field
//! marked `#[schemars(extend("x-lenient" = true))]` falls back to its default instead of being
//! refused.

mod seconds;

use formats::Object;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use seconds::Seconds;

/// What becomes of a value outside its documented range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// It is used, with a warning.
    #[default]
    Told,
    /// It is refused.
    Enforced,
}

/// The settings and what is unusual about them, or what is wrong.
pub(crate) fn read<C: DeserializeOwned + JsonSchema>(
    values: &Object,
    ranges: Ranges,
) -> Result<(C, Vec<String>), String> {
    let schema = schemars::schema_for!(C);
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut warnings = Vec::new();
    let mut tidy = Object::new();
    for (name, rules) in properties.into_iter().flatten() {
        let Some(given) = values.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        let enforced = ranges == Ranges::Enforced;
        let lenient = !enforced && rules.get("x-lenient") == Some(&Value::Bool(true));
        match fit(given, rules, lenient) {
            Ok(value) => match out_of_range(&value, rules) {
                None => {
                    tidy.insert(name.clone(), value);
                }
                Some(rule) if enforced => return Err(format!("`{name}` {rule}, got {given}")),
                Some(rule) if lenient => warnings.push(ignored(name, rule, given)),
                Some(rule) => {
                    warnings.push(format!(
                        "setting `{name}` {rule}, got {given}; used as given"
                    ));
                    tidy.insert(name.clone(), value);
                }
            },
            Err(rule) if lenient => warnings.push(ignored(name, rule, given)),
            Err(rule) => return Err(format!("`{name}` {rule}, got {given}")),
        }
    }
    match serde_json::from_value(Value::Object(tidy.clone())) {
        Ok(config) => Ok((config, warnings)),
        Err(error) => Err(blame::<C>(&tidy, &error)),
    }
}

fn ignored(name: &str, rule: impl std::fmt::Display, given: &Value) -> String {
    format!("setting `{name}` {rule}, got {given}; ignored")
}

/// Serde does not say which field it refused: ask for each alone.
fn blame<C: DeserializeOwned>(values: &Object, error: &serde_json::Error) -> String {
    let culprit = values.iter().find_map(|(name, value)| {
        let alone = Object::from_iter([(name.clone(), value.clone())]);
        let error = serde_json::from_value::<C>(Value::Object(alone)).err()?;
        Some(format!("`{name}`: {error}, got {value}"))
    });
    culprit.unwrap_or_else(|| error.to_string())
}

/// `value` as the type that `rules` ask for, or the rule that it breaks.
fn fit(value: &Value, rules: &Value, lenient: bool) -> Result<Value, &'static str> {
    let wanted = |name: &str| match rules.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(many)) => many.iter().any(|one| one == name),
        _ => false,
    };
    if wanted("integer") {
        let number = number_in(value).ok_or("must be a whole number")?;
        if number.fract() != 0.0 && !lenient {
            return Err("must be a whole number");
        }
        let unsigned = rules
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| format.starts_with("uint"));
        if unsigned && number < 0.0 {
            return Err("must not be negative");
        }
        if number.abs() >= MAX_WHOLE {
            return Err("is too large");
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked against 2^53 above"
        )]
        return Ok(Value::from(number.trunc() as i64));
    }
    if wanted("number") {
        let number = number_in(value).ok_or("must be a number")?;
        return Ok(Value::from(number));
    }
    if wanted("boolean") {
        return truth_in(value)
            .map(Value::Bool)
            .ok_or("must be true or false");
    }
    let options = options(rules);
    if !options.is_empty() {
        let text = value.as_str().unwrap_or_default().trim().to_lowercase();
        return options
            .contains(&text.as_str())
            .then_some(Value::String(text))
            .ok_or("is not one of the options");
    }
    Ok(value.clone())
}

/// The words that a field takes, where it takes only certain ones.
fn options(rules: &Value) -> Vec<&str> {
    let listed = rules.get("enum").and_then(Value::as_array);
    let mut words: Vec<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.extend(rules.get("const").and_then(Value::as_str));
    for key in ["anyOf", "oneOf"] {
        let parts = rules.get(key).and_then(Value::as_array);
        words.extend(parts.into_iter().flatten().flat_map(options));
    }
    words
}

/// Whole numbers up to here are exact as `f64`.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

fn number_in(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

fn truth_in(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        Value::Number(number) if number.as_i64() == Some(0) => Some(false),
        _ => None,
    }
}

fn out_of_range(value: &Value, rules: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => Some(format!("should be at least {least}")),
        (_, Some(most)) if number > most => Some(format!("should be at most {most}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    #[serde(default)]
    struct Config {
        #[schemars(with = "f64", range(min = 300.0, max = 28800.0))]
        timeout: Seconds,
        #[schemars(range(min = 1, max = 1000))]
        max_steps: u64,
        #[schemars(extend("x-lenient" = true))]
        budget: u64,
        #[schemars(extend("x-lenient" = true))]
        flag: bool,
    }

    impl Default for Config {
        fn default() -> Self {
            Self {
                timeout: Seconds::from_secs(10_800),
                max_steps: 100,
                budget: 0,
                flag: false,
            }
        }
    }

    fn config(values: Value) -> Result<(Config, Vec<String>), String> {
        let Value::Object(values) = values else {
            panic!("not an object")
        };
        read(&values, Ranges::Told)
    }

    #[test]
    fn absent_and_null_mean_the_default() {
        for values in [
            json!({}),
            json!({"timeout": null, "max_steps": null, "flag": null}),
        ] {
            assert_eq!(config(values).unwrap(), (Config::default(), Vec::new()));
        }
    }

    #[test]
    fn forms_write_numbers_as_strings_and_whole_numbers_as_floats() {
        let (read, warnings) =
            config(json!({"timeout": "600", "max_steps": 20.0, "budget": "1000.7", "other": 1}))
                .unwrap();
        assert_eq!(
            (read.timeout, read.max_steps, read.budget),
            (Seconds::from_secs(600), 20, 1000)
        );
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn out_of_range_is_accepted_with_a_warning() {
        let (read, warnings) = config(json!({"timeout": 5, "max_steps": 5000})).unwrap();
        assert_eq!(
            (read.timeout, read.max_steps),
            (Seconds::from_secs(5), 5000)
        );
        assert_eq!(
            warnings,
            [
                "setting `timeout` should be at least 300, got 5; used as given",
                "setting `max_steps` should be at most 1000, got 5000; used as given"
            ]
        );
    }

    #[test]
    fn ranges_are_enforced_where_that_is_asked_for() {
        for (values, message) in [
            (
                json!({"timeout": 5}),
                "`timeout` should be at least 300, got 5",
            ),
            (
                json!({"max_steps": 5000}),
                "`max_steps` should be at most 1000, got 5000",
            ),
            (
                json!({"budget": -5}),
                "`budget` must not be negative, got -5",
            ),
            (
                json!({"flag": "yes"}),
                r#"`flag` must be true or false, got "yes""#,
            ),
        ] {
            let Value::Object(values) = values else {
                panic!("not an object")
            };
            let read = read::<Config>(&values, Ranges::Enforced);
            assert_eq!(read.unwrap_err(), message);
        }
        let within = Object::from_iter([("max_steps".to_owned(), json!(1000))]);
        assert!(read::<Config>(&within, Ranges::Enforced).is_ok());
    }

    #[test]
    fn nonsense_is_refused_with_name_rule_and_value() {
        for (values, message) in [
            (
                json!({"max_steps": "many"}),
                r#"`max_steps` must be a whole number, got "many""#,
            ),
            (
                json!({"max_steps": 2.5}),
                "`max_steps` must be a whole number, got 2.5",
            ),
            (
                json!({"max_steps": -1}),
                "`max_steps` must not be negative, got -1",
            ),
            (json!({"timeout": []}), "`timeout` must be a number, got []"),
            (
                json!({"timeout": "NaN"}),
                r#"`timeout` must be a number, got "NaN""#,
            ),
            (
                json!({"timeout": 0}),
                "`timeout`: must be more than 0 and at most 31557600 seconds, got 0.0",
            ),
        ] {
            assert_eq!(config(values).unwrap_err(), message);
        }
    }

    #[test]
    fn lenient_fields_fall_back_with_a_warning() {
        for (values, budget, flag, warned) in [
            (json!({"budget": -5, "flag": 1}), 0, false, 2),
            (json!({"budget": "x", "flag": "yes"}), 0, false, 2),
            (json!({"budget": 7, "flag": " TRUE "}), 7, true, 0),
            (json!({"flag": 0}), 0, false, 0),
            (json!({"flag": "0"}), 0, false, 0),
        ] {
            let (read, warnings) = config(values.clone()).unwrap();
            assert_eq!((read.budget, read.flag), (budget, flag), "{values}");
            assert_eq!(warnings.len(), warned, "{values}: {warnings:?}");
        }
    }
}
