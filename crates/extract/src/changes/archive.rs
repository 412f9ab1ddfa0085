//! Members of a zip inside of the world.

use std::collections::BTreeMap;
use std::io::Cursor;

use zip::ZipArchive;

use super::{ChangeLimits, Content, ContentChanges, Happened, bytes_of};
use crate::error::ExtractError;

/// A member of an archive that is not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChange {
    /// What happened.
    pub happened: Happened,
    /// Its name in the archive.
    pub name: String,
    /// Bytes before, as the archive states them.
    pub old_size: Option<u64>,
    /// Bytes after, as the archive states them.
    pub new_size: Option<u64>,
}

/// Size and checksum of each member, as the archive states them. Nothing is unpacked.
type Members = BTreeMap<String, (u64, u32)>;

pub(super) fn compare(
    before: Option<&dyn Content>,
    after: Option<&dyn Content>,
    limits: &ChangeLimits,
    changes: &mut ContentChanges,
) -> Result<(), ExtractError> {
    let of = |content: Option<&dyn Content>| {
        content.map_or_else(|| Ok(Members::new()), |content| members(content, limits))
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

fn members(content: &dyn Content, limits: &ChangeLimits) -> Result<Members, ExtractError> {
    let bytes = bytes_of(content, &limits.documents)?;
    let broken = |error| ExtractError::broken("zip", error);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if archive.len() > limits.documents.entries {
        return Err(ExtractError::Limit {
            what: "files inside the archive",
            limit: "entries",
            got: archive.len() as u64,
            allowed: limits.documents.entries as u64,
        });
    }
    let mut members = Members::new();
    for at in 0..archive.len() {
        let file = archive.by_index_raw(at).map_err(broken)?;
        if file.is_file() {
            let name = String::from_utf8_lossy(file.name_raw()).into_owned();
            members.insert(name, (file.size(), file.crc32()));
        }
    }
    Ok(members)
}
