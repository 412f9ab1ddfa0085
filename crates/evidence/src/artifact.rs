//! One thing that the agent changed.

use extract::{PartKind, Picture};
use formats::diff::ChangeKind;

/// All that changed in the world.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Created, then modified, then deleted; in each, files by path and their parts by position.
    pub artifacts: Vec<Artifact>,
    /// Files that are in both worlds and equal.
    pub unchanged: usize,
}

/// A changed file, or a changed sheet or slide of one.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// The file's path as people know it: below `filesystem/`, or with `.apps_data/` in front.
    pub path: String,
    /// `Created`, `Modified` or `Deleted`.
    pub change: ChangeKind,
    /// Which part of the file it is, for a sheet or a slide.
    pub part: Option<PartOf>,
    /// Position of the part in the final file, of a deleted part in the original; from 0.
    pub index: Option<usize>,
    /// Text before; absent for created artifacts and where there is no text.
    pub old_content: Option<String>,
    /// Text after; absent for deleted artifacts and where there is no text.
    pub new_content: Option<String>,
    /// A unified diff of modified artifacts, a pure removal for deleted ones.
    pub diff: Option<String>,
    /// Bytes before; absent for created files and for parts.
    pub old_size: Option<u64>,
    /// Bytes after; absent for deleted files and for parts.
    pub new_size: Option<u64>,
    /// The picture, where the file is one: after the change, of a deleted file before it.
    pub picture: Option<Picture>,
    /// The first pages of a PDF as pictures, where the limits ask for them; of the version after the
    /// change, of a deleted file before it.
    pub page_pictures: Vec<Picture>,
    /// Comments of a word processor document; also at the end of its text.
    pub comments: Option<String>,
    /// Who inserted, deleted and moved what in a word processor document with tracked changes.
    pub tracked_changes: Option<String>,
    /// Why there is no text, or what was left out of it.
    pub notes: Vec<String>,
}

/// Which part of a file an artifact is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOf {
    /// A sheet or a slide.
    pub kind: PartKind,
    /// Its name or title.
    pub title: String,
    /// For a modified part its position before; for a created one the position before of the
    /// nearest part in front of it that was there before.
    pub original_index: Option<usize>,
}

impl Artifact {
    /// An artifact without content.
    #[must_use]
    pub fn new(path: &str, change: ChangeKind) -> Self {
        Self {
            path: path.to_owned(),
            change,
            part: None,
            index: None,
            old_content: None,
            new_content: None,
            diff: None,
            old_size: None,
            new_size: None,
            picture: None,
            page_pictures: Vec::new(),
            comments: None,
            tracked_changes: None,
            notes: Vec::new(),
        }
    }

    /// The lower-cased extension of the file, without the dot.
    #[must_use]
    pub fn extension(&self) -> String {
        extract::extension(&self.path)
    }

    /// `file`, `sheet` or `slide`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.part {
            None => "file",
            Some(part) => match part.kind {
                PartKind::Sheet => "sheet",
                PartKind::Slide => "slide",
            },
        }
    }

    /// How results name it: the path, with the part in brackets (§5.10).
    #[must_use]
    pub fn name(&self) -> String {
        let Some(part) = &self.part else {
            return self.path.clone();
        };
        let kind = match part.kind {
            PartKind::Sheet => "Sheet",
            PartKind::Slide => "Slide",
        };
        let number = self.index.unwrap_or_default() + 1;
        if part.title.is_empty() {
            format!("{} ({kind} {number})", self.path)
        } else {
            format!("{} ({kind} {number}: {})", self.path, part.title)
        }
    }
}
