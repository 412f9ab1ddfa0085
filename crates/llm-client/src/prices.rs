//! What models cost and how much they take, from a versioned table (`spec/llm.md` §12, §23).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use formats::chat::Usage;
use serde::{Deserialize, Serialize};

/// Cached input costs this part of fresh input where no price is known.
const CACHE_READ_PART: f64 = 0.1;
/// Writing into a cache costs this many times fresh input where no price is known.
const CACHE_WRITE_PART: f64 = 1.25;
/// Prompts above this many tokens have the long-context price.
const LONG_CONTEXT: u64 = 200_000;

/// Prices in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Fresh input.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from a cache; a tenth of `input` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to a cache; 1.25 times `input` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Fresh input of prompts above 200,000 tokens; `input` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_input: Option<f64>,
    /// Output after prompts above 200,000 tokens; `output` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_output: Option<f64>,
}

impl Price {
    /// A price of fresh input and output; caches at the usual parts of it.
    #[must_use]
    pub const fn new(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cache_read: None,
            cache_write: None,
            long_input: None,
            long_output: None,
        }
    }

    /// What `usage` costs in US dollars, `None` when it holds no tokens.
    ///
    /// With prompt P (caches included), completion C, cached reads R and cache writes W this is
    /// max(P − R − W, 0)·input + R·read + W·write + C·output (`spec/llm.md` §12.2).
    ///
    /// ```
    /// # use llm_client::Price;
    /// # let usage = serde_json::from_str(r#"{"prompt_tokens": 1000, "completion_tokens": 100}"#).unwrap();
    /// let cost = Price::new(2.0, 8.0).cost(&usage).unwrap();
    /// assert!((cost - 0.0028).abs() < 1e-12);
    /// ```
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^53"
    )]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if usage.prompt_tokens == 0 && usage.completion_tokens == 0 {
            return None;
        }
        let long = usage.prompt_tokens > LONG_CONTEXT;
        let choose = |normal: f64, tier: Option<f64>| tier.filter(|_| long).unwrap_or(normal);
        let input = choose(self.input, self.long_input);
        let output = choose(self.output, self.long_output);
        let tier = if self.input > 0.0 {
            input / self.input
        } else {
            1.0
        };
        let read = self
            .cache_read
            .map_or(input * CACHE_READ_PART, |rate| rate * tier);
        let write = self
            .cache_write
            .map_or(input * CACHE_WRITE_PART, |rate| rate * tier);
        let (cached, written) = (usage.cached_tokens(), usage.cache_creation_tokens());
        let fresh = usage
            .prompt_tokens
            .saturating_sub(cached.saturating_add(written));
        let sum = fresh as f64 * input
            + cached as f64 * read
            + written as f64 * write
            + usage.completion_tokens as f64 * output;
        Some(sum / 1_000_000.0)
    }
}

/// What the table knows of a model.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// Most tokens of a request.
    pub max_input_tokens: u64,
    /// Most tokens of a reply.
    pub max_output_tokens: u64,
    /// What it costs.
    pub price: Price,
}

#[derive(Debug, Default, Deserialize)]
struct Table {
    version: String,
    models: BTreeMap<String, KnownModel>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // A test reads the file, so it is readable here.
    TABLE.get_or_init(|| {
        serde_json::from_str(include_str!("../data/models.json")).unwrap_or_default()
    })
}

/// The version of the built-in table: the date of its last change.
#[must_use]
pub fn table_version() -> &'static str {
    &table().version
}

/// What the built-in table knows of the model `name`, with or without provider in front, with or
/// without date behind.
///
/// ```
/// let model = llm_client::known_model("openai/gpt-4.1-2025-04-14").unwrap();
/// assert_eq!(model.max_output_tokens, 32768);
/// ```
#[must_use]
pub fn known_model(name: &str) -> Option<KnownModel> {
    let bare = name.rsplit('/').next().unwrap_or(name);
    let models = &table().models;
    models
        .get(bare)
        .or_else(|| models.get(without_date(bare)?))
        .copied()
}

/// The price of the model `name` in the built-in table; `None` for a model that it does not know,
/// never a guess.
#[must_use]
pub fn price_of(name: &str) -> Option<Price> {
    known_model(name).map(|model| model.price)
}

/// `name` without a date at its end: `-2025-04-14`, `-20250414` or `@20250414`.
fn without_date(name: &str) -> Option<&str> {
    let is_date = |text: &str| {
        let digits: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = digits.iter().map(|part| part.len()).collect();
        (lengths == [4, 2, 2] || lengths == [8])
            && digits
                .iter()
                .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    [10, 8].into_iter().find_map(|length| {
        let start = name.len().checked_sub(length + 1)?;
        let (model, date) = (name.get(..start)?, name.get(start..)?);
        let date = date.strip_prefix(['-', '@'])?;
        is_date(date).then_some(model)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(value: serde_json::Value) -> Usage {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_table_is_readable_and_sane() {
        let table: Table = serde_json::from_str(include_str!("../data/models.json")).unwrap();
        assert!(table.models.len() >= 12);
        for (name, model) in &table.models {
            assert!(
                model.price.input > 0.0 && model.price.output >= model.price.input,
                "{name}"
            );
            assert!(model.max_output_tokens <= model.max_input_tokens, "{name}");
        }
        assert_eq!(table_version(), table.version);
    }

    #[test]
    fn names_are_found_with_provider_and_date() {
        for name in [
            "gpt-4.1",
            "openai/gpt-4.1",
            "openai/gpt-4.1-2025-04-14",
            "openrouter/openai/gpt-4.1",
        ] {
            assert_eq!(price_of(name).map(|price| price.input), Some(2.0), "{name}");
        }
        assert!(price_of("anthropic/claude-sonnet-4-5@20250929").is_some());
        assert!(price_of("claude-sonnet-4-20250514").is_some());
        for unknown in [
            "openai/gpt-4.1-audio",
            "gpt",
            "",
            "openai/",
            "ollama/llama3",
        ] {
            assert_eq!(price_of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn cost_follows_the_formula() {
        // 1,000,000 fresh would be 3; of 100,000 prompt tokens 40,000 are read and 10,000 written:
        // 50,000·3 + 40,000·0.3 + 10,000·3.75 + 2,000·15 = 229,500 millionths.
        let price = price_of("claude-sonnet-4-5").unwrap();
        let cost = price
            .cost(&usage(json!({
                "prompt_tokens": 100_000, "completion_tokens": 2_000,
                "prompt_tokens_details": {"cached_tokens": 40_000, "cache_creation_tokens": 10_000}
            })))
            .unwrap();
        assert!((cost - 0.2295).abs() < 1e-9, "{cost}");
        // Above 200,000 tokens: 300,000·6 + 1,000·22.5.
        let long = price
            .cost(&usage(
                json!({"prompt_tokens": 300_000, "completion_tokens": 1_000}),
            ))
            .unwrap();
        assert!((long - 1.8225).abs() < 1e-9, "{long}");
    }

    #[test]
    fn caches_without_a_price_cost_parts_of_the_input_and_nothing_is_unknown() {
        let price = Price::new(10.0, 30.0);
        let cost = price
            .cost(&usage(json!({
                "prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 100}
            })))
            .unwrap();
        assert!((cost - 0.0001).abs() < 1e-12, "{cost}");
        assert_eq!(price.cost(&Usage::default()), None);
    }
}
