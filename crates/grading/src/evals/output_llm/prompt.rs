//! The question to the judge (`spec/grading.md` §5.6, §5.8).

use std::collections::HashMap;

use formats::chat::{Block, Content};
use serde::Serialize;

use super::address::speaks_to_judge;
use super::exhibit::{self, Exhibit, Labelled};
use super::target::Target;
use crate::error::EvalError;
use crate::evals::prompts::OUTPUT_LLM;
use judge::Question;
use judge::marker_code;
use judge::{Context, Need};

/// What the question is made of.
pub(super) struct Material<'a> {
    pub(super) target: &'a Target,
    pub(super) task: &'a str,
    pub(super) answer: &'a str,
    pub(super) criterion: &'a str,
    pub(super) explanation: &'a str,
    pub(super) artifacts: Vec<Exhibit>,
    pub(super) references: Vec<Exhibit>,
    /// The prompt that replaces the built-in one.
    pub(super) system_prompt: Option<&'a str>,
    pub(super) guard: bool,
    /// Whether the judge may say that it cannot tell.
    pub(super) cannot_assess: bool,
    /// Whether the criterion is one that must not be met.
    pub(super) negative: bool,
}

#[derive(Serialize)]
struct UserPrompt<'a> {
    code: &'a str,
    task: &'a str,
    answer: &'a str,
    criterion: &'a str,
    explanation: &'a str,
    artifacts: &'a [Exhibit],
    artifacts_cut: bool,
    references: &'a [Exhibit],
    references_cut: bool,
    nothing: &'a str,
    scope: &'a str,
    negative: bool,
}

#[derive(Serialize)]
struct SystemPrompt {
    references: bool,
    cannot_assess: bool,
}

impl Material<'_> {
    /// The question, with contents cut to what the judge can read. Second: whether any was cut.
    pub(super) fn question(mut self, context: Context) -> Result<(Question, bool), EvalError> {
        let system = self.system()?;
        let code = self.code();
        let pictures = self.pictures();
        self.fit(context, &system, &code, pictures.len())?;
        let text = self.user(&code)?;
        let cut = [&self.artifacts, &self.references]
            .into_iter()
            .flatten()
            .any(|exhibit| exhibit.cut);
        let user = if pictures.is_empty() {
            Content::Text(text)
        } else {
            let mut blocks = vec![Block::text(text)];
            for Labelled { label, uri } in pictures {
                blocks.push(Block::text(format!("IMAGE: {label}")));
                blocks.push(Block::image_url(uri));
            }
            Content::Blocks(blocks)
        };
        Ok((Question::new(system, user).with_code(code), cut))
    }

    /// Which parts of what the agent delivered speak to the judge: `answer`, `A1`, `A2`, …
    pub(super) fn addressing(&self) -> Vec<String> {
        let answer = self.target.has_answer() && speaks_to_judge(self.answer);
        let of_artifacts = self.artifacts.iter().enumerate();
        let artifacts = of_artifacts
            .filter(|(_, exhibit)| exhibit.texts().any(speaks_to_judge))
            .map(|(at, _)| format!("A{}", at + 1));
        answer
            .then(|| "answer".to_owned())
            .into_iter()
            .chain(artifacts)
            .collect()
    }

    fn system(&self) -> Result<String, EvalError> {
        let mut system = match self.system_prompt {
            Some(prompt) => prompt.to_owned(),
            None => OUTPUT_LLM.render(
                "system",
                &SystemPrompt {
                    references: !self.references.is_empty(),
                    cannot_assess: self.cannot_assess,
                },
            )?,
        };
        if self.guard {
            system.push('\n');
            system.push_str(&OUTPUT_LLM.render("guard", &())?);
        }
        Ok(system)
    }

    fn code(&self) -> String {
        let exhibits = self.artifacts.iter().chain(&self.references);
        let texts = exhibits.flat_map(Exhibit::texts);
        marker_code(&texts.chain([self.task, self.answer, self.criterion, self.explanation]))
    }

    /// All pictures with their labels, those of the artifacts before those of the references.
    fn pictures(&mut self) -> Vec<Labelled> {
        let mut counts = HashMap::new();
        self.artifacts
            .iter_mut()
            .chain(&mut self.references)
            .flat_map(|exhibit| exhibit.label_pictures(&mut counts))
            .collect()
    }

    fn fit(
        &mut self,
        context: Context,
        system: &str,
        code: &str,
        pictures: usize,
    ) -> Result<(), EvalError> {
        let need = Need {
            prompt: self.frame(context, system, code)?,
            pictures: u64::try_from(pictures).unwrap_or(u64::MAX),
            evidence: exhibit::tokens(context, &self.artifacts),
            references: exhibit::tokens(context, &self.references),
        };
        let allocation = context.allocate(need);
        exhibit::fit(context, &mut self.artifacts, allocation.evidence);
        exhibit::fit(context, &mut self.references, allocation.references);
        Ok(())
    }

    /// Tokens of everything but the contents of files.
    fn frame(&mut self, context: Context, system: &str, code: &str) -> Result<u64, EvalError> {
        let strip = |exhibits: &[Exhibit]| exhibits.iter().map(Exhibit::emptied).collect();
        let artifacts = strip(&self.artifacts);
        let references = strip(&self.references);
        let whole = (
            std::mem::replace(&mut self.artifacts, artifacts),
            std::mem::replace(&mut self.references, references),
        );
        let text = self.user(code);
        (self.artifacts, self.references) = whole;
        Ok(context.tokens(system) + context.tokens(&text?))
    }

    fn user(&self, code: &str) -> Result<String, EvalError> {
        let answer = if self.target.has_answer() {
            self.answer.trim()
        } else {
            ""
        };
        let nothing = match (answer.is_empty(), self.artifacts.is_empty()) {
            (true, true) => match self.target {
                Target::AnswerOnly => "The agent gave no answer in text.",
                Target::All => "The agent gave no answer and changed no files.",
                Target::Files { .. } | Target::Database => "The agent changed no such files.",
            },
            _ => "",
        };
        let cut = |exhibits: &[Exhibit]| exhibits.iter().any(|exhibit| exhibit.cut);
        let scope = match self.target {
            Target::All => "The answer and the changed files together.".to_owned(),
            Target::AnswerOnly => "The answer alone. Files do not count.".to_owned(),
            Target::Files { label, .. } => {
                format!("The changed files alone: {label}. What the agent said does not count.")
            }
            Target::Database => "The changed databases alone.".to_owned(),
        };
        Ok(OUTPUT_LLM.render(
            "user",
            &UserPrompt {
                code,
                task: self.task.trim(),
                answer,
                criterion: self.criterion,
                explanation: self.explanation,
                artifacts: &self.artifacts,
                artifacts_cut: cut(&self.artifacts),
                references: &self.references,
                references_cut: cut(&self.references),
                nothing,
                scope: &scope,
                negative: self.negative,
            },
        )?)
    }
}
