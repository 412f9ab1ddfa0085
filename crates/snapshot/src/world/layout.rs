//! One set of paths for all forms of a world, and links turned into what they stand for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Content, Entry, EntryKind};
use crate::name;
use crate::resolve::{Resolved, resolve};
use crate::{FILESYSTEM, SUBSYSTEMS};

/// As many hard links as are followed to find the first name of a file.
const MAX_HARD_LINKS: usize = 16;

/// The folder in which macOS keeps attributes of the other entries of a zip.
const MACOS_ATTRIBUTES: &[u8] = b"__MACOSX";

/// An entry as its archive or directory has it.
#[derive(Debug, Clone)]
pub(super) struct RawEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: RawKind,
    pub(super) size: u64,
    pub(super) mode: Option<u32>,
    pub(super) modified: Option<SystemTime>,
    pub(super) checksum: Option<u32>,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawKind {
    File,
    Directory,
    Symlink(PathBuf),
    HardLink(PathBuf),
}

impl RawEntry {
    pub(super) const fn directory(name: Vec<u8>) -> Self {
        Self {
            name,
            kind: RawKind::Directory,
            size: 0,
            mode: None,
            modified: None,
            checksum: None,
            content: Content::Nothing,
        }
    }
}

/// How names of the archive become paths of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The subsystems stand at the top.
    Subsystems,
    /// They stand in the only folder at the top.
    Wrapped,
    /// Everything is the file system.
    FilesystemOnly,
}

/// The entries under the paths of a world, ordered, and how many are outside of it.
pub(super) fn normalise(raw: Vec<RawEntry>) -> (Vec<Entry>, usize) {
    let mut named = Vec::with_capacity(raw.len());
    let mut ignored = 0;
    for entry in raw {
        match clean(&entry.name) {
            Some(name) if !name.is_empty() => named.push((name, entry)),
            Some(_) => {}
            None => ignored += 1,
        }
    }
    let layout = layout_of(named.iter().map(|(name, _)| name.as_slice()));
    let mut entries = BTreeMap::new();
    for (name, entry) in named {
        match layout.path(&name) {
            Some(path) if is_subsystem(&path) => {}
            Some(path) => {
                entries.insert(path, entry);
            }
            None => ignored += 1,
        }
    }
    let resolved = entries
        .iter()
        .map(|(path, entry)| finish(path, entry, layout, &entries))
        .collect();
    (resolved, ignored)
}

impl Layout {
    fn path(self, name: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::FilesystemOnly => Some([FILESYSTEM.as_bytes(), name].join(&b'/')),
            Self::Subsystems => is_subsystem(first(name)).then(|| name.to_vec()),
            Self::Wrapped => {
                let rest = &name[(first(name).len() + 1).min(name.len())..];
                is_subsystem(first(rest)).then(|| rest.to_vec())
            }
        }
    }
}

fn layout_of<'n>(names: impl Iterator<Item = &'n [u8]> + Clone) -> Layout {
    let names = names.filter(|name| first(name) != MACOS_ATTRIBUTES);
    if names.clone().any(|name| is_subsystem(first(name))) {
        return Layout::Subsystems;
    }
    let top = names.clone().next().map(first);
    let one_top = top.is_some_and(|top| names.clone().all(|name| first(name) == top));
    let mut second = names.filter_map(|name| name.get(first(name).len() + 1..));
    if one_top && second.any(|rest| is_subsystem(first(rest))) {
        return Layout::Wrapped;
    }
    Layout::FilesystemOnly
}

/// The first component of a clean name.
fn first(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'/').next().unwrap_or_default()
}

fn is_subsystem(name: &[u8]) -> bool {
    SUBSYSTEMS
        .iter()
        .any(|subsystem| subsystem.as_bytes() == name)
}

/// A name without leading slashes and `.`; `None` when it has a `..`.
fn clean(name: &[u8]) -> Option<Vec<u8>> {
    let relative = &name[name.iter().take_while(|byte| **byte == b'/').count()..];
    name::relative_path(relative)
        .ok()
        .map(|path| name::bytes(&path).to_vec())
}

type Entries = BTreeMap<Vec<u8>, RawEntry>;

fn finish(path: &[u8], raw: &RawEntry, layout: Layout, entries: &Entries) -> Entry {
    let link_target = match &raw.kind {
        RawKind::Symlink(target) => Some(name::display(name::bytes(target))),
        _ => None,
    };
    let file = match &raw.kind {
        RawKind::File | RawKind::Directory => Some(raw),
        RawKind::HardLink(_) => first_name(raw, layout, entries),
        RawKind::Symlink(target) => linked_file(path, target, layout, entries),
    };
    let kind = match file.map(|file| &file.kind) {
        Some(RawKind::File) => EntryKind::File,
        Some(RawKind::Directory) => EntryKind::Directory,
        _ => EntryKind::Symlink,
    };
    let content = file.unwrap_or(raw);
    Entry {
        path: name::display(path),
        raw_path: path.to_vec(),
        kind,
        size: content.size,
        mode: content.mode,
        modified: content.modified,
        link_target,
        checksum: content.checksum,
        content: content.content.clone(),
    }
}

/// The file that a chain of hard links names.
fn first_name<'e>(raw: &'e RawEntry, layout: Layout, entries: &'e Entries) -> Option<&'e RawEntry> {
    let mut entry = raw;
    for _ in 0..MAX_HARD_LINKS {
        let RawKind::HardLink(target) = &entry.kind else {
            return (entry.kind == RawKind::File).then_some(entry);
        };
        let path = layout.path(&clean(name::bytes(target))?)?;
        entry = entries.get(&path)?;
    }
    None
}

/// The file of the world that a symbolic link leads to.
fn linked_file<'e>(
    path: &[u8],
    target: &Path,
    layout: Layout,
    entries: &'e Entries,
) -> Option<&'e RawEntry> {
    let path = name::relative_path(path).ok()?;
    let mut base = path.parent().unwrap_or(Path::new(""));
    let mut target = target;
    if let Ok(inside) = target.strip_prefix("/")
        && is_subsystem(first(name::bytes(inside)))
    {
        // Where the subsystems of an environment lie: `/filesystem`, `/.apps_data`.
        base = Path::new("");
        target = inside;
    }
    let link_at = |path: &Path| {
        Ok(
            match entries.get(name::bytes(path)).map(|entry| &entry.kind) {
                Some(RawKind::Symlink(target)) => Some(target.clone()),
                _ => None,
            },
        )
    };
    let Ok(Resolved::Inside(place)) = resolve(base, target, link_at) else {
        return None;
    };
    first_name(entries.get(name::bytes(&place))?, layout, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> RawEntry {
        RawEntry {
            kind: RawKind::File,
            size: name.len() as u64,
            ..RawEntry::directory(name.as_bytes().to_vec())
        }
    }

    fn link(name: &str, target: &str) -> RawEntry {
        RawEntry {
            kind: RawKind::Symlink(target.into()),
            ..RawEntry::directory(name.as_bytes().to_vec())
        }
    }

    fn paths(entries: Vec<RawEntry>) -> (Vec<String>, usize) {
        let (entries, ignored) = normalise(entries);
        (
            entries.into_iter().map(|entry| entry.path).collect(),
            ignored,
        )
    }

    #[test]
    fn subsystems_at_the_top() {
        let (paths, ignored) = paths(vec![
            RawEntry::directory(b"filesystem/".to_vec()),
            file("filesystem/b"),
            file("./filesystem//a"),
            file(".apps_data/x"),
            file("readme.txt"),
            file("my_filesystem/x"),
        ]);
        assert_eq!(paths, [".apps_data/x", "filesystem/a", "filesystem/b"]);
        assert_eq!(ignored, 2);
    }

    #[test]
    fn one_folder_around_them() {
        let (paths, ignored) = paths(vec![
            file("snap-1/filesystem/a"),
            file("snap-1/other"),
            file("__MACOSX/snap-1/filesystem/._a"),
        ]);
        assert_eq!(paths, ["filesystem/a"]);
        assert_eq!(ignored, 2);
    }

    #[test]
    fn anything_else_is_the_file_system() {
        let (paths, ignored) = paths(vec![file("a"), file("p/filesystem/b"), file("../x")]);
        assert_eq!(paths, ["filesystem/a", "filesystem/p/filesystem/b"]);
        assert_eq!(ignored, 1);
    }

    #[test]
    fn links_to_files_are_files_and_others_stay_links() {
        let (entries, _) = normalise(vec![
            file("filesystem/d/four"),
            RawEntry {
                kind: RawKind::HardLink("filesystem/d/four".into()),
                ..file("filesystem/hard")
            },
            link("filesystem/soft", "d/four"),
            link("filesystem/absolute", "/filesystem/hard"),
            link("filesystem/e", "d"),
            link("filesystem/through", "e/four"),
            link("filesystem/outside", "../../etc/passwd"),
            link("filesystem/dangling", "none"),
            link("filesystem/loop", "loop"),
        ]);
        let kinds: Vec<(&str, EntryKind, u64)> = entries
            .iter()
            .map(|entry| (entry.path(), entry.kind(), entry.size()))
            .collect();
        let size = "filesystem/d/four".len() as u64;
        assert_eq!(
            kinds,
            [
                ("filesystem/absolute", EntryKind::File, size),
                ("filesystem/d/four", EntryKind::File, size),
                ("filesystem/dangling", EntryKind::Symlink, 0),
                ("filesystem/e", EntryKind::Symlink, 0),
                ("filesystem/hard", EntryKind::File, size),
                ("filesystem/loop", EntryKind::Symlink, 0),
                ("filesystem/outside", EntryKind::Symlink, 0),
                ("filesystem/soft", EntryKind::File, size),
                ("filesystem/through", EntryKind::File, size),
            ]
        );
        assert_eq!(entries[7].link_target(), Some("d/four"));
    }
}
