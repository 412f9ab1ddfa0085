//! Archives made member by member, and trees as values.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A tar whose members are written without any check.
#[derive(Default)]
pub struct RawTar(Vec<u8>);

impl RawTar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn file(self, name: &[u8], content: &[u8]) -> Self {
        self.member(b'0', name, b"", 0o644, content)
    }

    pub fn directory(self, name: &[u8]) -> Self {
        self.member(b'5', name, b"", 0o755, b"")
    }

    pub fn symlink(self, name: &[u8], target: &[u8]) -> Self {
        self.member(b'2', name, target, 0o777, b"")
    }

    pub fn hard_link(self, name: &[u8], target: &[u8]) -> Self {
        self.member(b'1', name, target, 0o644, b"")
    }

    pub fn member(mut self, kind: u8, name: &[u8], link: &[u8], mode: u32, content: &[u8]) -> Self {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name);
        header[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000144\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link);
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The members of `other` after those of this one.
    pub fn append(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub fn tar(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }

    pub fn gz(self) -> Vec<u8> {
        gz(&self.tar())
    }
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What stands at a path: everything that must not change behind the back of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    File {
        content: Vec<u8>,
        mode: u32,
        mtime: (i64, i64),
    },
    Directory,
    Link(PathBuf),
    Other,
}

pub fn tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let node = if metadata.is_dir() {
                pending.push(path.clone());
                Node::Directory
            } else if metadata.is_symlink() {
                Node::Link(std::fs::read_link(&path).unwrap())
            } else if metadata.is_file() {
                Node::File {
                    content: std::fs::read(&path).unwrap(),
                    mode: metadata.permissions().mode() & 0o7777,
                    mtime: (metadata.mtime(), metadata.mtime_nsec()),
                }
            } else {
                Node::Other
            };
            nodes.insert(path.strip_prefix(root).unwrap().to_owned(), node);
        }
    }
    nodes
}

pub fn write(root: &Path, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> PathBuf {
    let path = root.join(OsStr::from_bytes(name.as_ref()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// `../shared/golden`, or `None` with a visible word about the test that is skipped.
pub fn golden(part: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("golden").join(part);
    if !path.exists() {
        eprintln!("SKIPPED: {} is absent", path.display());
        return None;
    }
    Some(path)
}

/// Bytes that do not compress.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut noise = Vec::with_capacity(length + 4);
    while noise.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise.extend_from_slice(&(state >> 32).to_le_bytes()[..4]);
    }
    noise.truncate(length);
    noise
}
