//! `template`: always passes; a smoke test of the pipeline (§6.3.1).

use formats::Object;

use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::settings::NoSettings;

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
