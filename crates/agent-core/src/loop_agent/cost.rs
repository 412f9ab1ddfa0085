//! What a call costs (`spec/agents.md` §15.4, `spec/llm.md` §12).

use formats::Object;

use super::config::LoopAgentConfig;
use crate::run::Turn;

/// US dollars per input and output token where nothing else is known; never 0, so that a budget
/// of an unknown model ends at some time.
const DEFAULT_INPUT: f64 = 10.0e-6;
const DEFAULT_OUTPUT: f64 = 30.0e-6;

/// Cached input costs this share of the input rate where no rate is given.
const CACHED_SHARE: f64 = 0.10;
/// Input written to the cache costs this multiple of the input rate where no rate is given.
const CACHE_WRITE_SHARE: f64 = 1.25;

/// The rates of the settings, each in place of the price table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    input: Option<f64>,
    output: Option<f64>,
    cached: Option<f64>,
    cache_write: Option<f64>,
}

impl Rates {
    pub(super) fn new(config: &LoopAgentConfig) -> Self {
        Self {
            input: config.input_cost_per_token,
            output: config.output_cost_per_token,
            cached: config.cached_input_cost_per_token,
            cache_write: config.cache_creation_cost_per_token,
        }
    }

    /// The rates that the settings give, under their names.
    pub(super) fn overrides(&self) -> Object {
        [
            ("input_cost_per_token", self.input),
            ("output_cost_per_token", self.output),
            ("cached_input_cost_per_token", self.cached),
            ("cache_creation_cost_per_token", self.cache_write),
        ]
        .into_iter()
        .filter_map(|(name, rate)| Some((name.to_owned(), rate?.into())))
        .collect()
    }

    fn has_overrides(&self) -> bool {
        [self.input, self.output, self.cached, self.cache_write]
            .iter()
            .any(Option::is_some)
    }

    /// The cost of a call in US dollars; nothing where the provider reported no usage.
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^53"
    )]
    pub(super) fn price(&self, turn: &Turn) -> Option<f64> {
        let usage = turn.usage.as_ref()?;
        if usage.prompt_tokens == 0 && usage.completion_tokens == 0 {
            return None;
        }
        if !self.has_overrides() && turn.cost_usd.is_some() {
            return turn.cost_usd;
        }
        let input = self.input.unwrap_or(DEFAULT_INPUT);
        let output = self.output.unwrap_or(DEFAULT_OUTPUT);
        let cached = self.cached.unwrap_or(input * CACHED_SHARE);
        let cache_write = self.cache_write.unwrap_or(input * CACHE_WRITE_SHARE);
        let read = usage.cached_tokens();
        let written = usage.cache_creation_tokens();
        let fresh = usage.prompt_tokens.saturating_sub(read + written);
        Some(
            fresh as f64 * input
                + read as f64 * cached
                + written as f64 * cache_write
                + usage.completion_tokens as f64 * output,
        )
    }
}
