//! From model names to models.

use std::path::PathBuf;

use formats::Object;

use crate::error::ModelNameError;
use crate::model::Model;

/// Finds models by name, with the credentials and settings of one program.
///
/// It is built from an explicit look-up of variables, so that a program decides where they come
/// from; the library itself reads no environment.
#[derive(Debug, Clone, Default)]
pub struct Models {
    script_folder: PathBuf,
}

impl Models {
    /// Models with the credentials that `variable` finds by name (`OPENAI_API_KEY`, …).
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let _ = variable;
        Self::default()
    }

    /// Relative paths in `scripted/<path>` are taken from `folder`; otherwise from the working
    /// directory.
    #[must_use]
    pub fn with_script_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.script_folder = folder.into();
        self
    }

    /// The model `name` (`provider/model`). `extra_args` may name another `api_base` or `api_key`.
    ///
    /// # Errors
    /// [`ModelNameError`] when the name, the credentials or a setting cannot work. Nothing is sent.
    pub fn resolve(&self, name: &str, extra_args: &Object) -> Result<Model, ModelNameError> {
        let _ = (&self.script_folder, extra_args);
        Err(ModelNameError::NoProvider {
            name: name.to_owned(),
        })
    }
}
