//! `diff.json`: what changed in a world between two snapshots.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this document that we write.
pub const FORMAT_VERSION: u32 = 1;

/// The difference of two states of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorldDiff {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// Files in the first state.
    pub files_before: usize,
    /// Files in the second state.
    pub files_after: usize,
    /// Files that are in both and equal.
    pub unchanged: usize,
    /// Every difference, ordered by path.
    pub changes: Vec<FileChange>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// Only in the second state.
    Created,
    /// In both, with other content.
    Modified,
    /// Only in the first state.
    Deleted,
    /// The same content under another path.
    Renamed,
    /// The same content with another mode or link target.
    Metadata,
}

impl ChangeKind {
    /// The word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Metadata => "metadata",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path inside the snapshot, such as `filesystem/report.txt`. Bytes that are not UTF-8 are
    /// replaced.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// The former path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// Size in bytes before; absent for a created file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_size: Option<u64>,
    /// Size in bytes after; absent for a deleted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_size: Option<u64>,
    /// A unified diff, where both sides are text of bounded size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_diff: Option<String>,
    /// Why there is no text diff, or other remarks (binary, too large, mode 0644 → 0755).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl WorldDiff {
    /// How many changes are of `kind`.
    #[must_use]
    pub fn count(&self, kind: ChangeKind) -> usize {
        self.changes
            .iter()
            .filter(|change| change.kind == kind)
            .count()
    }
}
