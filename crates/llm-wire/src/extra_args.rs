//! Extra arguments of a call: which ones are ours, which ones go into the request (`spec/llm.md` §5).

use std::time::Duration;

use formats::Object;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Parameters that the request itself decides.
const RESERVED: &[&str] = &["model", "messages", "tools", "stream", "stream_options"];

/// Parameters that are settings of this client and never sent as they are.
const SETTINGS: &[&str] = &[
    "api_base",
    "base_url",
    "api_key",
    "timeout",
    "num_retries",
    "max_retries",
    "extra_headers",
    "extra_body",
    "drop_params",
    "reasoning",
    "api",
    "api_version",
    "vertex_project",
    "vertex_location",
    "betas",
    "mark_last_message",
];

/// Most attempts that `num_retries` may ask for.
const MOST_RETRIES: u64 = 100;
/// Longest `timeout`, in seconds: one day.
const LONGEST_TIMEOUT: f64 = 86_400.0;

/// OpenAI's interfaces for chats, by the values of the extra argument `api`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `chat_completions`.
    ChatCompletions,
    /// `responses`.
    Responses,
}

/// The settings among the extra arguments of a call.
#[derive(Debug, Default)]
pub struct Settings<'a> {
    /// Wall-clock limit of one attempt.
    pub timeout: Option<Duration>,
    /// Attempts in all.
    pub attempts: Option<u32>,
    /// Parameters that the model does not take are left out instead of refused.
    pub drop_params: bool,
    /// Further headers.
    pub headers: HeaderMap,
    /// Further fields of the request's body.
    pub body: Option<&'a Object>,
    /// `reasoning.effort`, the Responses API's place for `reasoning_effort`.
    pub reasoning_effort: Option<&'a Value>,
    /// `reasoning.summary`: what the model thought is to be told in short.
    pub reasoning_summary: Option<&'a Value>,
    /// Which of OpenAI's interfaces the call goes to, where it is not left to the model.
    pub api: Option<Api>,
    /// Beta features of Anthropic's interface.
    pub betas: Vec<&'a str>,
    /// Whether the prompt cache is to keep the last message too; unset means yes.
    mark_last_message: Option<bool>,
    /// The version of Azure's interface.
    pub api_version: Option<&'a str>,
    /// The project at Google Cloud.
    pub vertex_project: Option<&'a str>,
    /// The location at Google Cloud.
    pub vertex_location: Option<&'a str>,
    /// Another base URL.
    pub api_base: Option<&'a str>,
    /// Another key.
    pub api_key: Option<&'a str>,
}

impl<'a> Settings<'a> {
    /// Reads the settings. The error is a sentence that names the argument and its value, if it is
    /// no secret.
    ///
    /// # Errors
    /// A sentence about a setting that cannot be honoured.
    pub fn read(extra_args: &'a Object) -> Result<Self, String> {
        if let Some(name) = RESERVED.iter().find(|name| extra_args.contains_key(**name)) {
            return Err(format!(
                "extra argument `{name}` is decided by the call itself and cannot be given"
            ));
        }
        let mut settings = Self::default();
        for (name, value) in extra_args.iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "timeout" => settings.timeout = Some(seconds(value)?),
                "num_retries" | "max_retries" => {
                    settings.attempts = Some(retries(name, value)? + 1);
                }
                "drop_params" => {
                    settings.drop_params = value
                        .as_bool()
                        .ok_or_else(|| wrong("drop_params", "true or false", value))?;
                }
                "extra_headers" => settings.headers = headers(value)?,
                "extra_body" => {
                    let body = value
                        .as_object()
                        .ok_or_else(|| wrong("extra_body", "an object", value))?;
                    if let Some(name) = RESERVED.iter().find(|name| body.contains_key(**name)) {
                        return Err(format!(
                            "`{name}` in extra_body is decided by the call itself and cannot be given"
                        ));
                    }
                    settings.body = Some(body);
                }
                "reasoning" => {
                    let told = |key: &str| value.get(key).filter(|value| !value.is_null());
                    settings.reasoning_effort = told("effort");
                    settings.reasoning_summary = told("summary");
                    if settings.reasoning_effort.is_none() && settings.reasoning_summary.is_none() {
                        return Err(wrong(
                            "reasoning",
                            "an object with `effort` or `summary` (`extra_body` takes other forms)",
                            value,
                        ));
                    }
                }
                "api" => settings.api = Some(api(value)?),
                "betas" => settings.betas = betas(value)?,
                "mark_last_message" => {
                    let marks = value.as_bool();
                    settings.mark_last_message =
                        Some(marks.ok_or_else(|| wrong(name, "true or false", value))?);
                }
                "api_version" | "vertex_project" | "vertex_location" => {
                    let text = value.as_str();
                    let text = text.ok_or_else(|| wrong(name, "a string", value))?;
                    let place = match name.as_str() {
                        "api_version" => &mut settings.api_version,
                        "vertex_project" => &mut settings.vertex_project,
                        _ => &mut settings.vertex_location,
                    };
                    *place = Some(text);
                }
                "api_base" | "base_url" => {
                    settings.api_base = Some(
                        value
                            .as_str()
                            .ok_or_else(|| wrong(name, "a string", value))?,
                    );
                }
                "api_key" => {
                    settings.api_key = Some(
                        value
                            .as_str()
                            .ok_or("extra argument `api_key` must be a string")?,
                    );
                }
                _ => {}
            }
        }
        Ok(settings)
    }

    /// Whether the prompt cache is to keep the last message too. A caller that replaces it next time
    /// says no.
    pub fn marks_last_message(&self) -> bool {
        self.mark_last_message.unwrap_or(true)
    }
}

/// The arguments that go into the request, settings left out.
pub fn parameters(extra_args: &Object) -> impl Iterator<Item = (&str, &Value)> {
    extra_args
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, value)| !SETTINGS.contains(name) && !value.is_null())
}

fn wrong(name: &str, wanted: &str, value: &Value) -> String {
    format!("extra argument `{name}` must be {wanted}, got {value}")
}

fn betas(value: &Value) -> Result<Vec<&str>, String> {
    let names = value
        .as_array()
        .map(|names| names.iter().map(Value::as_str));
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let names: Option<Vec<&str>> = names.and_then(|mut names| {
        names.try_fold(Vec::new(), |mut all, name| {
            all.push(name.filter(is_name)?);
            Some(all)
        })
    });
    names.ok_or_else(|| wrong("betas", "a list of names", value))
}

fn api(value: &Value) -> Result<Api, String> {
    match value.as_str() {
        Some("chat_completions") => Ok(Api::ChatCompletions),
        Some("responses") => Ok(Api::Responses),
        _ => Err(wrong("api", "`chat_completions` or `responses`", value)),
    }
}

fn seconds(value: &Value) -> Result<Duration, String> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())
        .filter(|number| *number > 0.0 && *number <= LONGEST_TIMEOUT)
        .ok_or_else(|| {
            wrong(
                "timeout",
                &format!("a number of seconds above 0 and up to {LONGEST_TIMEOUT}"),
                value,
            )
        })?;
    Ok(Duration::from_secs_f64(number))
}

fn retries(name: &str, value: &Value) -> Result<u32, String> {
    value
        .as_u64()
        .filter(|number| *number <= MOST_RETRIES)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| {
            wrong(
                name,
                &format!("a whole number from 0 to {MOST_RETRIES}"),
                value,
            )
        })
}

fn headers(value: &Value) -> Result<HeaderMap, String> {
    let pairs = value
        .as_object()
        .ok_or("extra argument `extra_headers` must be an object of strings")?;
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        // The value may be a secret: it is not repeated.
        let problem = || format!("extra_headers: `{name}` is no valid header with a string value");
        let key = HeaderName::try_from(name.as_str()).map_err(|_| problem())?;
        let mut value = value
            .as_str()
            .and_then(|text| HeaderValue::try_from(text).ok())
            .ok_or_else(problem)?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: &Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn settings_are_read_and_not_sent() {
        let args = object(&json!({
            "temperature": 0.5, "timeout": 2.5, "num_retries": 0, "api_key": "secret",
            "reasoning": {"effort": "low"}, "extra_body": {"vendor": 1}, "seed": null
        }));
        let settings = Settings::read(&args).unwrap();
        assert_eq!(settings.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(settings.attempts, Some(1));
        assert_eq!(settings.reasoning_effort, Some(&json!("low")));
        let sent: Vec<_> = parameters(&args).map(|(name, _)| name).collect();
        assert_eq!(sent, ["temperature"]);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name_and_value() {
        for (args, expected) in [
            (json!({"messages": []}), "`messages` is decided by the call"),
            (json!({"stream": true}), "`stream` is decided by the call"),
            (
                json!({"extra_body": {"model": "x"}}),
                "`model` in extra_body",
            ),
            (
                json!({"timeout": -1}),
                "`timeout` must be a number of seconds above 0 and up to 86400, got -1",
            ),
            (
                json!({"num_retries": 1.5}),
                "`num_retries` must be a whole number from 0 to 100, got 1.5",
            ),
            (
                json!({"drop_params": "yes"}),
                "`drop_params` must be true or false, got \"yes\"",
            ),
            (
                json!({"reasoning": "high"}),
                "`reasoning` must be an object with `effort` or `summary`",
            ),
            (
                json!({"betas": ["a,b"]}),
                "`betas` must be a list of names, got [\"a,b\"]",
            ),
            (
                json!({"mark_last_message": 0}),
                "`mark_last_message` must be true or false, got 0",
            ),
            (
                json!({"api": "completions"}),
                "`api` must be `chat_completions` or `responses`, got \"completions\"",
            ),
            (
                json!({"extra_headers": {"a b": "c"}}),
                "`a b` is no valid header",
            ),
        ] {
            let error = Settings::read(&object(&args)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let error = Settings::read(&object(&json!({"api_key": 5}))).unwrap_err();
        assert!(!error.contains('5'), "{error}");
    }
}
