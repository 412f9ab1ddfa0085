//! What models cost and how much they take, from a versioned table (`spec/llm.md` §12, §23).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use formats::chat::Usage;
use serde::{Deserialize, Serialize};

/// Cached input costs this part of fresh input where no price is known.
const CACHE_READ_PART: f64 = 0.1;
/// Writing into a cache costs this many times fresh input where no price is known.
const CACHE_WRITE_PART: f64 = 1.25;
/// Prompts above this many tokens have the long-context price, unless the price says otherwise.
const LONG_CONTEXT: u64 = 200_000;

/// Where inference profiles of AWS Bedrock run, in front of a model's name, and how many times the
/// price of the global profile Anthropic's models from 4.5 on cost there.
const AREAS: &[(&str, f64)] = &[
    ("global", 1.0),
    ("us", 1.1),
    ("eu", 1.1),
    ("apac", 1.1),
    ("au", 1.1),
    ("jp", 1.1),
    ("us-gov", 1.2),
];
/// First of Anthropic's versions that cost more in one area than globally.
const FIRST_WITH_AREAS: (u32, u32) = (4, 5);

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
    /// Fresh input that is sound; as other input if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_input: Option<f64>,
    /// Output that is sound; as other output if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_output: Option<f64>,
    /// Fresh input of long prompts; `input` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_input: Option<f64>,
    /// Output after long prompts; `output` if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_output: Option<f64>,
    /// Prompts above this many tokens are long; 200,000 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_from: Option<u64>,
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
            audio_input: None,
            audio_output: None,
            long_input: None,
            long_output: None,
            long_from: None,
        }
    }

    /// `factor` times this price.
    fn times(self, factor: f64) -> Self {
        let times = |rate: Option<f64>| rate.map(|rate| rate * factor);
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_read: times(self.cache_read),
            cache_write: times(self.cache_write),
            audio_input: times(self.audio_input),
            audio_output: times(self.audio_output),
            long_input: times(self.long_input),
            long_output: times(self.long_output),
            long_from: self.long_from,
        }
    }

    /// What `usage` costs in US dollars, `None` when it holds no tokens.
    ///
    /// With prompt P (caches included), completion C, cached reads R and cache writes W this is
    /// max(P − R − W, 0)·input + R·read + W·write + C·output (`spec/llm.md` §12.2). Sound has its own
    /// price where there is one; what of it was cached is not known and counts as fresh first.
    ///
    /// ```
    /// # use llm_wire::Price;
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
        let long = usage.prompt_tokens > self.long_from.unwrap_or(LONG_CONTEXT);
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
        let heard = usage.audio_tokens().min(fresh);
        let spoken = usage.audio_output_tokens().min(usage.completion_tokens);
        let sum = (fresh - heard) as f64 * input
            + heard as f64 * self.audio_input.unwrap_or(input)
            + cached as f64 * read
            + written as f64 * write
            + (usage.completion_tokens - spoken) as f64 * output
            + spoken as f64 * self.audio_output.unwrap_or(output);
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
/// let model = llm_wire::known_model("openai/gpt-4.1-2025-04-14").unwrap();
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
        .or_else(|| at_bedrock(bare))
}

/// The model that AWS Bedrock calls `name`, such as `us.anthropic.claude-opus-4-6-v1` or
/// `amazon.nova-pro-v1:0`. Other makers' models have no price outside the United States here.
fn at_bedrock(name: &str) -> Option<KnownModel> {
    let models = &table().models;
    let area = AREAS.iter().find_map(|(area, factor)| {
        let rest = name.strip_prefix(area)?.strip_prefix('.')?;
        Some((*area, *factor, rest))
    });
    let (area, factor, model) = area.unwrap_or(("global", 1.0, name));
    // What follows is the version of the deployment: `-v1:0`, `-v1`, `-1:0`.
    let model = model.split(':').next().unwrap_or(model);
    let is_version = |part: &str| {
        let digits = part.strip_prefix('v').unwrap_or(part);
        digits.len() == 1 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let unversioned = || {
        let (model, version) = model.rsplit_once('-')?;
        is_version(version).then_some(model)
    };
    if let Some(claude) = model.strip_prefix("anthropic.") {
        let unversioned = unversioned().and_then(|model| model.strip_prefix("anthropic."));
        let known = [Some(claude), unversioned].into_iter().flatten();
        let mut known =
            known.filter_map(|name| models.get(name).or_else(|| models.get(without_date(name)?)));
        let mut known = *known.next()?;
        if claude_version(claude).is_some_and(|version| version >= FIRST_WITH_AREAS) {
            known.price = known.price.times(factor);
        }
        return Some(known);
    }
    let is_here = matches!(area, "global" | "us");
    let known = models.get(model).or_else(|| models.get(unversioned()?));
    known.copied().filter(|_| is_here && model.contains('.'))
}

/// The price of the model `name` in the built-in table; `None` for a model that it does not know,
/// never a guess.
#[must_use]
pub fn price_of(name: &str) -> Option<Price> {
    known_model(name).map(|model| model.price)
}

/// Major and minor version in names such as `claude-sonnet-4-5-20250929`, `claude-3-7-sonnet@20250219`
/// or `us.anthropic.claude-opus-4-1-20250805-v1:0`.
pub fn claude_version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude")?;
    let mut parts = name.split(['-', '@', '.', ':']);
    // Dates have more digits than versions.
    let number = |part: &str| {
        let fits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| part.parse().ok()).flatten()
    };
    let major = parts.find_map(number)?;
    Some((major, parts.next().and_then(number).unwrap_or(0)))
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
    fn names_of_bedrock_are_found_with_the_price_of_their_area() {
        let input =
            |name: &str| price_of(name).map(|price| (price.input * 1000.0).round() / 1000.0);
        for (name, expected) in [
            ("bedrock/anthropic.claude-opus-5", Some(5.0)),
            ("bedrock/global.anthropic.claude-opus-5-5", Some(4.0)),
            ("bedrock/us.anthropic.claude-opus-4-6-v1", Some(5.5)),
            (
                "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
                Some(3.3),
            ),
            // Older ones cost the same everywhere.
            (
                "bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0",
                Some(15.0),
            ),
            (
                "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5",
                Some(5.5),
            ),
            ("bedrock/amazon.nova-pro-v1:0", Some(0.8)),
            ("bedrock/us.amazon.nova-pro-v1:0", Some(0.8)),
            ("bedrock/openai.gpt-oss-120b-1:0", Some(0.15)),
            ("bedrock/eu.amazon.nova-pro-v1:0", None),
            ("bedrock/us.anthropic.claude-new", None),
            ("bedrock/abc.def", None),
        ] {
            assert_eq!(input(name), expected, "{name}");
        }
    }

    #[test]
    fn long_prompts_begin_where_the_price_says() {
        let price = price_of("openai/gpt-5.5").unwrap();
        let cost = |prompt: u64| {
            let usage = usage(json!({"prompt_tokens": prompt, "completion_tokens": 1_000}));
            price.cost(&usage).unwrap()
        };
        // 272,000·5 + 1,000·30 millionths, and one more token at twice and one and a half times that.
        assert!((cost(272_000) - 1.39).abs() < 1e-9);
        assert!((cost(272_001) - (2.72001 + 0.045)).abs() < 1e-9);
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
    fn sound_has_its_own_price_where_there_is_one() {
        let usage = usage(json!({
            "prompt_tokens": 10_000, "completion_tokens": 1_000,
            "prompt_tokens_details": {"text_tokens": 4_000, "audio_tokens": 6_000},
            "completion_tokens_details": {"audio_tokens": 400}
        }));
        // 4,000·0.3 + 6,000·1 + 1,000·2.5 millionths.
        let flash = price_of("gemini/gemini-2.5-flash").unwrap();
        assert!((flash.cost(&usage).unwrap() - 0.0097).abs() < 1e-12);
        let spoken = Price {
            audio_output: Some(80.0),
            ..Price::new(2.5, 10.0)
        };
        // 10,000·2.5 + 600·10 + 400·80 millionths.
        assert!((spoken.cost(&usage).unwrap() - 0.063).abs() < 1e-12);
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
