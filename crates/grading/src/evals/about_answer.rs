//! Questions about the text of the answer alone, as several evals ask them.

use formats::Object;
use serde_json::{Value, json};

use super::object;
use crate::error::EvalError;
use crate::eval::{Case, Verdict};
use judge::{Context, Judge, Opinion, PromptSet, Shape, marker_code};

/// A question about the answer.
pub(super) struct AnswerQuestion<'a> {
    pub(super) prompts: &'static PromptSet,
    /// Share of the judge's context that the answer may fill.
    pub(super) share: f64,
    /// What else the prompt holds, by the names of its templates.
    pub(super) texts: &'a [(&'static str, &'a str)],
    /// The shape of the reply.
    pub(super) shape: fn(&Judge) -> Shape,
    /// Reads a reply; the flag says whether the judge may say that it cannot tell.
    pub(super) read: fn(&str, bool) -> Result<Opinion, String>,
}

impl AnswerQuestion<'_> {
    /// Asks the judges. Without an answer the verdict is clear.
    pub(super) async fn verdict(&self, case: &Case) -> Result<Verdict, EvalError> {
        let answer = case.evidence.answer().trim();
        if answer.is_empty() {
            let values = json!({ "result": 0, "reason": "the agent gave no answer" });
            return Ok(Verdict::new(false, object(values)));
        }
        let judge = case.judge()?;
        let context = Context::of_all(judge.model_names());
        let (answer, cut) = context.shortened(answer, self.share);
        let texts = self.texts.iter().map(|(_, text)| *text);
        let code = marker_code(&std::iter::once(answer.as_str()).chain(texts));
        let abstain = judge.may_abstain();
        let mut prompt: Object = self
            .texts
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Value::from(*text)))
            .collect();
        prompt.insert("code".to_owned(), code.as_str().into());
        prompt.insert("answer".to_owned(), answer.into());
        prompt.insert("cannot_assess".to_owned(), abstain.into());
        let question = self.prompts.question(&prompt, &code)?;
        let read = self.read;
        let ruling = judge
            .decide(question, &(self.shape)(judge), |text| read(text, abstain))
            .await?;
        let mut described = object(json!({
            "result": u8::from(ruling.met),
            "reason": ruling.rationale,
            "judge_prompt": self.prompts.provenance(),
        }));
        described.extend(ruling.votes);
        if cut {
            described.insert("evidence_cut".to_owned(), true.into());
        }
        Ok(Verdict::new(ruling.met, described))
    }
}
