//! Pages that need nothing but themselves: no script, no address, no font from elsewhere.

mod page;
mod picture;
mod run;
mod timeline;

use formats::run::{Summary, TrialSeconds};
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;

use crate::Trial;

/// The templates. The ending of a name decides that everything put into a page is escaped.
const TEMPLATES: [(&str, &str); 3] = [
    ("page.css", include_str!("page.css")),
    ("run.html", include_str!("run.html")),
    ("trial.html", include_str!("trial.html")),
];

/// How much of a trial a page shows. What is left out is said in its place.
#[derive(Debug, Clone)]
pub struct PageLimits {
    /// Steps of the agent. Default 500.
    pub steps: usize,
    /// Lines of one text. Default 400.
    pub lines: usize,
    /// Characters of one text. Default 20,000.
    pub characters: usize,
    /// Bytes of all texts by models and tools. Default 8 MiB.
    pub text_bytes: usize,
    /// Bytes of one picture as it stands in the page. Default 3 MiB.
    pub picture_bytes: usize,
    /// Bytes of all pictures. Default 24 MiB.
    pub pictures_bytes: usize,
    /// Changed files. Default 300.
    pub files: usize,
    /// Verifiers. Default 300.
    pub verifiers: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            steps: 500,
            lines: 400,
            characters: 20_000,
            text_bytes: 8 << 20,
            picture_bytes: 3 << 20,
            pictures_bytes: 24 << 20,
            files: 300,
            verifiers: 300,
        }
    }
}

/// The page could not be made. The template is fixed, so this is a mistake of this crate.
#[derive(Debug, thiserror::Error)]
#[error("the page could not be made: {0}")]
pub struct PageError(#[source] minijinja::Error);

/// `trial` as one HTML page, with the usual limits.
///
/// # Errors
/// [`PageError`], which no input causes.
pub fn trial_page(trial: &Trial<'_>) -> Result<String, PageError> {
    trial_page_with(trial, PageLimits::default())
}

/// `trial` as one HTML page within `limits`.
///
/// # Errors
/// [`PageError`], which no input causes.
pub fn trial_page_with(trial: &Trial<'_>, limits: PageLimits) -> Result<String, PageError> {
    render("trial.html", page::Page::of(trial, limits))
}

/// A run as one HTML page: its totals and a table of its trials, each of which links to the file
/// `trial_page` in the folder of the trial.
///
/// # Errors
/// [`PageError`], which no input causes.
pub fn run_page(summary: &Summary, trial_page: &str) -> Result<String, PageError> {
    render("run.html", run::Page::of(summary, trial_page))
}

fn render(name: &str, page: impl Serialize) -> Result<String, PageError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(PageError)?;
    environment.set_syntax(syntax);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).map_err(PageError)?;
    }
    environment
        .get_template(name)
        .and_then(|template| template.render(Serde(page)))
        .map_err(PageError)
}

/// The parts of a trial's time with their names, in order.
fn parts(seconds: &TrialSeconds) -> [(&'static str, f64); 4] {
    [
        ("environment", seconds.environment),
        ("agent", seconds.agent),
        ("snapshot", seconds.snapshot),
        ("grading", seconds.grading),
    ]
}
