//! Layers: what changed below a root since a moment.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "test code")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use snapshot::archive::{ChangeTime, pack_layer};
use tar::EntryType;

#[derive(Debug, Clone, PartialEq)]
struct Member {
    kind: EntryType,
    mode: u32,
    link: Option<PathBuf>,
    content: Vec<u8>,
    records: Vec<(String, Vec<u8>)>,
}

/// The members of the layer since `since`.
fn layer(root: &Path, since: ChangeTime, excluded: &[&str]) -> BTreeMap<String, Member> {
    let excluded: Vec<PathBuf> = excluded.iter().map(PathBuf::from).collect();
    let mut out = Vec::new();
    let report = pack_layer(root, since, &excluded, &mut out).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(out.as_slice()));
    let mut members = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let records = entry.pax_extensions().unwrap().map_or(Vec::new(), |all| {
            all.map(|record| {
                let record = record.unwrap();
                (
                    record.key().unwrap().to_owned(),
                    record.value_bytes().to_vec(),
                )
            })
            .collect()
        });
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let name = entry.path().unwrap().display().to_string();
        let member = Member {
            kind: entry.header().entry_type(),
            mode: entry.header().mode().unwrap(),
            link: entry.link_name().unwrap().map(std::borrow::Cow::into_owned),
            content,
            records,
        };
        assert!(members.insert(name, member).is_none());
    }
    assert_eq!(report.members, members.len() as u64);
    members
}

/// A moment after everything that has happened below `root`, and before everything to come.
fn moment(root: &Path) -> ChangeTime {
    let marker = root.join("marker");
    fs::write(&marker, "").unwrap();
    let before = ChangeTime::of(&marker.metadata().unwrap());
    // Clocks of file systems tick every few milliseconds.
    loop {
        fs::write(&marker, "").unwrap();
        let now = ChangeTime::of(&marker.metadata().unwrap());
        if now > before {
            return now;
        }
    }
}

#[test]
fn only_what_changed_and_all_of_it() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for folder in ["usr/bin", "etc", "old/empty", "proc/1"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in ["usr/bin/old", "etc/passwd", "etc/mode", "proc/1/x"] {
        fs::write(at(file), "old").unwrap();
    }
    let since = moment(root.path());

    fs::write(at("usr/bin/tool"), "#!").unwrap();
    fs::set_permissions(at("usr/bin/tool"), PermissionsExt::from_mode(0o4755)).unwrap();
    // A package manager gives files old times.
    let file = fs::File::options()
        .write(true)
        .open(at("usr/bin/tool"))
        .unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000))
        .unwrap();
    fs::hard_link(at("usr/bin/tool"), at("usr/bin/tool2")).unwrap();
    symlink("/usr/bin/tool", at("usr/bin/absolute")).unwrap();
    let far = "x/".repeat(90) + "..";
    symlink(&far, at("usr/bin/far")).unwrap();
    fs::create_dir(at("new")).unwrap();
    fs::set_permissions(at("new"), PermissionsExt::from_mode(0o2770)).unwrap();
    // Only the mode changes, so only the change time does.
    fs::set_permissions(at("etc/mode"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(at("proc/1/x"), "new").unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(at("new/fifo"))
        .status();
    assert!(fifo.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("new/socket")).unwrap();

    let members = layer(root.path(), since, &["proc", "marker"]);
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "etc/mode",
            "new/",
            "new/fifo",
            "usr/bin/",
            "usr/bin/absolute",
            "usr/bin/far",
            "usr/bin/tool",
            "usr/bin/tool2",
        ]
    );
    let tool = &members["usr/bin/tool"];
    assert_eq!(
        (tool.kind, tool.mode, tool.content.as_slice()),
        (EntryType::Regular, 0o4755, &b"#!"[..])
    );
    let again = &members["usr/bin/tool2"];
    assert_eq!(
        (again.kind, again.link.as_deref()),
        (EntryType::Link, Some(Path::new("usr/bin/tool")))
    );
    let absolute = &members["usr/bin/absolute"];
    assert_eq!(
        (absolute.kind, absolute.link.as_deref()),
        (EntryType::Symlink, Some(Path::new("/usr/bin/tool")))
    );
    assert_eq!(
        members["usr/bin/far"].link.as_deref(),
        Some(Path::new(&far))
    );
    assert_eq!(
        (members["new/"].kind, members["new/"].mode),
        (EntryType::Directory, 0o2770)
    );
    assert_eq!(members["new/fifo"].kind, EntryType::Fifo);
    assert_eq!(members["etc/mode"].content, b"old");
}

#[test]
fn attributes_are_kept_where_the_disk_has_them() {
    let root = tempfile::tempdir().unwrap();
    let since = moment(root.path());
    let path = root.path().join("file");
    fs::write(&path, "x").unwrap();
    let value = vec![7; 3000];
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&path, "user.one", &value, flags) {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            eprintln!("SKIPPED: the disk of temporary files keeps no attributes");
            return;
        }
        set => set.unwrap(),
    }
    let members = layer(root.path(), since, &["marker"]);
    let kept = members["file"]
        .records
        .iter()
        .find(|(key, _)| key == "SCHILY.xattr.user.one");
    assert_eq!(kept.unwrap().1, value);
}

#[test]
fn a_root_that_is_not_there_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let since = moment(root.path());
    let gone = root.path().join("gone");
    let error = pack_layer(&gone, since, &[], &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
}
