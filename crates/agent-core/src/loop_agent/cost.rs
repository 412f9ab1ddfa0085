//! What a call costs (`spec/agents.md` §15.4, `spec/llm.md` §12).

use formats::Object;
use formats::chat::Usage;
use llm_client::Price;

use super::config::LoopAgentConfig;

/// What a model costs of which nothing is known; never 0, so that a budget ends at some time.
const UNKNOWN: Price = Price::new(10.0, 30.0);

/// Prices are for a million tokens, settings for one.
const MILLION: f64 = 1_000_000.0;

/// The rates of a run.
#[derive(Debug)]
pub(super) struct Rates {
    price: Price,
    overrides: Object,
}

impl Rates {
    /// Each rate from the settings, else from the price table, else from [`UNKNOWN`].
    pub(super) fn new(config: &LoopAgentConfig, table: Option<Price>) -> Self {
        let mut price = table.unwrap_or(UNKNOWN);
        let mut overrides = Object::new();
        let mut given = |name: &str, rate: Option<f64>| {
            let rate = rate?;
            overrides.insert(name.to_owned(), rate.into());
            Some(rate * MILLION)
        };
        if let Some(rate) = given("input_cost_per_token", config.input_cost_per_token) {
            price = Price {
                input: rate,
                long_input: None,
                cache_read: None,
                cache_write: None,
                audio_input: None,
                ..price
            };
        }
        if let Some(rate) = given("output_cost_per_token", config.output_cost_per_token) {
            price = Price {
                output: rate,
                long_output: None,
                audio_output: None,
                ..price
            };
        }
        let cached = config.cached_input_cost_per_token;
        price.cache_read = given("cached_input_cost_per_token", cached).or(price.cache_read);
        let written = config.cache_creation_cost_per_token;
        price.cache_write = given("cache_creation_cost_per_token", written).or(price.cache_write);
        Self { price, overrides }
    }

    /// The rates that the settings give, under their names.
    pub(super) fn overrides(&self) -> &Object {
        &self.overrides
    }

    /// The cost of a call in US dollars: where the settings say nothing, what the provider or the
    /// price table says. Nothing where the provider reported no usage.
    pub(super) fn price(&self, cost_usd: Option<f64>, usage: Option<&Usage>) -> Option<f64> {
        match cost_usd {
            Some(known) if self.overrides.is_empty() => Some(known),
            _ => self.price.cost(usage?),
        }
    }
}
