//! `template`: always passes; a smoke test of the pipeline (§6.3.1).

use formats::Object;

use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use settings::NoSettings;

pub(crate) struct Template;

impl Eval for Template {
    type Values = NoSettings;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "template"
    }

    fn about(&self) -> &'static str {
        "nothing: it always passes"
    }

    async fn evaluate(
        &self,
        _: &NoSettings,
        _: &NoSettings,
        _: &Case,
    ) -> Result<Verdict, EvalError> {
        Ok(Verdict::new(true, Object::new()))
    }
}
