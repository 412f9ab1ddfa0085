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
    /// Tables of a database, sheets of a workbook, or the rows of a csv file that are not the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableChange>,
    /// Members of an archive inside of the world that are not the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberChange>,
    /// The picture before, where the file is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_picture: Option<PictureFacts>,
    /// The picture after, where the file is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_picture: Option<PictureFacts>,
}

/// A row: the names of its columns, or the coordinates of its cells, with their values.
pub type Row = serde_json::Map<String, serde_json::Value>;

/// A table or a sheet that is not the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableChange {
    /// The name of the table or sheet; empty for a csv file.
    pub name: String,
    /// What happened to the table: `created`, `deleted` or `modified`.
    pub kind: ChangeKind,
    /// The columns by which rows are told apart; empty where there is no such key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// Columns that only the second state has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns_added: Vec<String>,
    /// Columns that only the first state has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns_removed: Vec<String>,
    /// How many rows were added.
    pub rows_added: u64,
    /// How many rows were deleted.
    pub rows_deleted: u64,
    /// How many rows were modified.
    pub rows_modified: u64,
    /// The first rows of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowChange>,
    /// Whether `rows` shows fewer than there are.
    #[serde(default)]
    pub truncated: bool,
    /// What else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why the table could not be compared; the counts mean nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A row that is not the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowChange {
    /// What happened: `created`, `deleted` or `modified`.
    pub kind: ChangeKind,
    /// Where it stands, in files whose rows have a place: `row 7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The row before; of a modified row of a sheet the modified cells only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Row>,
    /// The row after; of a modified row of a sheet the modified cells only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Row>,
}

/// A member of an archive that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberChange {
    /// Its name in the archive.
    pub name: String,
    /// What happened: `created`, `deleted` or `modified`.
    pub kind: ChangeKind,
    /// Size in bytes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_size: Option<u64>,
    /// Size in bytes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_size: Option<u64>,
}

/// A picture: what can be said of it in words, and a small copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PictureFacts {
    /// The MIME type by the content; absent where it is no picture, whatever the name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The picture as `data:` URI, scaled down where it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
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
