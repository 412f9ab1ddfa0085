//! What changed inside of a changed file: rows, members of archives, pictures.

use std::collections::HashSet;

use extract::{ChangeLimits, Content, ContentChanges, Happened};
use formats::diff::{ChangeKind, MemberChange, PictureFacts, RowChange, TableChange};
use grading::evidence::WorldFile;
use snapshot::{Change, Entry, World};

/// What is known of the inside of one file.
#[derive(Debug, Default)]
pub(super) struct Inside {
    pub(super) tables: Vec<TableChange>,
    pub(super) members: Vec<MemberChange>,
    pub(super) old_picture: Option<PictureFacts>,
    pub(super) new_picture: Option<PictureFacts>,
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
    }
}

/// What the file of `change` is made of. A file that cannot be read inside is still a change: the
/// note says what is wrong with it. `changed` are the paths of all changes.
pub(super) fn look(
    before: &World,
    after: &World,
    change: &Change,
    changed: &HashSet<String>,
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
    let old = file(before, old);
    let new = file(after, new);
    let changes = extract::content_changes(
        name,
        old.as_ref().map(|file| file as &dyn Content),
        new.as_ref().map(|file| file as &dyn Content),
        &ChangeLimits::default(),
    );
    match changes {
        Ok(changes) => documented(changes),
        Err(error) => Inside {
            note: Some(error.to_string()),
            ..Inside::default()
        },
    }
}

fn file<'w>(world: &'w World, entry: Option<&'w Entry>) -> Option<WorldFile<'w>> {
    entry
        .filter(|entry| entry.is_file())
        .map(|entry| WorldFile::new(world, entry))
}

fn documented(changes: ContentChanges) -> Inside {
    let picture = |facts: extract::PictureFacts| PictureFacts {
        mime: facts.mime.map(str::to_owned),
        width: facts.width,
        height: facts.height,
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
        old_picture: changes.picture_before.map(picture),
        new_picture: changes.picture_after.map(picture),
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
