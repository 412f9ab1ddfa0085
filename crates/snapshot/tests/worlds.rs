//! Worlds in all their forms, and conversions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use snapshot::archive::{tar_gz_to_zip, unpack_tar_gz, zip_to_subsystem_tars};
use snapshot::{CompareOptions, Limits, World, WorldError, compare};
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
