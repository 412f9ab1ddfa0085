//! What is wrong with the judges that the grading settings name, before one is asked.

use formats::task::GradingSettings;
use llm_client::Models;
use serde_json::Value;

use crate::MAX_VOTES;
use crate::member::{self, Named};

/// Something wrong or surprising in the settings of the judges.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsProblem {
    /// Whether no judge can be asked with it; otherwise it is probably a mistake.
    pub is_error: bool,
    /// The key.
    pub key: String,
    /// The rule that it breaks.
    pub rule: String,
    /// The value.
    pub value: Value,
}

impl SettingsProblem {
    fn error(key: &str, rule: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            is_error: true,
            key: key.to_owned(),
            rule: rule.into(),
            value: value.into(),
        }
    }

    fn warning(key: &str, rule: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            is_error: false,
            ..Self::error(key, rule, value)
        }
    }
}

/// Checks names, credentials, prices and numbers of votes. No judge is asked.
#[must_use]
pub fn check_settings(settings: &GradingSettings, models: &Models) -> Vec<SettingsProblem> {
    let mut problems = Vec::new();
    for judge in member::named(settings) {
        check_member(judge, models, &mut problems);
    }
    check_votes(settings, &mut problems);
    problems
}

fn check_member(judge: Named<'_>, models: &Models, problems: &mut Vec<SettingsProblem>) {
    if let Err(error) = models.resolve(judge.name, &judge.extra_args()) {
        let rule = error.to_string();
        problems.push(SettingsProblem::error(judge.key, rule, judge.name));
    }
    let Some(rates) = judge.rates else {
        return;
    };
    let key = "llm_judge_model_rates";
    if let Err(rule) = member::price(rates) {
        problems.push(SettingsProblem::error(key, rule, rates.clone()));
    }
    for (unknown, value) in member::unknown_rates(rates) {
        let key = format!("{key}.{unknown}");
        problems.push(SettingsProblem::warning(&key, "unknown key", value.clone()));
    }
}

fn check_votes(settings: &GradingSettings, problems: &mut Vec<SettingsProblem>) {
    let key = "llm_judge_votes";
    let votes = settings.llm_judge_votes.unwrap_or(1);
    if !(1..=MAX_VOTES).contains(&votes) {
        let rule = format!("must be from 1 to {MAX_VOTES}");
        problems.push(SettingsProblem::error(key, rule, votes));
        return;
    }
    let judges = u32::try_from(settings.llm_judge_panel.len() + 1).unwrap_or(u32::MAX);
    let all = votes.saturating_mul(judges);
    if all > 1 && all.is_multiple_of(2) {
        let rule = format!("makes {all} votes of {judges} judges together, which can be a tie");
        problems.push(SettingsProblem::warning(key, rule, votes));
    }
    let extra_args = settings.llm_judge_extra_args.as_ref();
    let temperature = extra_args.and_then(|args| args.get("temperature")?.as_f64());
    if votes > 1 && temperature == Some(0.0) {
        let rule = "several votes of one judge at temperature 0 are one vote repeated";
        problems.push(SettingsProblem::warning(key, rule, votes));
    }
}
