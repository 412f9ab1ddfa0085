//! What a request asks, in a form that is the same each time it is asked.

use std::fmt::Write as _;

use formats::Object;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{DRAWN, VERSION};
use llm_wire::ChatRequest;
use llm_wire::secrets::{self, Secrets};

/// Extra arguments that make no difference to what is asked.
const IRRELEVANT: &[&str] = &[
    "timeout",
    "num_retries",
    "max_retries",
    "api_key",
    "api_base",
    "base_url",
    "extra_headers",
];

/// A request without secrets, each part with its hash.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) messages: Vec<Part>,
    pub(crate) tools: Option<Part>,
    pub(crate) parameters: Object,
    /// Of messages, tools and parameters.
    pub(crate) key: String,
    secrets: Secrets,
    nonce: Option<String>,
}

/// A message or a list of tools, as JSON.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) sha256: String,
    pub(crate) json: String,
}

impl Question {
    /// What `request` asks, without the `secrets`.
    pub(crate) fn new(request: &ChatRequest<'_>, secrets: &Secrets) -> Self {
        let given = request
            .extra_args
            .get("api_key")
            .and_then(|key| key.as_str());
        let mut question = Self {
            messages: Vec::with_capacity(request.messages.len()),
            tools: None,
            parameters: parameters(request.extra_args),
            key: String::new(),
            secrets: secrets.and(given),
            nonce: request
                .labels
                .nonce
                .filter(|nonce| !nonce.is_empty())
                .map(secrets::quoted),
        };
        for message in request.messages {
            let part = question.part(message);
            question.messages.push(part);
        }
        if !request.tools.is_empty() {
            question.tools = Some(question.part(&request.tools));
        }
        let parameters = question.written(&question.parameters);
        let hashes: Vec<&str> = question
            .messages
            .iter()
            .map(|part| part.sha256.as_str())
            .collect();
        let tools = question.tools.as_ref().map_or("none", |part| &part.sha256);
        let all = format!("{VERSION}\n{}\n{tools}\n{parameters}", hashes.join(" "));
        question.key = sha256(&all);
        question
    }

    /// `value` as JSON, without secrets and without what was drawn for this call.
    pub(crate) fn written(&self, value: &impl Serialize) -> String {
        // What is written here are messages and parameters, whose keys are texts.
        let json = serde_json::to_string(value).unwrap_or_default();
        let json = self.secrets.cut_from(json);
        match &self.nonce {
            Some(nonce) => json.replace(nonce.as_str(), DRAWN),
            None => json,
        }
    }

    /// `json` of a recording with what was drawn for this call.
    pub(crate) fn drawn_into(&self, json: String) -> String {
        match &self.nonce {
            Some(nonce) => json.replace(DRAWN, nonce),
            None => json,
        }
    }

    fn part(&self, value: &impl Serialize) -> Part {
        let json = self.written(value);
        Part {
            sha256: sha256(&json),
            json,
        }
    }
}

/// The extra arguments that say what is asked, without secrets, in the order of their names.
fn parameters(extra_args: &Object) -> Object {
    let mut relevant: Object = secrets::removed(extra_args)
        .into_iter()
        .filter(|(name, value)| !IRRELEVANT.contains(&name.as_str()) && !value.is_null())
        .collect();
    relevant.sort_keys();
    relevant
}

/// The SHA-256 of `text`, in hexadecimal.
pub(crate) fn sha256(text: &str) -> String {
    let mut digits = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallLabels;
    use formats::chat::Message;
    use serde_json::json;
    use std::time::Duration;

    fn question(text: &str, extra_args: &serde_json::Value, nonce: Option<&str>) -> Question {
        let messages = [Message::user(text)];
        let request = ChatRequest {
            messages: &messages,
            tools: &[],
            extra_args: extra_args.as_object().unwrap(),
            timeout: Duration::from_secs(1),
            labels: CallLabels {
                nonce,
                ..CallLabels::default()
            },
        };
        Question::new(&request, &Secrets::new(["sk-secret-0123"]))
    }

    #[test]
    fn only_what_is_asked_makes_the_key() {
        let plain = question("hi", &json!({"seed": 1, "top_p": 0.5}), None);
        let settings = json!({"top_p": 0.5, "seed": 1, "timeout": 5, "num_retries": 2, "stop": null,
            "api_key": "other-key-0123", "api_base": "http://h", "extra_headers": {"a": "b"}});
        assert_eq!(question("hi", &settings, None).key, plain.key);
        assert_ne!(question("ho", &settings, None).key, plain.key);
        assert_ne!(
            question("hi", &json!({"seed": 2, "top_p": 0.5}), None).key,
            plain.key
        );
        assert_ne!(question("hi", &json!({"seed": 1}), None).key, plain.key);
    }

    #[test]
    fn what_was_drawn_and_secrets_are_not_in_it() {
        let one = question("@@c0de0 x", &json!({}), Some("c0de0"));
        let two = question("@@4bcd1 x", &json!({}), Some("4bcd1"));
        assert_eq!(one.key, two.key);
        assert_eq!(
            one.messages[0].json,
            r#"{"role":"user","content":"@@[drawn-at-random] x"}"#
        );
        assert_eq!(two.drawn_into(one.written(&"see c0de0")), r#""see 4bcd1""#);
        let secret = question(
            "a sk-secret-0123 b given-key-77",
            &json!({"api_key": "given-key-77", "user": "sk-secret-0123"}),
            None,
        );
        assert!(secret.messages[0].json.contains("a [key] b [key]"));
        assert_eq!(secret.written(&secret.parameters), r#"{"user":"[key]"}"#);
    }
}
