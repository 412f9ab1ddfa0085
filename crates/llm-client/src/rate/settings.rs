//! The limits that a user sets.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::presets;

/// Seconds that a call waits for its turn, if nothing else is set: one hour.
const LONGEST_WAIT_SECONDS: u64 = 3600;

/// Limits by provider (`openai`), or by full model name (`openai/gpt-4.1`), which then has them for
/// itself.
///
/// As a file: `{"openai": {"requests_per_minute": 500, "tokens_per_minute": 200000, "concurrency": 20}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateLimits {
    entries: BTreeMap<String, RateLimit>,
}

/// The limits of one provider; what is unset is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Attempts that begin within any 60 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens of requests and replies within any 60 seconds: estimated when a call begins, and
    /// corrected by what the provider counts. A single call above the limit goes alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<NonZeroU64>,
    /// Attempts in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// Longest wait of a call for its turn, in seconds; 3600 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait_seconds: Option<NonZeroU64>,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {rule}, got `{value}`")]
pub struct SettingError {
    /// The variable or key.
    pub name: String,
    /// What it must be.
    pub rule: String,
    /// What it is.
    pub value: String,
}

impl RateLimit {
    pub(super) fn longest_wait(&self) -> std::time::Duration {
        let seconds = self
            .longest_wait_seconds
            .map_or(LONGEST_WAIT_SECONDS, NonZeroU64::get);
        std::time::Duration::from_secs(seconds)
    }
}

impl RateLimits {
    /// Sets the limits of `key`, a provider or a full model name.
    pub fn set(&mut self, key: impl Into<String>, limit: RateLimit) {
        self.entries.insert(key.into(), limit);
    }

    /// Adds what variables say: `<PROVIDER>_REQUESTS_PER_MINUTE`, `<PROVIDER>_TOKENS_PER_MINUTE` and
    /// `<PROVIDER>_CONCURRENCY`, such as `OPENAI_CONCURRENCY` or `TOGETHER_AI_TOKENS_PER_MINUTE`.
    /// They win over what is set already.
    ///
    /// # Errors
    /// [`SettingError`] where one is no whole number above 0.
    pub fn add_variables(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), SettingError> {
        for provider in presets::names() {
            let prefix = provider.to_uppercase();
            let requests = number(&variable, format!("{prefix}_REQUESTS_PER_MINUTE"))?;
            let tokens = number(&variable, format!("{prefix}_TOKENS_PER_MINUTE"))?;
            let concurrency = number(&variable, format!("{prefix}_CONCURRENCY"))?;
            if requests.is_none() && tokens.is_none() && concurrency.is_none() {
                continue;
            }
            let limit = self.entries.entry(provider.to_owned()).or_default();
            limit.requests_per_minute = requests.or(limit.requests_per_minute);
            limit.tokens_per_minute = tokens.or(limit.tokens_per_minute);
            limit.concurrency = concurrency.or(limit.concurrency);
        }
        Ok(())
    }

    /// Checks that every key names a provider that there is.
    ///
    /// # Errors
    /// [`SettingError`] with the first one that does not.
    pub fn check(&self) -> Result<(), SettingError> {
        let unknown = self.entries.keys().find(|key| {
            let provider = key.split('/').next().unwrap_or_default();
            !presets::names().any(|name| name == provider)
        });
        match unknown {
            None => Ok(()),
            Some(key) => Err(SettingError {
                name: "rate limits".to_owned(),
                rule: format!(
                    "must be set for a provider or a model of one ({})",
                    presets::names().collect::<Vec<_>>().join(", ")
                ),
                value: key.clone(),
            }),
        }
    }

    /// The limits of the model `name` of `provider`, and whose they are.
    pub(super) fn of<'a>(&self, provider: &'a str, name: &'a str) -> (&'a str, RateLimit) {
        match self.entries.get(name) {
            Some(limit) => (name, *limit),
            None => (
                provider,
                self.entries.get(provider).copied().unwrap_or_default(),
            ),
        }
    }
}

/// The number in the variable `name`.
fn number<N: std::str::FromStr>(
    variable: &impl Fn(&str) -> Option<String>,
    name: String,
) -> Result<Option<N>, SettingError> {
    let Some(value) = variable(&name) else {
        return Ok(None);
    };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(SettingError {
            name,
            rule: "must be a whole number above 0".to_owned(),
            value,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_win_over_the_file_and_a_model_over_its_provider() {
        let mut limits: RateLimits = serde_json::from_str(
            r#"{"openai": {"requests_per_minute": 5, "concurrency": 2}, "openai/o3": {"tokens_per_minute": 7}}"#,
        )
        .unwrap();
        limits.check().unwrap();
        limits
            .add_variables(|name| {
                let value = match name {
                    "OPENAI_CONCURRENCY" => " 9 ",
                    "TOGETHER_AI_TOKENS_PER_MINUTE" => "1000",
                    _ => return None,
                };
                Some(value.to_owned())
            })
            .unwrap();
        let (key, limit) = limits.of("openai", "openai/gpt-4.1");
        assert_eq!(key, "openai");
        assert_eq!(limit.requests_per_minute.map(NonZeroU32::get), Some(5));
        assert_eq!(limit.concurrency.map(NonZeroU32::get), Some(9));
        let (key, limit) = limits.of("openai", "openai/o3");
        assert_eq!((key, limit.requests_per_minute), ("openai/o3", None));
        let (_, limit) = limits.of("together_ai", "together_ai/x");
        assert_eq!(limit.tokens_per_minute.map(NonZeroU64::get), Some(1000));
        assert_eq!(limits.of("groq", "groq/x").1, RateLimit::default());
    }

    #[test]
    fn bad_settings_are_named() {
        for value in ["0", "-1", "1.5", "many"] {
            let error = RateLimits::default()
                .add_variables(|name| {
                    (name == "GROQ_REQUESTS_PER_MINUTE").then(|| value.to_owned())
                })
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`GROQ_REQUESTS_PER_MINUTE` must be a whole number above 0, got `{value}`")
            );
        }
        let unknown: RateLimits = serde_json::from_str(r#"{"opnai": {}}"#).unwrap();
        let text = unknown.check().unwrap_err().to_string();
        assert!(
            text.contains("opnai") && text.contains("openai, "),
            "{text}"
        );
        assert!(serde_json::from_str::<RateLimits>(r#"{"openai": {"rpm": 5}}"#).is_err());
    }
}
