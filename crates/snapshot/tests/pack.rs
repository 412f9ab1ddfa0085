//! Packing live directories, and back.
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
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use snapshot::archive::{PackError, PackOptions, PackReport, pack_tar_gz, unpack_tar_gz};
use snapshot::{APPS_DATA, FILESYSTEM, Limits};
use support::{Node, tree, write};

struct Roots {
    home: tempfile::TempDir,
    files: PathBuf,
    apps: PathBuf,
}

fn roots() -> Roots {
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("filesystem");
    let apps = home.path().join(".apps_data");
    std::fs::create_dir(&files).unwrap();
    std::fs::create_dir(&apps).unwrap();
    Roots { home, files, apps }
}

impl Roots {
    fn pack_with(&self, options: &PackOptions) -> (Vec<u8>, PackReport) {
        let mut out = Vec::new();
        let report = pack_tar_gz(
            &[(FILESYSTEM, &self.files), (APPS_DATA, &self.apps)],
            &mut out,
            options,
        )
        .unwrap();
        (out, report)
    }

    fn pack(&self) -> (Vec<u8>, PackReport) {
        self.pack_with(&PackOptions::default())
    }
}

/// Name, type byte, mode and content of each member, read by the `tar` crate.
fn members(archive: &[u8]) -> Vec<(Vec<u8>, u8, u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (
                entry.path_bytes().into_owned(),
                entry.header().entry_type().as_byte(),
                entry.header().mode().unwrap(),
                content,
            )
        })
        .collect()
}

fn names(archive: &[u8]) -> Vec<String> {
    members(archive)
        .into_iter()
        .map(|(name, ..)| String::from_utf8(name).unwrap())
        .collect()
}

#[test]
fn files_only_in_the_order_of_their_names() {
    let roots = roots();
    write(&roots.files, "b.txt", "b");
    write(&roots.files, "a/z.txt", "z");
    write(&roots.files, "a/.hidden", "h");
    write(&roots.files, "a.txt", "a");
    write(&roots.apps, "db/x", "x");
    std::fs::create_dir_all(roots.files.join("empty/deeper")).unwrap();
    std::fs::set_permissions(roots.files.join("b.txt"), PermissionsExt::from_mode(0o750)).unwrap();
    let (archive, report) = roots.pack();
    assert_eq!(
        names(&archive),
        [
            "filesystem/a/.hidden",
            "filesystem/a/z.txt",
            "filesystem/a.txt",
            "filesystem/b.txt",
            ".apps_data/db/x",
        ]
    );
    assert!(members(&archive).iter().all(|(_, kind, ..)| *kind == b'0'));
    assert_eq!(members(&archive)[3].2, 0o750);
    assert_eq!((report.members, report.bytes), (5, 5));

    let (archive, _) = roots.pack_with(&PackOptions {
        empty_directories: true,
        ..PackOptions::default()
    });
    assert!(names(&archive).contains(&"filesystem/empty/deeper/".to_owned()));
    assert_eq!(names(&archive).len(), 6);
}

#[test]
fn metadata_may_be_left_out() {
    let roots = roots();
    let path = write(&roots.files, "run.sh", "#!");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::hard_link(&path, roots.files.join("same.sh")).unwrap();
    let (archive, _) = roots.pack_with(&PackOptions {
        fixed_metadata: true,
        ..PackOptions::default()
    });
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
    let mut count = 0;
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!(header.entry_type(), tar::EntryType::Regular);
        assert_eq!(
            (header.mode().unwrap(), header.mtime().unwrap()),
            (0o644, 0)
        );
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        assert_eq!(header.username_bytes().unwrap_or_default(), b"");
        assert_eq!(header.groupname_bytes().unwrap_or_default(), b"");
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn a_missing_root_has_no_members() {
    let roots = roots();
    std::fs::remove_dir(&roots.apps).unwrap();
    let (archive, report) = roots.pack();
    assert_eq!(names(&archive), [""; 0]);
    assert_eq!(report, PackReport::default());
}

#[test]
fn links_to_files_of_the_world_are_copies_and_nothing_else_leaks() {
    let roots = roots();
    write(roots.home.path(), "secret.txt", "secret");
    let original = write(&roots.files, "d/original.txt", "content");
    std::fs::hard_link(&original, roots.files.join("hard")).unwrap();
    symlink("d/original.txt", roots.files.join("relative")).unwrap();
    symlink(&original, roots.files.join("absolute")).unwrap();
    symlink(roots.files.join("relative"), roots.apps.join("across")).unwrap();
    symlink("../secret.txt", roots.files.join("out-relative")).unwrap();
    symlink("/etc/passwd", roots.files.join("out-absolute")).unwrap();
    symlink("d", roots.files.join("to-directory")).unwrap();
    symlink("none", roots.files.join("dangling")).unwrap();
    symlink("loop", roots.files.join("loop")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(roots.files.join("socket")).unwrap();

    let (archive, report) = roots.pack();
    let content = b"content".to_vec();
    let got: BTreeMap<String, Vec<u8>> = members(&archive)
        .into_iter()
        .map(|(name, kind, _, content)| {
            assert_eq!(kind, b'0');
            (String::from_utf8(name).unwrap(), content)
        })
        .collect();
    let right: BTreeMap<String, Vec<u8>> = [
        ".apps_data/across",
        "filesystem/absolute",
        "filesystem/d/original.txt",
        "filesystem/hard",
        "filesystem/relative",
    ]
    .into_iter()
    .map(|name| (name.to_owned(), content.clone()))
    .collect();
    assert_eq!(got, right);
    let skipped: Vec<&str> = report
        .skipped
        .iter()
        .map(|skipped| skipped.name.as_str())
        .collect();
    assert_eq!(
        skipped,
        [
            "filesystem/dangling",
            "filesystem/loop",
            "filesystem/out-absolute",
            "filesystem/out-relative",
            "filesystem/socket",
            "filesystem/to-directory",
        ]
    );
    drop(listener);
    // So it can be populated again, which a link to an absolute path would forbid.
    let target = roots.home.path().join("again");
    unpack_tar_gz(archive.as_slice(), &target, &Limits::default()).unwrap();
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let tree = |order: &[&str]| {
        let roots = roots();
        for name in order {
            let path = write(&roots.files, name, name);
            let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_000_000);
            std::fs::File::open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        roots.pack().0
    };
    assert_eq!(
        tree(&["a", "b/c", "b/d", "z"]),
        tree(&["z", "b/d", "b/c", "a"])
    );
}

#[test]
fn unusual_names_and_times() {
    let roots = roots();
    let long = format!("{}/{}.txt", "d".repeat(120), "f".repeat(200));
    let odd: Vec<Vec<u8>> = vec![
        long.clone().into_bytes(),
        "日本/ä ö.txt".as_bytes().to_vec(),
        b"not-utf8-\xff\xfe".to_vec(),
        b"new\nline and \"quotes\"".to_vec(),
        [&[b'n'; 150][..], b"\n", &[b'm'; 50]].concat(),
    ];
    for name in &odd {
        write(&roots.files, name, name);
    }
    let times = [
        (
            "before",
            SystemTime::UNIX_EPOCH - Duration::from_millis(1500),
        ),
        (
            "fraction",
            SystemTime::UNIX_EPOCH + Duration::new(1_795_989_988, 768_190_600),
        ),
        ("zero", SystemTime::UNIX_EPOCH),
    ];
    for (name, time) in times {
        let path = write(&roots.files, name, "");
        std::fs::File::open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let (archive, _) = roots.pack();
    let target = roots.home.path().join("again");
    unpack_tar_gz(archive.as_slice(), &target, &Limits::default()).unwrap();
    for name in &odd {
        let path = target
            .join("filesystem")
            .join(std::ffi::OsStr::from_bytes(name));
        assert_eq!(std::fs::read(path).unwrap(), *name);
    }
    for (name, time) in times {
        let metadata = target.join("filesystem").join(name).metadata().unwrap();
        assert_eq!(metadata.modified().unwrap(), time, "{name}");
    }
    // Python's tarfile is what the reference's clients read with.
    let path = roots.home.path().join("archive.tar.gz");
    std::fs::write(&path, &archive).unwrap();
    let script = "import sys, tarfile\n\
        for m in tarfile.open(sys.argv[1]):\n    print(m.name.encode('utf8', 'surrogateescape').hex(), m.mtime)";
    match std::process::Command::new("python3")
        .arg("-c")
        .arg(script)
        .arg(&path)
        .output()
    {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let text = String::from_utf8(output.stdout).unwrap();
            for name in &odd {
                let hex: String = [b"filesystem/", name.as_slice()]
                    .concat()
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect();
                assert!(
                    text.lines().any(|line| line.starts_with(&hex)),
                    "{hex} in {text}"
                );
            }
            let fraction: String = b"filesystem/fraction"
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert!(
                text.contains(&format!("{fraction} 1795989988.76819")),
                "{text}"
            );
        }
        Err(error) => {
            let _ = testkit::available(&format!("python3 ({error})"), false);
        }
    }
}

/// Calls back after the first bytes, then goes on.
struct Interfering<F: FnMut()> {
    out: Vec<u8>,
    then: F,
}

impl<F: FnMut()> Write for Interfering<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.then)();
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_shrinks_or_vanishes_costs_no_other_file() {
    let roots = roots();
    // Incompressible, so that the first bytes of the archive come out in the middle of it.
    let mut noise = vec![0_u8; 4 << 20];
    let mut state = 1_u32;
    for byte in &mut noise {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    let shrinking = write(&roots.files, "a-shrinks", &noise);
    let vanishing = write(&roots.files, "b-vanishes", "gone");
    write(&roots.files, "c-stays", "here");
    let mut done = false;
    let mut out = Interfering {
        out: Vec::new(),
        then: || {
            if !done {
                done = true;
                std::fs::File::options()
                    .write(true)
                    .open(&shrinking)
                    .unwrap()
                    .set_len(1000)
                    .unwrap();
                std::fs::remove_file(&vanishing).unwrap();
            }
        },
    };
    // One thread, so that nothing is read ahead.
    let options = PackOptions {
        threads: std::num::NonZeroUsize::new(1),
        ..PackOptions::default()
    };
    let report = pack_tar_gz(&[(FILESYSTEM, &roots.files)], &mut out, &options).unwrap();
    let members = members(&out.out);
    assert_eq!(report.shortened, ["filesystem/a-shrinks"]);
    assert_eq!(members[0].3.len(), noise.len());
    assert_eq!(members[0].3[..1000], noise[..1000]);
    assert!(
        members[0].3[noise.len() - 1000..]
            .iter()
            .all(|byte| *byte == 0)
    );
    let last = members.last().unwrap();
    assert_eq!(
        (last.0.as_slice(), last.3.as_slice()),
        (&b"filesystem/c-stays"[..], &b"here"[..])
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_packing() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let roots = roots();
    write(&roots.files, "a", vec![1; 1 << 20]);
    let error =
        pack_tar_gz(&[(FILESYSTEM, &roots.files)], Gone, &PackOptions::default()).unwrap_err();
    assert!(matches!(error, PackError::Write { .. }), "{error}");
}

#[test]
fn an_archive_being_unpacked_is_no_part_of_the_world() {
    let roots = roots();
    write(&roots.files, ".archipelago-unpack-abc/new/half.txt", "half");
    write(
        &roots.files,
        "d/.archipelago-unpack-abc",
        "a file of that name deeper down is the user's",
    );
    assert_eq!(
        names(&roots.pack().0),
        ["filesystem/d/.archipelago-unpack-abc"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever files there are, packing and unpacking gives them back.
    #[test]
    fn a_round_trip_keeps_names_contents_modes_and_times(
        files in proptest::collection::btree_map(
            proptest::collection::vec("[a-c\u{e4}\u{1F600} .]{1,3}", 1..4),
            (proptest::collection::vec(any::<u8>(), 0..200), any::<bool>(), 0_u64..4_000_000_000, 0_u32..1_000_000_000),
            0..12,
        )
    ) {
        let roots = roots();
        for (parts, (content, executable, seconds, nanos)) in &files {
            if parts.iter().any(|part| part.chars().all(|c| c == '.')) {
                continue;
            }
            let path = roots.files.join(parts.join("/"));
            // A name that is a directory of another file is left to that one.
            if std::fs::create_dir_all(path.parent().unwrap()).is_err() || std::fs::write(&path, content).is_err() {
                continue;
            }
            let mode = if *executable { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            std::fs::File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH + Duration::new(*seconds, *nanos)).unwrap();
        }
        let (archive, _) = roots.pack();
        let target = roots.home.path().join("again");
        unpack_tar_gz(archive.as_slice(), &target, &Limits::default()).unwrap();
        let files_of = |root: &Path| -> BTreeMap<PathBuf, Node> {
            tree(root).into_iter().filter(|(_, node)| matches!(node, Node::File { .. })).collect()
        };
        let again = target.join("filesystem");
        let got = if again.exists() { files_of(&again) } else { BTreeMap::new() };
        prop_assert_eq!(got, files_of(&roots.files));
    }
}

#[test]
fn the_number_of_cores_changes_no_byte() {
    let roots = roots();
    for number in 0..300_u32 {
        let content = format!("{number} ").repeat(number as usize * 20);
        write(&roots.files, format!("d{}/f{number}", number % 7), content);
    }
    let packed = |threads| {
        let options = PackOptions {
            threads: std::num::NonZeroUsize::new(threads),
            ..PackOptions::default()
        };
        let (archive, report) = roots.pack_with(&options);
        assert!(
            report.bytes > 2_000_000,
            "more than one block: {}",
            report.bytes
        );
        archive
    };
    let one = packed(1);
    for threads in [2, 3, 8] {
        assert!(packed(threads) == one, "{threads}");
    }
    assert!(roots.pack().0 == one);
}
