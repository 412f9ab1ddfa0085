//! Members of an archive inside of the world, and of archives inside of it.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use tempfile::SpooledTempFile;

use super::{ChangeLimits, Content, ContentChanges, Happened};
use crate::archive::{Next, members};
use crate::error::ExtractError;

/// Bytes of an archive that are kept in memory; a larger one goes to a temporary file.
const IN_MEMORY: usize = 1 << 20;

/// A member of an archive that is not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChange {
    /// What happened.
    pub happened: Happened,
    /// Its name in the archive; of one in an archive inside, with that one's name in front.
    pub name: String,
    /// Bytes before, as the archive states them.
    pub old_size: Option<u64>,
    /// Bytes after, as the archive states them.
    pub new_size: Option<u64>,
}

/// Size and checksum of each member.
type Members = BTreeMap<String, (u64, u32)>;

pub(super) fn compare(
    name: &str,
    before: Option<&dyn Content>,
    after: Option<&dyn Content>,
    limits: &ChangeLimits,
    changes: &mut ContentChanges,
) -> Result<(), ExtractError> {
    let mut notes = Vec::new();
    let mut of = |content: Option<&dyn Content>| {
        content.map_or_else(
            || Ok(Members::new()),
            |content| listed(name, content, limits, &mut notes),
        )
    };
    let (old, new) = (of(before)?, of(after)?);
    let mut found = Vec::new();
    for (name, (size, checksum)) in &old {
        let now = new.get(name);
        if now != Some(&(*size, *checksum)) {
            found.push(MemberChange {
                happened: now.map_or(Happened::Removed, |_| Happened::Changed),
                name: name.clone(),
                old_size: Some(*size),
                new_size: now.map(|now| now.0),
            });
        }
    }
    for (name, (size, _)) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        found.push(MemberChange {
            happened: Happened::Added,
            name: name.clone(),
            old_size: None,
            new_size: Some(*size),
        });
    }
    notes.sort();
    notes.dedup();
    changes.notes.extend(notes);
    if found.is_empty() {
        changes
            .notes
            .push("all members of the archive are the same".to_owned());
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if found.len() > limits.members {
        changes.notes.push(format!(
            "{} more members are not the same (limit `members`)",
            found.len() - limits.members
        ));
        found.truncate(limits.members);
    }
    changes.members = found;
    Ok(())
}

/// The members of one version, from a copy that can be read at any place.
fn listed(
    name: &str,
    content: &dyn Content,
    limits: &ChangeLimits,
    notes: &mut Vec<String>,
) -> Result<Members, ExtractError> {
    let mut spool = SpooledTempFile::new(IN_MEMORY);
    let copied = content
        .read()
        .and_then(|reader| io::copy(&mut reader.take(limits.archive_bytes + 1), &mut spool))
        .map_err(ExtractError::read)?;
    if copied > limits.archive_bytes {
        return Err(ExtractError::Limit {
            what: "size of the archive in bytes (at least)",
            limit: "archive_bytes",
            got: content.size().max(copied),
            allowed: limits.archive_bytes,
        });
    }
    spool.seek(SeekFrom::Start(0)).map_err(ExtractError::read)?;
    let mut found = Members::new();
    notes.extend(members(
        name,
        &mut spool,
        &limits.documents,
        &mut |member| {
            found.insert(member.name.to_owned(), (member.size, member.checksum));
            Next::Go
        },
    )?);
    Ok(found)
}
