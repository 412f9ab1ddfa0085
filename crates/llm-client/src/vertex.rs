//! Vertex AI: Gemini and Claude at Google Cloud (<https://cloud.google.com/vertex-ai/generative-ai/docs>).

use std::sync::Arc;

use llm_anthropic::Anthropic;
use llm_gemini::{Gemini, version};
use llm_wire::{Endpoint, Provider};

/// Variables that name the project; the first one that is set wins.
pub(crate) const PROJECTS: &[&str] = &["VERTEXAI_PROJECT", "GOOGLE_CLOUD_PROJECT"];
/// Variables that name the location; the first one that is set wins.
pub(crate) const LOCATIONS: &[&str] = &[
    "VERTEXAI_LOCATION",
    "VERTEX_LOCATION",
    "GOOGLE_CLOUD_LOCATION",
];

/// Where a model is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) project: String,
    pub(crate) location: String,
}

impl Place {
    /// Where `model` is used unless something else is said: newer models are served globally only, or
    /// there first.
    pub(crate) fn usual_location(model: &str) -> &'static str {
        let older = version(model).is_some_and(|version| version < (3, 0));
        if older { "us-central1" } else { "global" }
    }

    /// The place, if both names can stand in an address.
    pub(crate) fn new(project: &str, location: &str) -> Result<Self, String> {
        for (what, name) in [("project", project), ("location", location)] {
            if !fits(name) {
                return Err(format!("`{name}` is no name of a {what} at Google"));
            }
        }
        Ok(Self {
            project: project.to_owned(),
            location: location.to_owned(),
        })
    }

    /// The address of the service there.
    pub(crate) fn base(&self) -> String {
        match self.location.as_str() {
            "global" => "https://aiplatform.googleapis.com/v1".to_owned(),
            region @ ("us" | "eu") => format!("https://aiplatform.{region}.rep.googleapis.com/v1"),
            location => format!("https://{location}-aiplatform.googleapis.com/v1"),
        }
    }

    fn path(&self, publisher: &str, model: &str) -> String {
        let Self { project, location } = self;
        format!("/projects/{project}/locations/{location}/publishers/{publisher}/models/{model}")
    }

    /// The model `model` here. The error is a sentence about its name.
    pub(crate) fn model(
        &self,
        provider: &str,
        model: &str,
        endpoint: Endpoint,
        http: reqwest::Client,
    ) -> Result<Arc<dyn Provider>, String> {
        if !fits(model) {
            return Err(format!("`{model}` is no name of a model at Google"));
        }
        if model.starts_with("claude") {
            let path = self.path("anthropic", model);
            return Ok(Arc::new(Anthropic::on_vertex(
                provider, model, path, endpoint, http,
            )));
        }
        if model.starts_with("gemini") {
            let path = self.path("google", model);
            return Ok(Arc::new(Gemini::at(provider, model, &path, endpoint, http)));
        }
        Err("at Vertex AI only models named `gemini…` and `claude…` can be used".to_owned())
    }
}

/// Whether `name` can stand in an address as it is.
fn fits(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_addresses() {
        let base = |location: &str| Place::new("p", location).unwrap().base();
        assert_eq!(base("global"), "https://aiplatform.googleapis.com/v1");
        assert_eq!(
            base("europe-west4"),
            "https://europe-west4-aiplatform.googleapis.com/v1"
        );
        assert_eq!(base("eu"), "https://aiplatform.eu.rep.googleapis.com/v1");
        assert!(Place::new("p/../q", "eu").is_err() && Place::new("p", "").is_err());
        assert_eq!(Place::usual_location("gemini-2.5-pro"), "us-central1");
        assert_eq!(Place::usual_location("gemini-3.1-pro-preview"), "global");
        assert_eq!(
            Place::usual_location("claude-sonnet-4-5@20250929"),
            "global"
        );
    }
}
