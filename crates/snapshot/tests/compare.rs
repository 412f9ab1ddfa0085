//! What changed between two worlds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use snapshot::{Change, ChangeKind, CompareOptions, Diff, EntryKind, World, compare};
use support::{RawTar, write};

fn kinds(diff: &Diff) -> Vec<(ChangeKind, &str)> {
    diff.changes
        .iter()
        .map(|change| (change.kind, change.path.as_str()))
        .collect()
}

fn change<'d>(diff: &'d Diff, path: &str) -> &'d Change {
    diff.changes
        .iter()
        .find(|change| change.path == path)
        .unwrap()
}

#[test]
fn every_kind_of_change() {
    let home = tempfile::tempdir().unwrap();
    let before = home.path().join("before/filesystem");
    let after = home.path().join("after/filesystem");
    write(&before, "same.txt", "same\n");
    write(&after, "same.txt", "same\n");
    write(&before, "edited.txt", "one\ntwo\nthree\n");
    write(&after, "edited.txt", "one\nTWO\nthree\n");
    write(&before, "same-length.bin", [0_u8, 1, 2]);
    write(&after, "same-length.bin", [0_u8, 1, 3]);
    write(&before, "gone.txt", "bye\n");
    write(&after, "new.txt", "no newline");
    write(&before, "old/name.md", "the same words\n");
    write(&after, "new/name.md", "the same words\n");
    write(&before, "run.sh", "x");
    write(&after, "run.sh", "x");
    std::fs::set_permissions(after.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/a", before.join("link")).unwrap();
    symlink("/b", after.join("link")).unwrap();
    write(&before, "empty-1", "");
    write(&after, "empty-2", "");
    std::fs::create_dir(after.join("folder")).unwrap();

    let before = World::open(home.path().join("before")).unwrap();
    let after = World::open(home.path().join("after")).unwrap();
    let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert_eq!(
        kinds(&diff),
        [
            (ChangeKind::Modified, "filesystem/edited.txt"),
            (ChangeKind::Deleted, "filesystem/empty-1"),
            (ChangeKind::Created, "filesystem/empty-2"),
            (ChangeKind::Deleted, "filesystem/gone.txt"),
            (ChangeKind::Metadata, "filesystem/link"),
            (ChangeKind::Created, "filesystem/new.txt"),
            (ChangeKind::Renamed, "filesystem/new/name.md"),
            (ChangeKind::Metadata, "filesystem/run.sh"),
            (ChangeKind::Modified, "filesystem/same-length.bin"),
        ]
    );
    assert_eq!(
        (diff.files_before, diff.files_after, diff.unchanged),
        (8, 8, 1)
    );
    assert_eq!(diff.count(ChangeKind::Modified), 2);
    assert_eq!(
        change(&diff, "filesystem/edited.txt").text_diff.as_deref(),
        Some(
            "--- a/filesystem/edited.txt\n+++ b/filesystem/edited.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
        )
    );
    assert_eq!(
        change(&diff, "filesystem/gone.txt").text_diff.as_deref(),
        Some("--- a/filesystem/gone.txt\n+++ b/filesystem/gone.txt\n@@ -1 +0,0 @@\n-bye\n")
    );
    assert_eq!(
        change(&diff, "filesystem/new.txt").text_diff.as_deref(),
        Some(
            "--- a/filesystem/new.txt\n+++ b/filesystem/new.txt\n@@ -0,0 +1 @@\n+no newline\n\\ No newline at end of file\n"
        )
    );
    assert_eq!(
        change(&diff, "filesystem/same-length.bin")
            .text_note
            .as_deref(),
        Some("binary")
    );
    assert_eq!(
        change(&diff, "filesystem/run.sh").note.as_deref(),
        Some("mode 0644 → 0755")
    );
    assert_eq!(
        change(&diff, "filesystem/link").note.as_deref(),
        Some("link to /a → /b")
    );
    let renamed = change(&diff, "filesystem/new/name.md");
    assert_eq!(renamed.old_path.as_deref(), Some("filesystem/old/name.md"));
    assert_eq!(
        (renamed.old_size(), renamed.new_size()),
        (Some(15), Some(15))
    );
    let old = renamed.before.as_ref().unwrap();
    assert_eq!(before.read_entry(old, 100).unwrap(), b"the same words\n");

    let plain = CompareOptions {
        renames: false,
        text: false,
        ..CompareOptions::default()
    };
    let diff = compare(&before, &after, &plain).unwrap();
    assert_eq!(diff.count(ChangeKind::Renamed), 0);
    assert_eq!(
        (
            diff.count(ChangeKind::Created),
            diff.count(ChangeKind::Deleted)
        ),
        (3, 3)
    );
    assert!(diff.changes.iter().all(|change| change.text_diff.is_none()));
}

#[test]
fn diffs_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let make = |name: &str, word: &str| -> PathBuf {
        let root = home.path().join(name);
        write(&root, "filesystem/a", format!("{word}\n").repeat(100));
        write(&root, "filesystem/b", word);
        root
    };
    let before = World::open(make("before", "old")).unwrap();
    let after = World::open(make("after", "newer")).unwrap();
    let options = CompareOptions {
        max_text_bytes: 100,
        ..CompareOptions::default()
    };
    let diff = compare(&before, &after, &options).unwrap();
    assert_eq!(
        change(&diff, "filesystem/a").text_note.as_deref(),
        Some("no diff: 400 bytes, allowed are 100")
    );
    assert!(change(&diff, "filesystem/b").text_diff.is_some());
    let options = CompareOptions {
        max_diff_bytes: 200,
        ..CompareOptions::default()
    };
    let diff = compare(&before, &after, &options).unwrap();
    assert_eq!(
        change(&diff, "filesystem/a").text_note.as_deref(),
        Some("the diffs together are larger than 200 bytes")
    );
    assert!(change(&diff, "filesystem/b").text_diff.is_some());
}

/// Two folders whose files have no checksums, and archives of all kinds: the same moves.
#[test]
fn moved_files_are_found_in_every_form() {
    let home = tempfile::tempdir().unwrap();
    let files = |folder: &str| -> Vec<(String, String)> {
        let of = (0..40).map(|n| {
            (
                format!("filesystem/{folder}/{n:02}.txt"),
                format!("text {n:02}"),
            )
        });
        of.collect()
    };
    let forms = |name: &str, files: &[(String, String)]| -> Vec<PathBuf> {
        for (path, content) in files {
            write(&home.path().join(name), path, content);
        }
        let tar = files.iter().fold(RawTar::new(), |tar, (path, content)| {
            tar.file(path.as_bytes(), content.as_bytes())
        });
        let tar = tar.tar();
        let folder = World::open(home.path().join(name)).unwrap();
        let zip = std::fs::File::create(home.path().join(format!("{name}.zip"))).unwrap();
        folder.write_zip(zip).unwrap();
        vec![
            home.path().join(name),
            home.path().join(format!("{name}.zip")),
            write(home.path(), format!("{name}.tar"), &tar),
            write(home.path(), format!("{name}.tar.gz"), support::gz(&tar)),
            write(
                home.path(),
                format!("{name}.tar.zst"),
                zstd::encode_all(tar.as_slice(), 3).unwrap(),
            ),
        ]
    };
    let mut after = files("new");
    // One was moved and edited, to the same length; one was moved under another name.
    after[7].1 = "text 70".to_owned();
    after[9].0 = "filesystem/new/renamed".to_owned();
    let (before, after) = (forms("before", &files("old")), forms("after", &after));
    for (before, after) in before
        .iter()
        .flat_map(|b| after.iter().map(move |a| (b, a)))
    {
        let (before, after) = (World::open(before).unwrap(), World::open(after).unwrap());
        let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
        assert_eq!(diff.count(ChangeKind::Renamed), 39);
        assert_eq!(
            change(&diff, "filesystem/new/renamed").old_path.as_deref(),
            Some("filesystem/old/09.txt")
        );
        assert_eq!(
            change(&diff, "filesystem/new/07.txt").kind,
            ChangeKind::Created
        );
        assert_eq!(
            change(&diff, "filesystem/old/07.txt").kind,
            ChangeKind::Deleted
        );
        assert!(
            diff.changes
                .iter()
                .filter(|c| c.kind == ChangeKind::Renamed)
                .all(|c| {
                    c.path.ends_with("renamed")
                        || c.path.replace("/new/", "/old/") == c.old_path.clone().unwrap()
                })
        );
    }
}

/// A forged checksum cannot be told from a right one without reading, but a folder is read.
#[test]
fn files_of_a_folder_are_compared_by_all_of_their_bytes() {
    let home = tempfile::tempdir().unwrap();
    // Two texts of one length and one CRC-32 (0x4ddb0c25, a published pair).
    let (one, other) = ("plumless", "buckeroo");
    for (name, content) in [("before", one), ("after", other)] {
        write(&home.path().join(name), "filesystem/same.txt", content);
    }
    write(&home.path().join("before"), "filesystem/old", one);
    write(&home.path().join("after"), "filesystem/new", other);
    let open = |name: &str| World::open(home.path().join(name)).unwrap();
    let diff = compare(&open("before"), &open("after"), &CompareOptions::default()).unwrap();
    assert_eq!(
        kinds(&diff),
        [
            (ChangeKind::Created, "filesystem/new"),
            (ChangeKind::Deleted, "filesystem/old"),
            (ChangeKind::Modified, "filesystem/same.txt"),
        ]
    );
}

#[test]
fn links_and_modes_beside_content() {
    let home = tempfile::tempdir().unwrap();
    let before = home.path().join("before/filesystem");
    let after = home.path().join("after/filesystem");
    for root in [&before, &after] {
        write(root, "one", "same");
        write(root, "two", "same");
    }
    // To another file of the same content; to a copy of the file; to a file of its own.
    symlink("one", before.join("moved")).unwrap();
    symlink("two", after.join("moved")).unwrap();
    symlink("one", before.join("copied")).unwrap();
    write(&after, "copied", "same");
    symlink("nowhere", before.join("filled")).unwrap();
    write(&after, "filled", "now a file");
    write(&before, "run.sh", "echo 1\n");
    write(&after, "run.sh", "echo 2\n");
    std::fs::set_permissions(after.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let open = |name: &str| World::open(home.path().join(name)).unwrap();
    let diff = compare(&open("before"), &open("after"), &CompareOptions::default()).unwrap();
    assert_eq!(
        kinds(&diff),
        [
            (ChangeKind::Modified, "filesystem/filled"),
            (ChangeKind::Metadata, "filesystem/moved"),
            (ChangeKind::Modified, "filesystem/run.sh"),
        ]
    );
    let note = |path: &str| change(&diff, path).note.as_deref();
    assert_eq!(note("filesystem/filled"), Some("a link became a file"));
    assert_eq!(note("filesystem/moved"), Some("link to one → two"));
    assert_eq!(note("filesystem/run.sh"), Some("mode 0644 → 0755"));
    let script = change(&diff, "filesystem/run.sh").text_diff.as_deref();
    assert!(script.unwrap().ends_with("-echo 1\n+echo 2\n"));
}

#[test]
fn a_renamed_file_prefers_its_own_name() {
    let home = tempfile::tempdir().unwrap();
    let before = home.path().join("before");
    let after = home.path().join("after");
    write(&before, "filesystem/x/report.txt", "same");
    write(&after, "filesystem/a-copy.txt", "same");
    write(&after, "filesystem/y/report.txt", "same");
    let (before, after) = (World::open(before).unwrap(), World::open(after).unwrap());
    let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert_eq!(
        kinds(&diff),
        [
            (ChangeKind::Created, "filesystem/a-copy.txt"),
            (ChangeKind::Renamed, "filesystem/y/report.txt"),
        ]
    );
}

#[test]
fn the_worlds_of_the_reference() {
    let Some(folder) = support::golden("reference-run/grading/diff") else {
        return;
    };
    let before = World::open(folder.join("initial_snapshot.zip")).unwrap();
    let after = World::open(folder.join("final_snapshot.zip")).unwrap();
    let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
    // As its README says: one file added, one binary added, two edited, one removed.
    assert_eq!(
        kinds(&diff),
        [
            (ChangeKind::Created, "filesystem/blob.bin"),
            (ChangeKind::Modified, "filesystem/data/t.csv"),
            (ChangeKind::Deleted, "filesystem/gone.txt"),
            (ChangeKind::Modified, "filesystem/notes/a.txt"),
            (ChangeKind::Created, "filesystem/report.txt"),
        ]
    );
    assert_eq!(
        (diff.files_before, diff.files_after, diff.unchanged),
        (6, 7, 3)
    );
    assert_eq!(
        change(&diff, "filesystem/blob.bin").text_note.as_deref(),
        Some("binary")
    );

    let Some(world) = support::golden("simple_task/original_snapshot.zip") else {
        return;
    };
    let world = World::open(world).unwrap();
    let files = world
        .entries()
        .iter()
        .filter(|entry| entry.kind() == EntryKind::File);
    assert_eq!(files.map(snapshot::Entry::size).sum::<u64>(), 70_303);
    let mut archive = Vec::new();
    let report = world.write_tar_gz("filesystem", &mut archive).unwrap();
    // The reference counted nine members: four files and five folders.
    assert_eq!((report.files, report.directories), (4, 5));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a diff says is what the arithmetic of two sets of files says.
    #[test]
    fn a_diff_is_set_arithmetic(
        old in proptest::collection::btree_map("[a-d]{1,2}", "[xy\n]{0,3}", 0..8),
        new in proptest::collection::btree_map("[a-d]{1,2}", "[xy\n]{0,3}", 0..8),
    ) {
        let home = tempfile::tempdir().unwrap();
        let world = |name: &str, files: &BTreeMap<String, String>| {
            let archive = files.iter().fold(RawTar::new().directory(b"filesystem/"), |tar, (name, content)| {
                tar.file(format!("filesystem/{name}").as_bytes(), content.as_bytes())
            });
            World::open(write(home.path(), name, archive.gz())).unwrap()
        };
        let (before, after) = (world("before", &old), world("after", &new));
        let mut right: Vec<(ChangeKind, String)> = Vec::new();
        for (name, content) in &old {
            match new.get(name) {
                None => right.push((ChangeKind::Deleted, format!("filesystem/{name}"))),
                Some(now) if now != content => right.push((ChangeKind::Modified, format!("filesystem/{name}"))),
                Some(_) => {}
            }
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            right.push((ChangeKind::Created, format!("filesystem/{name}")));
        }
        right.sort_by(|a, b| a.1.cmp(&b.1));
        let options = CompareOptions { renames: false, ..CompareOptions::default() };
        let diff = compare(&before, &after, &options).unwrap();
        let got: Vec<(ChangeKind, String)> =
            diff.changes.iter().map(|change| (change.kind, change.path.clone())).collect();
        prop_assert_eq!(got, right);
        prop_assert_eq!(diff.files_before, old.len());
        prop_assert_eq!(diff.files_after, new.len());

        // With renames, every file is told of exactly once on each side.
        let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
        let told_old = diff.changes.iter().filter(|change| change.before.is_some()).count();
        let told_new = diff.changes.iter().filter(|change| change.after.is_some()).count();
        prop_assert_eq!(told_old + diff.unchanged, old.len());
        prop_assert_eq!(told_new + diff.unchanged, new.len());
    }
}
