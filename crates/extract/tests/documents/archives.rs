//! Archives of every kind, inside of each other, and hostile ones.

use std::io::{Cursor, Write as _};

use extract::{ExtractError, Format, Limits};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{package, read};

pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn limit_of(error: &ExtractError) -> &str {
    match error {
        ExtractError::Limit { limit, .. } => limit,
        other => panic!("not a limit: {other}"),
    }
}

#[test]
fn every_kind_is_listed_inside_of_every_other() {
    let inner = tar(&[("deep/a.txt", b"12345")]);
    let packed = gz(&tar(&[("notes.md", b"# n"), ("in.tar", &inner)]));
    let zst = zstd::encode_all(tar(&[("z.txt", b"zz")]).as_slice(), 3).unwrap();
    let all = zip(&[
        ("b.tgz", &packed),
        ("c.tar.zst", &zst),
        ("log.txt.gz", &gz(b"one line\n")),
        ("plain.txt", b"p"),
    ]);
    let document = read("all.zip", &all).unwrap();
    assert_eq!(document.format, Format::Archive);
    let sizes = |bytes: &[u8]| bytes.len();
    assert_eq!(
        document.text,
        format!(
            "b.tgz\t{} bytes\nb.tgz/notes.md\t3 bytes\nb.tgz/in.tar\t{} bytes\nb.tgz/in.tar/deep/a.txt\t5 bytes\n\
             c.tar.zst\t{} bytes\nc.tar.zst/z.txt\t2 bytes\nlog.txt.gz\t{} bytes\nlog.txt.gz/log.txt\t9 bytes\n\
             plain.txt\t1 bytes\n",
            sizes(&packed),
            sizes(&inner),
            sizes(&zst),
            sizes(&gz(b"one line\n")),
        )
    );
    assert_eq!(document.notes, [""; 0]);
    assert_eq!(read("x.tar", &inner).unwrap().text, "deep/a.txt\t5 bytes\n");
    assert_eq!(
        read("some.log.gz", &gz(b"x")).unwrap().text,
        "some.log\t1 bytes\n"
    );
    // What a file is, its content tells.
    assert_eq!(read("x.tar", &packed).unwrap().text.lines().count(), 3);
}

#[test]
fn a_broken_archive_inside_hides_no_other() {
    let all = zip(&[
        ("a.tar.gz", b"\x1f\x8bnothing"),
        ("b.zip", b"not a zip"),
        ("c.tar", &tar(&[("x", b"1")])[..600]),
        ("d.txt", b"d"),
    ]);
    let document = read("all.zip", &all).unwrap();
    assert!(
        document.text.ends_with("d.txt\t1 bytes\n"),
        "{}",
        document.text
    );
    for name in ["`a.tar.gz`", "`b.zip`", "`c.tar`"] {
        assert!(
            document.notes.iter().any(|note| note.starts_with(name)),
            "{name}: {:?}",
            document.notes
        );
    }
    for name in ["x.zip", "x.tar", "x.tgz", "x.tar.zst", "x.gz"] {
        let error = read(name, b"nothing of the kind").unwrap_err();
        assert!(
            matches!(error, ExtractError::Broken { .. }),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn bombs_of_every_kind_are_stopped() {
    let limits = Limits {
        unpacked_bytes: 1 << 20,
        ..Limits::default()
    };
    let zeros = vec![0; 8 << 20];
    let full = tar(&[("zeros", &zeros)]);
    let bombs = [
        ("x.tar.gz", gz(&full)),
        ("x.gz", gz(&vec![b'a'; 8 << 20])),
        ("x.tar.zst", zstd::encode_all(full.as_slice(), 3).unwrap()),
        ("x.zip", zip(&[("in.tar.gz", &gz(&full))])),
        ("x.zip", zip(&[("in.zip", &zip(&[("in.tar", &full)]))])),
        ("x.tar", tar(&[("in.tgz", &gz(&full))])),
    ];
    for (name, bomb) in bombs {
        assert!(bomb.len() < 100_000);
        let error = extract::extract(name, &bomb, &limits).unwrap_err();
        assert_eq!(limit_of(&error), "unpacked_bytes", "{name}");
    }
    // A long name is a member of its own, which the reader of tar would keep in memory.
    let mut long = tar(&[("x", b"")]);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(4 << 20);
    header.set_path("././@LongLink").unwrap();
    header.set_cksum();
    let mut bomb = header.as_bytes().to_vec();
    bomb.resize(bomb.len() + (4 << 20), b'a');
    bomb.append(&mut long);
    let error = read("x.tar", &bomb).unwrap_err();
    assert!(error.to_string().contains("header"), "{error}");
    let limits = Limits {
        entries: 3,
        ..Limits::default()
    };
    let many = tar(&[("a", b""), ("b", b""), ("c.zip", &package(&[("d", "")]))]);
    let error = extract::extract("x.tar", &many, &limits).unwrap_err();
    assert_eq!(limit_of(&error), "entries");
}
