//! An artifact as a judge is shown it.

use formats::diff::ChangeKind;
use serde::Serialize;

use evidence::{Artifact, InitialFile};
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
    /// Labels of the pictures.
    pictures: Vec<String>,
    blocks: Vec<Block>,
    #[serde(skip)]
    picture_uris: Vec<String>,
}

/// One text of an exhibit.
#[derive(Debug, Clone, Serialize)]
struct Block {
    name: &'static str,
    text: String,
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
        if let Some(comments) = &artifact.comments {
            exhibit.block("comments", comments);
        }
        exhibit.optional("tracked changes", artifact.tracked_changes.as_deref());
        // Comments also stand at the end of the text; shown once is enough.
        let without_comments = |text: &str| match &artifact.comments {
            Some(comments) => text
                .strip_suffix(comments.as_str())
                .unwrap_or(text)
                .to_owned(),
            None => text.to_owned(),
        };
        let content = artifact.new_content.as_deref().map(without_comments);
        match artifact.change {
            ChangeKind::Created => {
                if let Some(text) = content.as_deref().or(artifact.diff.as_deref()) {
                    exhibit.block("content", text);
                }
            }
            ChangeKind::Deleted => exhibit.optional("diff", artifact.diff.as_deref()),
            _ => {
                exhibit.optional("diff", artifact.diff.as_deref());
                exhibit.optional("content", content.as_deref());
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
            picture_uris: file.picture_uri.clone().into_iter().collect(),
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
            picture_uris: artifact
                .picture
                .iter()
                .chain(&artifact.page_pictures)
                .filter_map(|picture| picture.data_uri.clone())
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
        let (text, cut) = bounded(text.to_owned());
        self.cut |= cut;
        self.blocks.push(Block { name, text });
    }

    /// The texts, for counting.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.blocks.iter().map(|block| block.text.as_str())
    }

    /// Takes the pictures out, leaving labels in their place. `first` numbers them.
    pub(super) fn label_pictures(&mut self, first: usize) -> Vec<Labelled> {
        let uris = std::mem::take(&mut self.picture_uris);
        uris.into_iter()
            .enumerate()
            .map(|(at, uri)| {
                let label = format!("[VISUAL_ARTIFACT_{}]", first + at);
                self.pictures.push(label.clone());
                Labelled { label, uri }
            })
            .collect()
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
