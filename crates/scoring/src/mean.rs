//! `template`: the plain average (§7.1).

use formats::grades::ScoringResults;
use serde_json::json;

use super::{Judged, Scoring, ratio, scored};
use settings::NoSettings;

pub(super) struct Template;

impl Scoring for Template {
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "template"
    }

    fn about(&self) -> &'static str {
        "the average of all scores; 0 where there is no verifier"
    }

    fn score(&self, _: &NoSettings, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let sum: f64 = judged.iter().map(Judged::score).sum();
        Ok(scored(ratio(sum, judged.len(), 0.0), json!({})))
    }
}
