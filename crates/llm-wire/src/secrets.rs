//! Keeping secrets out of what is written.

use formats::Object;
use reqwest::Url;
use serde_json::Value;

/// Stands for what was removed.
const REMOVED: &str = "[removed]";

/// Values shorter than this are placeholders; cutting them out would garble texts.
const SHORTEST_SECRET: usize = 8;

/// Parts of names whose values are secrets, in lower case.
const SECRET_NAMES: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "credential",
    "password",
    "secret",
    "access_token",
    "auth_token",
];

/// Names of secrets in the queries of addresses, in lower case.
const SECRET_QUERIES: &[&str] = &["key", "token", "sig", "signature", "x-goog-signature"];

/// The secrets that are known by their value.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets among `values`, as they stand in JSON.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: Vec<String> = values
            .into_iter()
            .filter(|value| value.len() >= SHORTEST_SECRET)
            .map(quoted)
            .collect();
        // A secret may be part of another one.
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        known.dedup();
        Self(known)
    }

    /// The same and `value`.
    pub fn and(&self, value: Option<&str>) -> Self {
        let mut all = self.clone();
        if let Some(value) = value.filter(|value| value.len() >= SHORTEST_SECRET) {
            all.0.insert(0, quoted(value));
        }
        all
    }

    /// `json` without the secrets.
    pub fn cut_from(&self, mut json: String) -> String {
        for secret in &self.0 {
            if json.contains(secret.as_str()) {
                json = json.replace(secret.as_str(), "[key]");
            }
        }
        json
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// `text` as it stands between the quotes of a JSON string.
pub fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// `parameters` without values that their names or their form give away as secrets.
pub fn removed(parameters: &Object) -> Object {
    parameters
        .iter()
        .map(|(name, value)| {
            let lower = name.to_lowercase();
            let secret = SECRET_NAMES.iter().any(|part| lower.contains(part));
            let value = match value {
                Value::String(_) if secret => REMOVED.into(),
                other => inside(other),
            };
            (name.clone(), value)
        })
        .collect()
}

fn inside(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(removed(object)),
        Value::Array(list) => list.iter().map(inside).collect(),
        Value::String(text) => Value::String(without_credentials(text)),
        other => other.clone(),
    }
}

/// An address without user, password and keys in its query; any other text as it is.
pub fn without_credentials(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let Ok(mut url) = Url::parse(text) else {
        return text.to_owned();
    };
    let secret_query = |name: &str| {
        let lower = name.to_lowercase();
        SECRET_QUERIES.contains(&lower.as_str())
            || SECRET_NAMES.iter().any(|part| lower.contains(part))
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !has_user && !url.query_pairs().any(|(name, _)| secret_query(&name)) {
        return text.to_owned();
    }
    // Addresses that cannot have a user have none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| {
            let value = if secret_query(&name) {
                REMOVED.to_owned()
            } else {
                value.into_owned()
            };
            (name.into_owned(), value)
        })
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_names_and_addresses_give_secrets_away() {
        let secrets = Secrets::new(["sk-0123456789", "short", "with\"quote-0123"]);
        let text =
            json!({"a": "x sk-0123456789 y", "b": "short", "c": "with\"quote-0123"}).to_string();
        assert_eq!(
            secrets.cut_from(text),
            r#"{"a":"x [key] y","b":"short","c":"[key]"}"#
        );
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
        let parameters = json!({
            "temperature": 1,
            "extra_body": {"Api_Key": "abc", "max_tokens": 5, "hooks": ["https://user:pw@h.org/p?a=1&key=k2"]},
            "client_secret": "abc", "secret_count": 3
        });
        assert_eq!(
            Value::Object(removed(parameters.as_object().unwrap())),
            json!({
                "temperature": 1,
                "extra_body": {"Api_Key": "[removed]", "max_tokens": 5,
                    "hooks": ["https://h.org/p?a=1&key=%5Bremoved%5D"]},
                "client_secret": "[removed]", "secret_count": 3
            })
        );
        for plain in [
            "https://h.org/p?a=1",
            "no address",
            "data:image/png;base64,AA==",
        ] {
            assert_eq!(without_credentials(plain), plain);
        }
    }
}
