//! One judge model with its arguments.

use formats::task::GradingSettings;
use formats::{Object, lenient};
use llm_client::{Model, Models, Price};
use serde_json::Value;

use crate::error::JudgeError;
use crate::options::JudgeOptions;

/// Keys of a call that extra arguments must not replace (§9.2).
const RESERVED: [&str; 5] = ["model", "messages", "tools", "stream", "stream_options"];

/// Tokens of the unit of [`Price`].
const MILLION: f64 = 1_000_000.0;

/// Names of a price per token in `llm_judge_model_rates`, by what is priced.
const INPUT: &[&str] = &["input_cost_per_token", "input"];
const OUTPUT: &[&str] = &["output_cost_per_token", "output"];
const CACHE_READ: &[&str] = &["cache_read_input_token_cost", "cache_read", "cached"];
const CACHE_WRITE: &[&str] = &[
    "cache_creation_input_token_cost",
    "cache_write",
    "cache_creation",
];

/// A judge that votes.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) model: Model,
    pub(crate) extra_args: Object,
    /// Whether the settings say nothing of arguments, so that defaults of a call may be used.
    pub(crate) plain: bool,
}

/// A judge as the settings describe it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The key of the settings under which it stands.
    pub(crate) key: &'static str,
    pub(crate) name: &'a str,
    extra_args: Option<&'a Object>,
    pub(crate) rates: Option<&'a Object>,
}

/// All judges of `settings`, the first one first.
pub(crate) fn named(settings: &GradingSettings) -> Vec<Named<'_>> {
    let first = Named {
        key: "llm_judge_model",
        name: &settings.llm_judge_model,
        extra_args: settings.llm_judge_extra_args.as_ref(),
        rates: settings.llm_judge_model_rates.as_ref(),
    };
    let panel = settings.llm_judge_panel.iter().map(|judge| Named {
        key: "llm_judge_panel",
        name: &judge.model,
        extra_args: judge
            .extra_args
            .as_ref()
            .or(settings.llm_judge_extra_args.as_ref()),
        rates: judge.model_rates.as_ref(),
    });
    std::iter::once(first).chain(panel).collect()
}

/// Judges that are added to those of `settings`, with the arguments of the first one.
pub(crate) fn added<'a>(
    settings: &'a GradingSettings,
    names: &'a [String],
) -> impl Iterator<Item = Named<'a>> {
    names.iter().map(|name| Named {
        key: "panel",
        name,
        extra_args: settings.llm_judge_extra_args.as_ref(),
        rates: None,
    })
}

impl Named<'_> {
    /// The extra arguments of every call, without those that the call itself decides.
    pub(crate) fn extra_args(&self) -> Object {
        let mut extra_args = self.extra_args.cloned().unwrap_or_default();
        for key in RESERVED {
            if extra_args.shift_remove(key).is_some() {
                tracing::warn!(key, "ignored in `llm_judge_extra_args`");
            }
        }
        extra_args
    }

    /// The model, ready to be asked.
    pub(crate) fn resolve(
        &self,
        models: &Models,
        options: &JudgeOptions,
    ) -> Result<Member, JudgeError> {
        let extra_args = self.extra_args();
        let mut model = models
            .resolve(self.name, &extra_args)
            .map_err(|error| JudgeError::from(&error))?
            // A wait between attempts must not keep others from asking.
            .with_slots(std::sync::Arc::clone(&options.slots));
        if let Some(rates) = self.rates {
            let price = price(rates).map_err(JudgeError::config)?;
            model = model.with_price(Some(price));
        }
        Ok(Member {
            model,
            plain: self.extra_args.is_none(),
            extra_args,
        })
    }
}

/// The price that `rates` (US dollars per token) say.
///
/// # Errors
/// What is missing or no rate.
pub(crate) fn price(rates: &Object) -> Result<Price, String> {
    let rate = |names: &[&str]| -> Result<Option<f64>, String> {
        let Some((name, value)) = names
            .iter()
            .find_map(|name| Some((*name, rates.get(*name).filter(|v| !v.is_null())?)))
        else {
            return Ok(None);
        };
        lenient::number(value)
            .filter(|rate| *rate >= 0.0)
            .map(|rate| Some(rate * MILLION))
            .ok_or_else(|| format!("`{name}` must be US dollars per token, at least 0"))
    };
    let needed = |names: &[&str]| {
        rate(names)?.ok_or_else(|| format!("needs `{}`, US dollars per token", names[0]))
    };
    Ok(Price {
        cache_read: rate(CACHE_READ)?,
        cache_write: rate(CACHE_WRITE)?,
        ..Price::new(needed(INPUT)?, needed(OUTPUT)?)
    })
}

/// Keys of `rates` that price nothing.
pub(crate) fn unknown_rates(rates: &Object) -> impl Iterator<Item = (&String, &Value)> {
    rates.iter().filter(|(key, _)| {
        ![INPUT, OUTPUT, CACHE_READ, CACHE_WRITE]
            .concat()
            .contains(&key.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn rates_per_token_are_prices_per_million() {
        let price = price(&object(&json!({
            "input_cost_per_token": 3e-6, "output_cost_per_token": "0.000015",
            "cache_read_input_token_cost": 3e-7, "cache_creation_input_token_cost": null,
        })))
        .unwrap();
        assert!((price.input - 3.0).abs() < 1e-9 && (price.output - 15.0).abs() < 1e-9);
        assert!((price.cache_read.unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(price.cache_write, None);
    }

    #[test]
    fn half_a_price_is_none() {
        let missing = price(&object(&json!({"input": 1e-6}))).unwrap_err();
        assert!(missing.contains("output_cost_per_token"), "{missing}");
        let negative = price(&object(&json!({"input": -1, "output": 1}))).unwrap_err();
        assert!(negative.contains("`input`"), "{negative}");
        let rates = object(&json!({"input": 1, "per_call": 2}));
        let unknown: Vec<&String> = unknown_rates(&rates).map(|(key, _)| key).collect();
        assert_eq!(unknown, ["per_call"]);
    }
}
