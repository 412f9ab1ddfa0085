//! Documents as pictures of their pages, beside their text (`spec/grading.md` §6.4.1, §6.4.2).

use std::collections::HashSet;

use evidence::{Artifact, InitialFile, Side};
use extract::ExternalProgram;
use formats::diff::ChangeKind;
use judge::{Context, PICTURE};
use serde_json::{Value, json};

use super::exhibit::{Exhibit, PictureBudget};
use super::reference::Reference;
use crate::error::EvalError;
use crate::eval::Case;

/// Share of the context that pictures may fill, so that they do not crowd out the texts.
const SHARE: f64 = 0.45;

/// Pages of a reference file that are shown (§5.5).
const REFERENCE_PAGES: usize = 10;

/// Bytes of pictures that one request to the model `name` may hold, before they are written as
/// Base64 and with room for the text: of 20 MB, 32 MB and 50 MB that the providers take.
fn request_bytes(name: &str) -> u64 {
    let name = name.to_lowercase();
    let families = [
        ("gemini", 11 << 20),
        ("claude", 20 << 20),
        ("anthropic", 20 << 20),
    ];
    let family = families
        .into_iter()
        .find(|(family, _)| name.contains(family));
    family.map_or(32 << 20, |(_, bytes)| bytes)
}

/// That documents are shown as pictures, and under which label.
#[derive(Debug, Clone, Copy)]
pub(in crate::evals) struct Pages {
    label: &'static str,
    /// Pages of one document at most.
    most: usize,
    /// Whether documents that the agent changed are shown; references are where they say so.
    judged: bool,
}

impl Pages {
    /// Of `criterion_output_verifier`.
    pub(in crate::evals) const fn converted(judged: bool) -> Self {
        Self {
            label: "CONVERTED_IMAGE",
            most: 10,
            judged,
        }
    }

    /// Of the `output_llm` family.
    pub(in crate::evals) const fn screenshots(judged: bool) -> Self {
        Self {
            label: "ARTIFACT_SCREENSHOT",
            most: 20,
            judged,
        }
    }

    /// Holds all pictures to the limits and adds those of documents. Gives what a result says about
    /// documents that the agent changed; `None` where they are not to be shown.
    pub(super) async fn add(
        self,
        case: &Case,
        context: Context,
        (artifacts, exhibits): (&[&Artifact], &mut [Exhibit]),
        (wanted, files, references): (&[Reference], &[InitialFile], &mut [Exhibit]),
    ) -> Result<Option<Value>, EvalError> {
        let limits = case.evidence.limits();
        let judges = case.judge()?.model_names();
        let request = judges.map(request_bytes).min().unwrap_or(u64::MAX);
        let mut budget = PictureBudget {
            pictures: limits
                .pictures
                .min(usize::try_from(context.share(SHARE) / PICTURE).unwrap_or(usize::MAX)),
            bytes: limits.total_picture_bytes.min(request),
        };
        let mut account = None;
        if self.judged {
            account = Some(self.judged(case, artifacts, exhibits, &mut budget).await?);
        } else {
            exhibits
                .iter_mut()
                .for_each(|exhibit| exhibit.pay_pictures(&mut budget));
        }
        for (file, exhibit) in files.iter().zip(references) {
            exhibit.pay_pictures(&mut budget);
            if wanted.iter().any(|one| one.is_of(file) && one.is_drawn()) {
                let most = self.most.min(REFERENCE_PAGES);
                let what = (Side::Initial, file.path.as_str());
                self.show(case, what, most, exhibit, &mut budget).await?;
            }
        }
        Ok(account)
    }

    async fn judged(
        self,
        case: &Case,
        artifacts: &[&Artifact],
        exhibits: &mut [Exhibit],
        budget: &mut PictureBudget,
    ) -> Result<Value, EvalError> {
        let mut seen = HashSet::new();
        let mut not_shown = Vec::new();
        let mut pages = 0;
        for (artifact, exhibit) in artifacts.iter().zip(exhibits) {
            let is_document = !ExternalProgram::to_draw(&artifact.extension()).is_empty();
            if !is_document || artifact.change == ChangeKind::Deleted {
                exhibit.pay_pictures(budget);
                continue;
            }
            // Sheets and slides of one file are shown with the first of them.
            if !seen.insert(artifact.path.as_str()) {
                continue;
            }
            let what = (Side::Final, artifact.path.as_str());
            let problem = self.show(case, what, self.most, exhibit, budget).await?;
            pages += exhibit.picture_count();
            if let Some(reason) = problem {
                not_shown.push(json!({ "path": artifact.path, "reason": reason }));
            } else if artifact.part.is_some() {
                exhibit.note("the pictures show the pages of the whole file");
            }
        }
        Ok(json!({ "pages": pages, "not_shown": not_shown }))
    }

    /// Shows the pages of a document, or tells the judge why there are none and gives the reason.
    async fn show(
        self,
        case: &Case,
        (side, path): (Side, &str),
        most: usize,
        exhibit: &mut Exhibit,
        budget: &mut PictureBudget,
    ) -> Result<Option<String>, EvalError> {
        let problem = if budget.pictures == 0 {
            Some("there are enough other pictures (limit `pictures`)".to_owned())
        } else {
            let drawing = case.evidence.drawing(side, path).await?;
            exhibit.show_pages(self.label, &drawing, most, budget);
            drawing.problem.clone()
        };
        if let Some(problem) = &problem {
            exhibit.note(&format!("it is not shown as pictures: {problem}"));
        }
        Ok(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_holds_what_its_provider_takes() {
        // With a third more for Base64 and a million tokens of text.
        let whole = |name: &str| request_bytes(name) / 3 * 4 + 4_000_000;
        assert!(whole("gemini/gemini-2.5-pro") <= 20_000_000);
        assert!(whole("vertex_ai/claude-sonnet-4-5") <= 32_000_000);
        assert!(whole("anthropic/some-model") <= 32_000_000);
        assert!(whole("openai/gpt-4.1") <= 50_000_000);
    }
}
