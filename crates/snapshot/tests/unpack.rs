//! Unpacking: rules, all or nothing, overlay.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use snapshot::Limits;
use snapshot::archive::{
    Fault, Refusal, UnpackError, UnpackReport, stage_tar_gz, sweep, unpack_tar_gz,
};
use support::{Node, RawTar, gz, tree, write};

/// A world that already has something, below a folder of its own so that neighbours can be watched.
fn world() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("world");
    write(&target, "ok.txt", "old");
    write(&target, "keep/this.txt", "kept");
    symlink("keep", target.join("to-keep")).unwrap();
    write(home.path(), "outside/secret.txt", "secret");
    (home, target)
}

fn unpack(archive: &[u8], target: &Path) -> Result<UnpackReport, UnpackError> {
    unpack_tar_gz(archive, target, &Limits::default())
}

/// The archive is refused and nothing at all has changed, beside the target neither.
#[track_caller]
fn refused(archive: &[u8]) -> UnpackError {
    let (home, target) = world();
    let before = tree(home.path());
    let error = unpack(archive, &target).unwrap_err();
    assert_eq!(tree(home.path()), before, "after {error}");
    error
}

#[track_caller]
fn refused_member(archive: RawTar, member: &str, rule: &Refusal) {
    let archive = RawTar::new()
        .file(b"ok.txt", b"new")
        .append(archive)
        .file(b"after.txt", b"after");
    match refused(&archive.gz()) {
        UnpackError::Refused {
            member: named,
            refusal,
        } => {
            assert_eq!((named.as_str(), &refusal), (member, rule));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn links_out_of_the_target_are_refused() {
    refused_member(
        RawTar::new().symlink(b"leak", b"/etc/passwd"),
        "leak",
        &Refusal::AbsoluteLink("/etc/passwd".into()),
    );
    refused_member(
        RawTar::new().symlink(b"a/leak", b"../../outside"),
        "a/leak",
        &Refusal::LinkOutside("../../outside".into()),
    );
    refused_member(
        RawTar::new().symlink(b"d", b".").file(b"d/../../x", b"x"),
        "d/../../x",
        &Refusal::ParentInName,
    );
    // Every link for itself stays inside; one after the other they do not.
    refused_member(
        RawTar::new()
            .directory(b"p/q")
            .symlink(b"p/q/s", b"../..")
            .symlink(b"t", b"p/q/s/.."),
        "t",
        &Refusal::LinkOutside("p/q/s/..".into()),
    );
    // The same when the second link comes first, and when it dangles.
    refused_member(
        RawTar::new()
            .symlink(b"t", b"p/q/s/none/../..")
            .directory(b"p/q")
            .symlink(b"p/q/s", b"../.."),
        "t",
        &Refusal::LinkOutside("p/q/s/none/../..".into()),
    );
    // A link made through a link lies somewhere else than its name says.
    refused_member(
        RawTar::new()
            .directory(b"p/q")
            .symlink(b"p/q/s", b"../..")
            .symlink(b"p/q/s/l", b"../x"),
        "p/q/s/l",
        &Refusal::LinkOutside("../x".into()),
    );
}

#[test]
fn writing_through_a_link_that_leads_outside_is_impossible() {
    let error = refused(
        &RawTar::new()
            .symlink(b"up", b"..")
            .file(b"up/outside/secret.txt", b"pwned")
            .gz(),
    );
    assert!(
        error.to_string().contains("`up/outside/secret.txt`"),
        "{error}"
    );

    // The link is in the world already, planted by the agent.
    let (home, target) = world();
    symlink("../outside", target.join("planted")).unwrap();
    let before = tree(home.path());
    let error = unpack(
        &RawTar::new().file(b"planted/secret.txt", b"pwned").gz(),
        &target,
    )
    .unwrap_err();
    assert!(error.to_string().contains("planted"), "{error}");
    assert_eq!(error.fault(), Fault::Target);
    assert_eq!(tree(home.path()), before);
    // A file in place of the link replaces the link, not what it leads to.
    unpack(&RawTar::new().file(b"planted", b"now a file").gz(), &target).unwrap();
    assert_eq!(
        std::fs::read(home.path().join("outside/secret.txt")).unwrap(),
        b"secret"
    );
    assert!(target.join("planted").symlink_metadata().unwrap().is_file());
}

#[test]
fn hard_links_name_earlier_files_of_the_archive_only() {
    refused_member(
        RawTar::new().hard_link(b"h", b"../x"),
        "h",
        &Refusal::LinkOutside("../x".into()),
    );
    refused_member(
        RawTar::new().hard_link(b"h", b"/etc/passwd"),
        "h",
        &Refusal::AbsoluteLink("/etc/passwd".into()),
    );
    refused_member(
        RawTar::new().hard_link(b"h", b"after.txt"),
        "h",
        &Refusal::HardLinkTarget("after.txt".into()),
    );
    refused_member(
        RawTar::new().directory(b"d").hard_link(b"h", b"d"),
        "h",
        &Refusal::HardLinkTarget("d".into()),
    );
    // A hard link to a link is a link in another place.
    refused_member(
        RawTar::new()
            .symlink(b"a/l", b"../ok.txt")
            .hard_link(b"l", b"a/l"),
        "l",
        &Refusal::LinkOutside("../ok.txt".into()),
    );
}

#[test]
fn names_and_kinds() {
    refused_member(
        RawTar::new().file(b"/abs.txt", b"x"),
        "/abs.txt",
        &Refusal::AbsoluteName,
    );
    refused_member(
        RawTar::new().file(b"a/../b", b"x"),
        "a/../b",
        &Refusal::ParentInName,
    );
    refused_member(RawTar::new().symlink(b".", b"x"), ".", &Refusal::EmptyName);
    for kind in [b'3', b'4', b'6'] {
        refused_member(
            RawTar::new().member(kind, b"special", b"", 0o644, b""),
            "special",
            &Refusal::SpecialFile(char::from(kind)),
        );
    }
}

#[test]
fn damaged_streams() {
    let sound = RawTar::new()
        .file(b"ok.txt", &[7; 100_000])
        .file(b"b", b"b")
        .gz();
    assert!(matches!(refused(b""), UnpackError::Empty));
    assert!(matches!(refused(b"PK\x03\x04 a zip"), UnpackError::NotGzip));
    assert!(matches!(
        refused(&RawTar::new().file(b"a", b"a").tar()),
        UnpackError::NotGzip
    ));
    assert!(matches!(refused(&sound[..1]), UnpackError::Truncated));
    for cut in [sound.len() / 2, sound.len() - 1, sound.len() - 8] {
        assert!(
            matches!(refused(&sound[..cut]), UnpackError::Truncated),
            "cut at {cut}"
        );
    }
    // Sound gzip around a tar that ends inside a member.
    let tar = RawTar::new().file(b"ok.txt", &[7; 5000]).tar();
    for cut in [300, 2048, 2050] {
        assert!(
            matches!(refused(&gz(&tar[..cut])), UnpackError::Truncated),
            "cut at {cut}"
        );
    }
    // A wrong checksum at the very end.
    let mut wrong = sound;
    let place = wrong.len() - 8;
    wrong[place] ^= 0xff;
    assert!(matches!(refused(&wrong), UnpackError::Damaged(_)));
    assert!(matches!(
        refused(&gz(&[b'x'; 2000])),
        UnpackError::Damaged(_)
    ));
}

#[test]
fn good_links_are_kept_as_links() {
    let (_home, target) = world();
    let archive = RawTar::new()
        .symlink(b"latest", b"ok.txt")
        .file(b"ok.txt", b"new")
        .file(b"a/b/c.txt", b"c")
        .symlink(b"a/b/up", b"../../ok.txt")
        .symlink(b"dangling", b"not/there")
        .symlink(b"dir", b"a/b")
        .file(b"dir/through.txt", b"through")
        .hard_link(b"twin", b"a/b/c.txt");
    let report = unpack(&archive.gz(), &target).unwrap();
    assert_eq!(
        report,
        UnpackReport {
            members: 8,
            bytes: 3 + 1 + 7
        }
    );
    let nodes = tree(&target);
    assert_eq!(nodes[Path::new("latest")], Node::Link("ok.txt".into()));
    assert_eq!(
        nodes[Path::new("a/b/up")],
        Node::Link("../../ok.txt".into())
    );
    assert_eq!(nodes[Path::new("dangling")], Node::Link("not/there".into()));
    assert_eq!(std::fs::read(target.join("latest")).unwrap(), b"new");
    assert_eq!(
        std::fs::read(target.join("a/b/through.txt")).unwrap(),
        b"through"
    );
    let inode = |name| target.join(name).metadata().unwrap().ino();
    assert_eq!(inode("twin"), inode("a/b/c.txt"));
    assert_eq!(
        nodes[Path::new("keep/this.txt")],
        tree(&target)[Path::new("keep/this.txt")]
    );
}

#[test]
fn what_is_there_stays_and_the_same_path_is_replaced() {
    let (home, target) = world();
    std::fs::hard_link(target.join("ok.txt"), target.join("other-name")).unwrap();
    let archive = RawTar::new()
        .file(b"ok.txt", b"new")
        .directory(b"keep")
        .file(b"to-keep/added.txt", b"added")
        .directory(b"empty/deep");
    unpack(&archive.gz(), &target).unwrap();
    let read = |name: &str| std::fs::read_to_string(target.join(name)).unwrap();
    assert_eq!(read("ok.txt"), "new");
    assert_eq!(read("other-name"), "old");
    assert_eq!(read("keep/this.txt"), "kept");
    // The directory of the archive went where the existing link leads.
    assert_eq!(read("keep/added.txt"), "added");
    assert!(target.join("to-keep").is_symlink());
    assert!(target.join("empty/deep").is_dir());
    // Nothing is left beside the target.
    let beside: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
}

#[test]
fn a_file_where_a_directory_is_undoes_everything() {
    // Sorted before the conflict, so already in place when it is met.
    let error = refused(
        &RawTar::new()
            .file(b"aaa", b"1")
            .file(b"keep", b"x")
            .file(b"ok.txt", b"new")
            .gz(),
    );
    assert_eq!(
        error.to_string(),
        "`keep` is a file, but there is a directory at its place already"
    );
    let error = refused(
        &RawTar::new()
            .file(b"aaa", b"1")
            .file(b"keep/this.txt/deeper", b"x")
            .gz(),
    );
    assert!(
        error
            .to_string()
            .starts_with("`keep/this.txt` is a directory"),
        "{error}"
    );
    // The same inside of one archive.
    refused(&RawTar::new().file(b"f", b"1").file(b"f/g", b"2").gz());
    refused(&RawTar::new().directory(b"d").file(b"d", b"2").gz());
}

#[test]
fn modes_and_times() {
    let (_home, target) = world();
    let archive = RawTar::new()
        .member(b'0', b"suid", b"", 0o4777, b"")
        .member(b'0', b"group", b"", 0o664, b"")
        .member(b'0', b"secret", b"", 0o400, b"")
        .member(b'0', b"half", b"", 0o655, b"")
        .member(b'x', b"pax", b"", 0o644, b"23 mtime=1000000000.25\n")
        .file(b"late", b"")
        .member(b'g', b"global", b"", 0o644, b"15 comment=abc\n")
        .member(b'5', b"dir", b"", 0o000, b"");
    let report = unpack(&archive.gz(), &target).unwrap();
    assert_eq!(report.members, 6);
    let metadata = |name: &str| target.join(name).metadata().unwrap();
    let mode = |name: &str| metadata(name).permissions().mode() & 0o7777;
    assert_eq!(mode("suid"), 0o755);
    assert_eq!(mode("group"), 0o644);
    assert_eq!(mode("secret"), 0o600);
    assert_eq!(mode("half"), 0o644);
    assert_ne!(mode("dir") & 0o700, 0);
    assert_eq!(
        (metadata("group").mtime(), metadata("group").mtime_nsec()),
        (100, 0)
    );
    assert_eq!(
        (metadata("late").mtime(), metadata("late").mtime_nsec()),
        (1_000_000_000, 250_000_000)
    );
}

#[test]
fn odd_names_arrive() {
    let (_home, target) = world();
    let names: [&[u8]; 4] = [
        b"\xff\xfe.bin",
        "näïve/日本.txt".as_bytes(),
        b"new\nline",
        b"trailing ",
    ];
    let archive = names
        .iter()
        .fold(RawTar::new(), |tar, name| tar.file(name, name));
    unpack(&archive.gz(), &target).unwrap();
    for name in names {
        use std::os::unix::ffi::OsStrExt as _;
        let path = target.join(std::ffi::OsStr::from_bytes(name));
        assert_eq!(std::fs::read(path).unwrap(), name);
    }
}

#[test]
fn several_gzip_members_are_one_stream() {
    let (_home, target) = world();
    let tar = RawTar::new().file(b"a", &[1; 3000]).tar();
    let both = [gz(&tar[..1000]), gz(&tar[1000..])].concat();
    unpack(&both, &target).unwrap();
    assert_eq!(std::fs::read(target.join("a")).unwrap(), [1; 3000]);
}

#[test]
fn each_limit_is_named() {
    let archive = RawTar::new()
        .file(b"one/two/three.txt", &[0; 3000])
        .file(b"b", &[0; 3000])
        .gz();
    let defaults = Limits::default();
    let cases = [
        (
            "entries",
            2,
            Limits {
                entries: 1,
                ..defaults.clone()
            },
        ),
        (
            "file_bytes",
            3000,
            Limits {
                file_bytes: 2999,
                ..defaults.clone()
            },
        ),
        (
            "total_bytes",
            6000,
            Limits {
                total_bytes: 5999,
                ..defaults.clone()
            },
        ),
        (
            "path_bytes",
            17,
            Limits {
                path_bytes: 16,
                ..defaults.clone()
            },
        ),
        (
            "depth",
            3,
            Limits {
                depth: 2,
                ..defaults.clone()
            },
        ),
    ];
    for (name, value, limits) in cases {
        let (home, target) = world();
        let before = tree(home.path());
        match unpack_tar_gz(archive.as_slice(), &target, &limits).unwrap_err() {
            UnpackError::Limit { limit, .. } => {
                assert_eq!((limit.limit, limit.got), (name, value));
            }
            other => panic!("{name}: {other}"),
        }
        assert_eq!(tree(home.path()), before);
    }
    let bomb = RawTar::new().file(b"zeros", &[0; 4 << 20]).gz();
    let limits = Limits {
        ratio: 100,
        ratio_floor_bytes: 1 << 20,
        ..defaults.clone()
    };
    let (_home, target) = world();
    let error = unpack_tar_gz(bomb.as_slice(), &target, &limits).unwrap_err();
    assert!(error.to_string().contains("`ratio`"), "{error}");
    assert_eq!(error.fault(), Fault::Limit);

    // A long name of two megabytes never becomes a string of that size.
    let long = RawTar::new()
        .member(b'L', b"././@LongLink", b"", 0o644, &[b'a'; 2 << 20])
        .file(b"a", b"");
    let error = unpack(&long.gz(), &target).unwrap_err();
    assert!(error.to_string().contains("`header_bytes`"), "{error}");
}

#[test]
fn a_place_inside_the_root_may_not_lead_out_of_it() {
    let (home, root) = world();
    let archive = RawTar::new().file(b"x.txt", b"x").gz();
    let stage = |inner: &str| {
        stage_tar_gz(
            archive.as_slice(),
            &root,
            Path::new(inner),
            &Limits::default(),
        )
    };
    stage("a/b").unwrap().commit().unwrap();
    assert_eq!(std::fs::read(root.join("a/b/x.txt")).unwrap(), b"x");
    stage("to-keep").unwrap().commit().unwrap();
    assert_eq!(std::fs::read(root.join("keep/x.txt")).unwrap(), b"x");

    symlink("../outside", root.join("planted")).unwrap();
    symlink("/tmp", root.join("absolute")).unwrap();
    let before = tree(home.path());
    for inner in [
        "planted",
        "planted/deeper",
        "absolute",
        "ok.txt",
        "ok.txt/x",
    ] {
        let error = stage(inner).unwrap_err();
        assert_eq!(error.fault(), Fault::Target, "{inner}: {error}");
    }
    // Planted between receiving and placing.
    let staged = stage("late").unwrap();
    symlink("../outside", root.join("late")).unwrap();
    assert_eq!(staged.commit().unwrap_err().fault(), Fault::Target);
    std::fs::remove_file(root.join("late")).unwrap();
    assert_eq!(tree(home.path()), before);
}

#[test]
fn what_was_staged_and_dropped_leaves_no_trace() {
    let (home, root) = world();
    let before = tree(home.path());
    let archive = RawTar::new().file(b"x.txt", b"x").gz();
    drop(stage_tar_gz(archive.as_slice(), &root, Path::new(""), &Limits::default()).unwrap());
    assert_eq!(tree(home.path()), before);
}

#[test]
fn a_failing_input_is_no_damaged_archive() {
    struct Broken(std::io::Cursor<Vec<u8>>);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match std::io::Read::read(&mut self.0, buffer)? {
                0 => Err(std::io::Error::other("the line went dead")),
                count => Ok(count),
            }
        }
    }
    let sound = RawTar::new().file(b"a", &[7; 100_000]).gz();
    let half = sound[..sound.len() / 2].to_vec();
    let (_home, target) = world();
    let error = unpack_tar_gz(
        Broken(std::io::Cursor::new(half)),
        &target,
        &Limits::default(),
    )
    .unwrap_err();
    assert_eq!(error.fault(), Fault::Input);
    assert!(error.to_string().contains("the line went dead"), "{error}");

    // What was wrong before the line went dead is told, however far the reading is ahead.
    let mut long = RawTar::new().file(b"../a", b"");
    for number in 0..200 {
        long = long.file(format!("{number}").as_bytes(), &[7; 1000]);
    }
    let limits = Limits {
        header_bytes: 1 << 10,
        ..Limits::default()
    };
    let names = RawTar::new().member(b'L', b"././@LongLink", b"", 0o644, &[b'a'; 100_000]);
    for (archive, limits, fault) in [
        (long.gz(), Limits::default(), Fault::Archive),
        (names.gz(), limits, Fault::Limit),
    ] {
        let broken = Broken(std::io::Cursor::new(archive));
        let error = unpack_tar_gz(broken, &target, &limits).unwrap_err();
        assert_eq!(error.fault(), fault, "{error}");
    }
}

#[test]
fn only_what_a_killed_process_left_is_swept() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("filesystem");
    let left = home.path().join(".archipelago-unpack-left");
    std::fs::create_dir_all(left.join("new/a")).unwrap();
    std::fs::create_dir_all(left.join("old")).unwrap();
    let precious = home.path().join(".archipelago-unpack-precious");
    write(&precious, "old/3", "was replaced");
    let archive = RawTar::new().file(b"a", b"a").gz();
    let live = stage_tar_gz(archive.as_slice(), &root, Path::new(""), &Limits::default()).unwrap();
    let report = sweep(&root).unwrap();
    assert_eq!(report.removed, [left.canonicalize().unwrap_or(left)]);
    assert_eq!(report.kept, [precious]);
    live.commit().unwrap();
    assert_eq!(std::fs::read(root.join("a")).unwrap(), b"a");
}
