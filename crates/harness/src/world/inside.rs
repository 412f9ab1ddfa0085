//! What changed inside of a changed file: rows, members of archives, pictures, the text of a document.

use std::collections::HashSet;

use extract::{ChangeLimits, Content, ContentChanges, Happened};
use formats::diff::{ChangeKind, MemberChange, PictureFacts, RowChange, TableChange};
use grading::evidence::WorldFile;
use snapshot::{Change, DiffLimits, Entry, World, unified_diff};

/// What is known of the inside of one file.
#[derive(Debug, Default)]
pub(super) struct Inside {
    pub(super) tables: Vec<TableChange>,
    pub(super) members: Vec<MemberChange>,
    pub(super) old_picture: Option<PictureFacts>,
    pub(super) new_picture: Option<PictureFacts>,
    /// The difference of the texts of a document that is not text itself.
    pub(super) text_diff: Option<String>,
    pub(super) note: Option<String>,
}

impl Inside {
    /// The time for looking inside is over.
    pub(super) fn left_out() -> Self {
        Self {
            note: Some("not looked into: the time for it is over".to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn shows_something(&self) -> bool {
        !self.tables.is_empty()
            || !self.members.is_empty()
            || self.old_picture.is_some()
            || self.new_picture.is_some()
            || self.text_diff.is_some()
    }
}

/// Extensions of documents whose text is compared.
const DOCUMENTS: &[&str] = &["docx", "pdf", "pptx"];

/// Bytes of all previews of pictures in one document.
const PREVIEWS: usize = 4 << 20;

/// What previews of pictures may still take.
pub(super) struct Previews {
    left: usize,
}

impl Previews {
    pub(super) const fn new() -> Self {
        Self { left: PREVIEWS }
    }

    /// Whether this one still fits.
    fn take(&mut self, preview: &str) -> bool {
        let left = self.left.checked_sub(preview.len());
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// What the file of `change` is made of. A file that cannot be read inside is still a change: the
/// note says what is wrong with it. `changed` are the paths of all changes.
pub(super) fn look(
    before: &World,
    after: &World,
    change: &Change,
    changed: &HashSet<String>,
    previews: &mut Previews,
) -> Inside {
    if !matches!(
        change.kind,
        snapshot::ChangeKind::Created
            | snapshot::ChangeKind::Modified
            | snapshot::ChangeKind::Deleted
    ) {
        return Inside::default();
    }
    // What a program wrote to a database last may be in the log beside it only.
    let (old, new) = match change.path.strip_suffix("-wal") {
        // A database that changed itself is looked at under its own name.
        Some(database) if !changed.contains(database) => {
            (before.get(database), after.get(database))
        }
        Some(_) => return Inside::default(),
        None => (change.before.as_ref(), change.after.as_ref()),
    };
    let name = new.or(old).map_or("", Entry::path);
    if DOCUMENTS.contains(&extract::extension(name).as_str()) {
        return texts(name, (before, old), (after, new));
    }
    let old = file(before, old);
    let new = file(after, new);
    let changes = extract::content_changes(
        name,
        old.as_ref().map(|file| file as &dyn Content),
        new.as_ref().map(|file| file as &dyn Content),
        &ChangeLimits {
            previews: previews.left > 0,
            ..ChangeLimits::default()
        },
    );
    match changes {
        Ok(changes) => documented(changes, previews),
        Err(error) => Inside {
            note: Some(error.to_string()),
            ..Inside::default()
        },
    }
}

/// The difference of the texts of two versions of a document.
fn texts(
    name: &str,
    (before, old): (&World, Option<&Entry>),
    (after, new): (&World, Option<&Entry>),
) -> Inside {
    let text = |world: &World, entry: Option<&Entry>| -> Result<String, String> {
        let Some(entry) = entry.filter(|entry| entry.is_file()) else {
            return Ok(String::new());
        };
        let limits = extract::Limits::default();
        let bytes = world
            .read_entry(entry, limits.file_bytes as u64)
            .map_err(|error| error.to_string())?;
        let document =
            extract::extract(name, &bytes, &limits).map_err(|error| error.to_string())?;
        Ok(document.text)
    };
    let (old, new) = match (text(before, old), text(after, new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) | (_, Err(error)) => {
            return Inside {
                note: Some(error),
                ..Inside::default()
            };
        }
    };
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let limits = DiffLimits::default();
    let diff = unified_diff(name, || Ok(old), || Ok(new), &limits)
        .ok()
        .flatten();
    match diff {
        Some(diff) if diff.text.is_empty() => Inside {
            note: Some("the text of the document is the same".to_owned()),
            ..Inside::default()
        },
        Some(diff) => Inside {
            text_diff: Some(diff.text),
            note: (!diff.notes.is_empty()).then(|| diff.notes.join("; ")),
            ..Inside::default()
        },
        None => Inside::default(),
    }
}

fn file<'w>(world: &'w World, entry: Option<&'w Entry>) -> Option<WorldFile<'w>> {
    entry
        .filter(|entry| entry.is_file())
        .map(|entry| WorldFile::new(world, entry))
}

fn documented(changes: ContentChanges, previews: &mut Previews) -> Inside {
    let mut picture = |facts: extract::PictureFacts| PictureFacts {
        mime: facts.mime.map(str::to_owned),
        width: facts.width,
        height: facts.height,
        preview: facts.preview.filter(|preview| previews.take(preview)),
    };
    Inside {
        tables: changes.tables.into_iter().map(table).collect(),
        members: changes
            .members
            .into_iter()
            .map(|member| MemberChange {
                name: member.name,
                kind: kind(member.happened),
                old_size: member.old_size,
                new_size: member.new_size,
            })
            .collect(),
        old_picture: changes.picture_before.map(&mut picture),
        new_picture: changes.picture_after.map(picture),
        text_diff: None,
        note: (!changes.notes.is_empty()).then(|| changes.notes.join("; ")),
    }
}

fn table(table: extract::TableChange) -> TableChange {
    TableChange {
        name: table.name,
        kind: kind(table.happened),
        key: table.key,
        columns_added: table.columns_added,
        columns_removed: table.columns_removed,
        rows_added: table.added,
        rows_deleted: table.removed,
        rows_modified: table.changed,
        rows: table
            .rows
            .into_iter()
            .map(|row| RowChange {
                kind: kind(row.happened),
                place: row.place,
                before: row.before,
                after: row.after,
            })
            .collect(),
        truncated: table.truncated,
        notes: table.notes,
        error: table.error,
    }
}

const fn kind(happened: Happened) -> ChangeKind {
    match happened {
        Happened::Added => ChangeKind::Created,
        Happened::Removed => ChangeKind::Deleted,
        Happened::Changed => ChangeKind::Modified,
    }
}
