//! Worlds in all their forms, conversions, and what changed between them.
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
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use snapshot::archive::{tar_gz_to_zip, unpack_tar_gz, zip_to_subsystem_tars};
use snapshot::{
    Change, ChangeKind, CompareOptions, Diff, EntryKind, Limits, World, WorldError, compare,
};
use support::{RawTar, gz, write};
use zip::write::SimpleFileOptions;

fn zip(path: &Path, files: &[(&str, &[u8])]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, content) in files {
        if name.ends_with('/') {
            zip.add_directory(*name, SimpleFileOptions::default())
                .unwrap();
        } else {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
    }
    zip.finish().unwrap();
}

fn listing(world: &World) -> Vec<(&str, u64)> {
    world
        .entries()
        .iter()
        .map(|entry| (entry.path(), entry.size()))
        .collect()
}

#[test]
fn one_world_in_four_forms() {
    let home = tempfile::tempdir().unwrap();
    let archive = || {
        RawTar::new()
            .file(b"filesystem/a.txt", b"alpha")
            .hard_link(b"filesystem/twin", b"filesystem/a.txt")
            .symlink(b"filesystem/link", b"a.txt")
            .file(b".apps_data/db", &[0xff; 70_000])
    };
    let folder = home.path().join("folder");
    unpack_tar_gz(archive().gz().as_slice(), &folder, &Limits::default()).unwrap();
    let tar = write(home.path(), "no-suffix", archive().tar());
    let tar_gz = write(home.path(), "misleading.zip", archive().gz());
    let zipped = home.path().join("world.bin");
    zip(
        &zipped,
        &[
            ("filesystem/a.txt", b"alpha"),
            ("filesystem/twin", b"alpha"),
            ("filesystem/link", b"alpha"),
            (".apps_data/db", &[0xff; 70_000]),
        ],
    );
    for path in [folder, tar, tar_gz, zipped] {
        let world = World::open(&path).unwrap();
        let files: Vec<_> = listing(&world)
            .into_iter()
            .filter(|(path, _)| world.get(path).unwrap().is_file())
            .collect();
        assert_eq!(
            files,
            [
                (".apps_data/db", 70_000),
                ("filesystem/a.txt", 5),
                ("filesystem/link", 5),
                ("filesystem/twin", 5),
            ],
            "{}",
            path.display()
        );
        for name in ["a.txt", "link", "twin"] {
            assert_eq!(
                world.read(&format!("filesystem/{name}"), 5).unwrap(),
                b"alpha"
            );
        }
        let error = world.read(".apps_data/db", 69_999).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`.apps_data/db` has 70000 bytes, allowed are 69999"
        );
        assert!(matches!(
            world.read("filesystem/none", 1),
            Err(WorldError::NoFile { .. })
        ));
        let mut streamed = Vec::new();
        world
            .reader(world.get(".apps_data/db").unwrap())
            .unwrap()
            .read_to_end(&mut streamed)
            .unwrap();
        assert_eq!(streamed, [0xff; 70_000]);
    }
}

#[test]
fn what_is_no_world() {
    let home = tempfile::tempdir().unwrap();
    let text = write(home.path(), "notes.zip", "just text");
    assert!(matches!(World::open(&text), Err(WorldError::Format { .. })));
    let empty = write(home.path(), "empty", "");
    assert!(matches!(
        World::open(&empty),
        Err(WorldError::Format { .. })
    ));
    assert!(matches!(
        World::open(home.path().join("none")),
        Err(WorldError::Read { .. })
    ));
    let sound = RawTar::new().file(b"filesystem/a", &[7; 9000]).gz();
    let cut = write(home.path(), "cut.tar.gz", &sound[..sound.len() - 9]);
    assert!(matches!(World::open(&cut), Err(WorldError::Archive { .. })));
    let tar = RawTar::new().file(b"filesystem/a", &[7; 9000]).tar();
    let cut = write(home.path(), "cut-inside.tar.gz", gz(&tar[..4096]));
    assert!(matches!(World::open(&cut), Err(WorldError::Archive { .. })));
}

#[test]
fn damage_inside_of_a_zip_shows_when_it_is_read() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("w.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("filesystem/a", stored).unwrap();
    zip.write_all(b"the original words").unwrap();
    zip.finish().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes
        .windows(8)
        .position(|window| window == b"original")
        .unwrap();
    bytes[place] = b'O';
    std::fs::write(&path, bytes).unwrap();
    let error = World::open(&path)
        .unwrap()
        .read("filesystem/a", 100)
        .unwrap_err();
    assert!(error.to_string().contains("`filesystem/a`"), "{error}");
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn limits_hold_for_worlds_too() {
    let home = tempfile::tempdir().unwrap();
    let zipped = home.path().join("w.zip");
    zip(
        &zipped,
        &[("filesystem/a", &[0; 2000]), ("filesystem/b", &[0; 2000])],
    );
    let tar = write(
        home.path(),
        "w.tar.gz",
        RawTar::new()
            .file(b"filesystem/a", &[0; 2000])
            .file(b"filesystem/b", &[0; 2000])
            .gz(),
    );
    for path in [zipped, tar] {
        for (name, limits) in [
            (
                "entries",
                Limits {
                    entries: 1,
                    ..Limits::default()
                },
            ),
            (
                "file_bytes",
                Limits {
                    file_bytes: 1999,
                    ..Limits::default()
                },
            ),
            (
                "total_bytes",
                Limits {
                    total_bytes: 3999,
                    ..Limits::default()
                },
            ),
            (
                "ratio",
                Limits {
                    ratio: 2,
                    ratio_floor_bytes: 100,
                    ..Limits::default()
                },
            ),
        ] {
            match World::open_with(&path, &limits) {
                Err(WorldError::Limit { limit, .. }) => assert_eq!(limit.limit, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn snapshot_to_zip_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let archive = RawTar::new()
        .member(b'x', b"pax", b"", 0o644, b"23 mtime=1700000001.25\n")
        .member(b'0', b"filesystem/run.sh", b"", 0o755, b"#!/bin/sh\n")
        .file(b"filesystem/empty", b"")
        .hard_link(b"filesystem/twin", b"filesystem/run.sh")
        .symlink(b"filesystem/link", b"/filesystem/run.sh")
        .symlink(b"filesystem/out", b"/etc/passwd")
        .directory(b"filesystem/hollow/")
        .file("filesystem/日本.txt".as_bytes(), b"x");
    let input = write(home.path(), "final_snapshot.tar.gz", archive.gz());
    let output = home.path().join("final_snapshot.zip");
    let report = tar_gz_to_zip(&input, &output, &Limits::default()).unwrap();
    assert_eq!((report.files, report.directories), (5, 1));
    assert_eq!(report.links_left_out, ["filesystem/out"]);

    let mut zip = zip::ZipArchive::new(std::fs::File::open(&output).unwrap()).unwrap();
    let names: Vec<String> = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "filesystem/empty",
            "filesystem/hollow/",
            "filesystem/link",
            "filesystem/run.sh",
            "filesystem/twin",
            "filesystem/日本.txt",
        ]
    );
    for name in ["run.sh", "twin", "link"] {
        let mut file = zip.by_name(&format!("filesystem/{name}")).unwrap();
        assert_eq!(file.unix_mode(), Some(0o100_755));
        let mut content = String::new();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "#!/bin/sh\n");
    }
    let world = World::open(&output).unwrap();
    let modified = world.get("filesystem/run.sh").unwrap().modified().unwrap();
    assert_eq!(
        modified,
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_001)
    );
    // The names beside the output: only input and output.
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 2);
}

#[test]
fn a_zip_becomes_one_archive_for_each_subsystem() {
    let home = tempfile::tempdir().unwrap();
    let input = home.path().join("world.zip");
    zip(
        &input,
        &[
            ("filesystem/", b""),
            ("filesystem/animals/", b""),
            ("filesystem/animals/ä.png", b"png"),
            ("filesystem/zero", b""),
            (".apps_data/mail/box", b"mail"),
        ],
    );
    let archives = zip_to_subsystem_tars(&input, home.path(), &Limits::default()).unwrap();
    let subsystems: Vec<&str> = archives
        .iter()
        .map(|(subsystem, _)| subsystem.as_str())
        .collect();
    assert_eq!(subsystems, ["filesystem", ".apps_data"]);
    let target = home.path().join("out");
    for (subsystem, archive) in &archives {
        let file = std::fs::File::open(archive).unwrap();
        unpack_tar_gz(file, &target.join(subsystem), &Limits::default()).unwrap();
    }
    assert_eq!(
        std::fs::read(target.join("filesystem/animals/ä.png")).unwrap(),
        b"png"
    );
    assert_eq!(std::fs::read(target.join("filesystem/zero")).unwrap(), b"");
    assert_eq!(
        std::fs::read(target.join(".apps_data/mail/box")).unwrap(),
        b"mail"
    );

    zip(&input, &[("only.txt", b"x")]);
    let archives = zip_to_subsystem_tars(&input, home.path(), &Limits::default()).unwrap();
    assert_eq!(archives.len(), 1);
}

#[test]
fn names_that_are_not_utf_8_stay_apart() {
    let home = tempfile::tempdir().unwrap();
    let archive = RawTar::new()
        .file(b"filesystem/\xfe", b"fe")
        .file(b"filesystem/\xff", b"ff");
    let input = write(home.path(), "w.tar.gz", archive.gz());
    let output = home.path().join("w.zip");
    tar_gz_to_zip(&input, &output, &Limits::default()).unwrap();
    let before = World::open(&input).unwrap();
    let after = World::open(&output).unwrap();
    let names: Vec<&[u8]> = after
        .entries()
        .iter()
        .map(snapshot::Entry::raw_path)
        .collect();
    assert_eq!(names, [b"filesystem/\xfe", b"filesystem/\xff"]);
    let diff = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert_eq!((diff.unchanged, diff.changes.len()), (2, 0));
}

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
        change(&diff, "filesystem/same-length.bin").note.as_deref(),
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
        change(&diff, "filesystem/a").note.as_deref(),
        Some("no diff: 400 bytes, allowed are 100")
    );
    assert!(change(&diff, "filesystem/b").text_diff.is_some());
    let options = CompareOptions {
        max_diff_bytes: 200,
        ..CompareOptions::default()
    };
    let diff = compare(&before, &after, &options).unwrap();
    assert_eq!(
        change(&diff, "filesystem/a").note.as_deref(),
        Some("the diffs together are larger than 200 bytes")
    );
    assert!(change(&diff, "filesystem/b").text_diff.is_some());
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
fn a_filter_takes_entries_out() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "filesystem/.hidden", "h");
    write(home.path(), "filesystem/seen", "s");
    let mut world = World::open(home.path()).unwrap();
    world.retain(|entry| !entry.path().contains("/."));
    assert_eq!(listing(&world), [("filesystem/seen", 1)]);
}

#[test]
fn roots_that_lie_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("anything");
    write(&files, "a", "a");
    symlink("a", files.join("b")).unwrap();
    let missing = home.path().join("missing");
    let world = World::open_roots(&[("filesystem", &files), (".apps_data", &missing)]).unwrap();
    assert_eq!(listing(&world), [("filesystem/a", 1), ("filesystem/b", 1)]);
    assert!(!world.has(".apps_data"));
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
        change(&diff, "filesystem/blob.bin").note.as_deref(),
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
