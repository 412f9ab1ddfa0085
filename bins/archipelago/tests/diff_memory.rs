//! The memory of `archipelago diff` does not grow with the worlds. A file of its own, because the system
//! tells of the children of a process only which took most.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use formats::diff::{ChangeKind, WorldDiff};
use nix::sys::resource::{UsageWho, getrusage};
use program::archipelago;
use snapshot::World;

const MIB: usize = 1 << 20;

/// Files of one MiB in a large world.
const FILES: usize = 96;

/// The most memory that any call of the program so far took, in MiB.
fn peak() -> usize {
    let kib = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    usize::try_from(kib).unwrap() / 1024
}

/// Bytes that do not compress, or lines of words; the same for the same number.
fn content(number: usize, text: bool) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let mut bytes = Vec::with_capacity(MIB);
    while bytes.len() < MIB {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if text {
            writeln!(bytes, "line {} of file {number}: {state:x}", bytes.len()).unwrap();
        } else {
            bytes.extend_from_slice(&state.to_be_bytes());
        }
    }
    bytes
}

/// A zip of a world with this many files of one MiB, some of them other than before in `after`.
fn zip(path: &Path, files: usize, after: bool) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for number in 0..files {
        let text = number % 2 == 0;
        let mut name = format!(
            "filesystem/{number:03}.{}",
            if text { "txt" } else { "bin" }
        );
        let mut bytes = content(number, text);
        match (after, number) {
            // Edited in the middle, at the end, and from the first line to the last.
            (true, 0) => bytes[MIB / 2..MIB / 2 + 6].copy_from_slice(b"EDITED"),
            (true, 1) => bytes[MIB - 2] ^= 1,
            (true, 2) => bytes = content(1_000, true),
            (true, 3) => name.push_str(".moved"),
            (true, 4) => continue,
            _ => {}
        }
        zip.start_file(name, options).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap().flush().unwrap();
}

/// The same world as a zip, a `tar.gz`, a `tar.zst` and a folder.
fn forms(home: &Path, files: usize, after: bool) -> Vec<PathBuf> {
    let base = home.join(format!("{files}-{after}"));
    std::fs::create_dir(&base).unwrap();
    let archive = base.join("world.zip");
    zip(&archive, files, after);
    let world = World::open(&archive).unwrap();
    let folder = base.join("world");
    let mut tar = tar::Builder::new(tempfile::tempfile().unwrap());
    for entry in world.entries() {
        let bytes = world.read_entry(entry, u64::MAX).unwrap();
        let path = folder.join(entry.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        tar.append_path_with_name(&path, entry.path()).unwrap();
    }
    let mut tar = tar.into_inner().unwrap();
    tar.rewind().unwrap();
    let zst = base.join("world.tar.zst");
    zstd::stream::copy_encode(&mut tar, std::fs::File::create(&zst).unwrap(), 1).unwrap();
    let gz = base.join("world.tar.gz");
    let file = std::fs::File::create(&gz).unwrap();
    world.write_tar_gz("filesystem", file).unwrap();
    vec![archive, gz, zst, folder]
}

#[test]
fn memory_does_not_grow_with_the_worlds() {
    let home = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for files in [5, FILES] {
        let before = forms(home.path(), files, false);
        let after = forms(home.path(), files, true);
        for (before, after) in before.iter().zip(&after) {
            let ended = archipelago()
                .arg("diff")
                .args([before, after])
                .args(["--format", "json"])
                .end();
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            let diff: WorldDiff = serde_json::from_str(&ended.stdout).unwrap();
            let count = |kind| diff.count(kind);
            assert_eq!(
                (
                    count(ChangeKind::Modified),
                    count(ChangeKind::Renamed),
                    count(ChangeKind::Deleted)
                ),
                (3, 1, 1),
                "{}",
                before.display()
            );
            assert_eq!(diff.unchanged, files - 5);
        }
        peaks.push(peak());
    }
    let [small, large] = peaks[..] else {
        panic!("{peaks:?}");
    };
    eprintln!(
        "peak memory: {small} MiB for worlds of 5 MiB, {large} MiB for worlds of {FILES} MiB"
    );
    // 91 MiB more on each side; what is kept of a file beside its diff is some hundred bytes.
    assert!(large <= small + 8, "{small} MiB, then {large} MiB");
}
