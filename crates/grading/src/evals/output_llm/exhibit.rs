//! An artifact as a judge is shown it.

use std::collections::HashMap;

use formats::diff::ChangeKind;
use serde::Serialize;

use evidence::{Artifact, Drawing, InitialFile};
use judge::{Context, bounded};

/// An artifact or a reference file on its way into a prompt. All strings but the texts of blocks
/// are JSON text, so that a name cannot break a line.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Exhibit {
    kind: &'static str,
    change: Option<&'static str>,
    path: String,
    title: Option<String>,
    position: Option<usize>,
    original_position: Option<usize>,
    pub(super) cut: bool,
    notes: Vec<String>,
    /// Labels of the pictures, with the page that one shows.
    pictures: Vec<String>,
    blocks: Vec<Block>,
    #[serde(skip)]
    shown: Vec<Shown>,
}

/// A picture on its way into a question.
#[derive(Debug, Clone)]
struct Shown {
    label: &'static str,
    /// The page of the document that it shows, from 1.
    page: Option<usize>,
    uri: String,
}

/// One text of an exhibit.
#[derive(Debug, Clone, Serialize)]
struct Block {
    name: &'static str,
    text: String,
}

/// The label of pictures that are files of their own, and of pages that the settings ask for.
const VISUAL: &str = "VISUAL_ARTIFACT";

/// What pictures of one question may come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PictureBudget {
    pub(super) pictures: usize,
    pub(super) bytes: u64,
}

/// A picture with the label by which the text refers to it.
#[derive(Debug, Clone)]
pub(super) struct Labelled {
    pub(super) label: String,
    pub(super) uri: String,
}

impl Exhibit {
    /// An artifact with all its texts (§5.6).
    pub(super) fn of(artifact: &Artifact) -> Self {
        let mut exhibit = Self::header(artifact);
        exhibit.optional("tracked changes", artifact.tracked_changes.as_deref());
        exhibit.optional("comments", artifact.comments.as_deref());
        // Comments also stand at the end of the text; shown once is enough.
        let content = artifact.new_content.as_deref().map(|text| {
            let comments = artifact.comments.as_deref();
            let without = comments.and_then(|comments| text.strip_suffix(comments));
            without.unwrap_or(text)
        });
        match artifact.change {
            ChangeKind::Created => {
                exhibit.optional("content", content.or(artifact.diff.as_deref()));
            }
            ChangeKind::Deleted => exhibit.optional("diff", artifact.diff.as_deref()),
            _ => {
                exhibit.optional("diff", artifact.diff.as_deref());
                exhibit.optional("content", content);
            }
        }
        exhibit
    }

    /// An artifact with what changed in it and nothing else (§5.4).
    pub(super) fn change_only(artifact: &Artifact) -> Self {
        let mut exhibit = Self::header(artifact);
        match artifact.change {
            ChangeKind::Created => exhibit.optional("content", artifact.new_content.as_deref()),
            _ => exhibit.optional("diff", artifact.diff.as_deref()),
        }
        exhibit
    }

    /// A reference file, or one part of it.
    pub(super) fn reference(file: &InitialFile) -> Self {
        let mut exhibit = Self {
            kind: file.kind,
            change: None,
            path: json(&file.path),
            title: file.title.as_deref().map(json),
            position: file.index.map(|index| index + 1),
            original_position: None,
            cut: false,
            notes: file.notes.iter().map(|note| json(note)).collect(),
            pictures: Vec::new(),
            blocks: Vec::new(),
            shown: file
                .picture_uri
                .iter()
                .map(|uri| Shown::of_file(uri))
                .collect(),
        };
        exhibit.block("content", &file.text);
        exhibit
    }

    fn header(artifact: &Artifact) -> Self {
        let part = artifact.part.as_ref();
        Self {
            kind: artifact.kind(),
            change: Some(artifact.change.as_str()),
            path: json(&artifact.path),
            title: part.map(|part| json(&part.title)),
            position: artifact.index.map(|index| index + 1),
            original_position: part.and_then(|part| Some(part.original_index? + 1)),
            cut: false,
            notes: artifact.notes.iter().map(|note| json(note)).collect(),
            pictures: Vec::new(),
            blocks: Vec::new(),
            shown: artifact
                .picture
                .iter()
                .chain(&artifact.page_pictures)
                .filter_map(|picture| picture.data_uri.as_deref())
                .map(Shown::of_file)
                .collect(),
        }
    }

    fn optional(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.block(name, text);
        }
    }

    fn block(&mut self, name: &'static str, text: &str) {
        let text = text.trim_end_matches('\n');
        if text.trim().is_empty() {
            return;
        }
        let (text, cut) = bounded(text);
        self.cut |= cut;
        self.blocks.push(Block { name, text });
    }

    /// The same without its texts, as it is where there is no room for any.
    pub(super) fn emptied(&self) -> Self {
        Self {
            cut: self.cut || !self.blocks.is_empty(),
            blocks: self
                .blocks
                .iter()
                .map(|block| Block {
                    name: block.name,
                    text: String::new(),
                })
                .collect(),
            path: self.path.clone(),
            title: self.title.clone(),
            notes: self.notes.clone(),
            pictures: self.pictures.clone(),
            shown: Vec::new(),
            ..*self
        }
    }

    /// The texts, for counting.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.blocks.iter().map(|block| block.text.as_str())
    }

    /// Takes out what the pictures that are there cost, and drops those that are too much.
    pub(super) fn pay_pictures(&mut self, budget: &mut PictureBudget) {
        let before = self.shown.len();
        self.shown.retain(|shown| budget.pay(&shown.uri));
        let dropped = before - self.shown.len();
        if dropped > 0 {
            self.note(&format!("{dropped} of its pictures are left out: {LIMITS}"));
        }
    }

    /// Shows pages of the document, in place of those that were to be shown anyway.
    pub(super) fn show_pages(
        &mut self,
        label: &'static str,
        drawing: &Drawing,
        most: usize,
        budget: &mut PictureBudget,
    ) {
        self.shown.clear();
        let pages = drawing.pages.iter().filter(|(number, _)| *number <= most);
        for (number, picture) in pages {
            let Some(uri) = picture.data_uri.as_ref().filter(|uri| budget.pay(uri)) else {
                self.note(&format!(
                    "its pages from {number} on are left out: {LIMITS}"
                ));
                return;
            };
            self.shown.push(Shown {
                label,
                page: Some(*number),
                uri: uri.clone(),
            });
        }
        if drawing.more || drawing.pages.last().is_some_and(|(last, _)| *last > most) {
            self.note(&format!(
                "only its first {most} pages are shown as pictures"
            ));
        }
    }

    /// Adds a line that the judge is told about the exhibit.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(json(text));
    }

    /// How many pictures it has.
    pub(super) fn picture_count(&self) -> usize {
        self.shown.len()
    }

    /// Takes the pictures out, leaving labels in their place. Each kind of label is counted by
    /// itself, in `counts`.
    pub(super) fn label_pictures(
        &mut self,
        counts: &mut HashMap<&'static str, usize>,
    ) -> Vec<Labelled> {
        let shown = std::mem::take(&mut self.shown);
        shown
            .into_iter()
            .map(|Shown { label, page, uri }| {
                let count = counts.entry(label).or_default();
                *count += 1;
                let label = format!("[{label}_{count}]");
                self.pictures.push(match page {
                    Some(page) => format!("{label} page {page}"),
                    None => label.clone(),
                });
                Labelled { label, uri }
            })
            .collect()
    }
}

/// The limits on the pictures of a question, as they are named to the judge.
const LIMITS: &str = "limits `pictures`, `total_picture_bytes` and what the judge can read";

impl Shown {
    fn of_file(uri: &str) -> Self {
        Self {
            label: VISUAL,
            page: None,
            uri: uri.to_owned(),
        }
    }
}

impl PictureBudget {
    /// Whether there was enough for one more picture.
    fn pay(&mut self, uri: &str) -> bool {
        let left = self.bytes.checked_sub(extract::data_bytes(uri));
        match (self.pictures, left) {
            (1.., Some(left)) => {
                self.pictures -= 1;
                self.bytes = left;
                true
            }
            _ => false,
        }
    }
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Tokens of all texts of `exhibits`.
pub(super) fn tokens(context: Context, exhibits: &[Exhibit]) -> u64 {
    exhibits
        .iter()
        .flat_map(Exhibit::texts)
        .map(|text| context.tokens(text))
        .sum()
}

/// Cuts the texts of `exhibits` to `budget` tokens and marks those that were cut.
pub(super) fn fit(context: Context, exhibits: &mut [Exhibit], budget: u64) {
    let owners: Vec<usize> = exhibits
        .iter()
        .enumerate()
        .flat_map(|(at, exhibit)| exhibit.blocks.iter().map(move |_| at))
        .collect();
    let mut texts: Vec<&mut String> = exhibits
        .iter_mut()
        .flat_map(|exhibit| exhibit.blocks.iter_mut().map(|block| &mut block.text))
        .collect();
    let cut = context.fit(&mut texts, budget);
    for (owner, cut) in owners.into_iter().zip(cut) {
        exhibits[owner].cut |= cut;
    }
}
