//! The entries of a directory.

use std::io;
use std::os::unix::fs::PermissionsExt as _;

use super::Content;
use super::layout::{RawEntry, RawKind};
use crate::name;
use crate::tree::Tree;

/// Everything in `tree`, which is the `number`th of its world. Devices, FIFOs and sockets are left out.
pub(super) fn list(number: usize, tree: &Tree) -> io::Result<Vec<RawEntry>> {
    let mut entries = Vec::new();
    for found in tree.walk() {
        let found = found?;
        let metadata = &found.metadata;
        let kind = if metadata.is_dir() {
            RawKind::Directory
        } else if metadata.is_symlink() {
            match tree.link_target(&found.path) {
                Ok(target) => RawKind::Symlink(target),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
        } else if metadata.is_file() {
            RawKind::File
        } else {
            continue;
        };
        let is_file = kind == RawKind::File;
        entries.push(RawEntry {
            name: name::bytes(&found.path).to_vec(),
            kind,
            size: if is_file { metadata.len() } else { 0 },
            mode: Some(metadata.permissions().mode() & 0o7777),
            modified: metadata.modified().ok(),
            checksum: None,
            content: if is_file {
                Content::Disk {
                    tree: number,
                    path: found.path,
                }
            } else {
                Content::Nothing
            },
        });
    }
    Ok(entries)
}
