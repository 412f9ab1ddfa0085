//! Archives inside of the world, and pictures.

use std::io::{Cursor, Write as _};

use extract::{ChangeLimits, ExtractError, Happened, Inside};

use crate::{changes, limited, lone};

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn members_of_archives_are_compared_by_size_and_checksum() {
    let old = archive(&[("a.txt", "one"), ("b/c.txt", "two"), ("same", "x")]);
    let new = archive(&[("same", "x"), ("a.txt", "eno"), ("d", "four")]);
    let found = changes("x.zip", &old, &new).unwrap();
    assert_eq!(found.inside, Inside::Archive);
    let members: Vec<_> = found
        .members
        .iter()
        .map(|m| (m.name.as_str(), m.happened, m.old_size, m.new_size))
        .collect();
    assert_eq!(
        members,
        [
            ("a.txt", Happened::Changed, Some(3), Some(3)),
            ("b/c.txt", Happened::Removed, Some(3), None),
            ("d", Happened::Added, None, Some(4)),
        ]
    );
    assert_eq!(
        found.to_text("x.zip"),
        "# changes inside x.zip\n~ a.txt (3 -> 3 bytes)\n- b/c.txt (3 -> - bytes)\n+ d (- -> 4 bytes)\n"
    );
    assert_eq!(lone("x.zip", None, Some(&old)).members.len(), 3);
}

#[test]
fn many_members_and_large_archives_are_held_to_limits() {
    let old = archive(&[("a", ""), ("b", ""), ("c", "")]);
    let limits = ChangeLimits {
        members: 2,
        ..ChangeLimits::default()
    };
    let found = limited("x.zip", &archive(&[]), &old, &limits).unwrap();
    assert_eq!(
        (found.members.len(), found.notes.as_slice()),
        (
            2,
            &["1 more members are not the same (limit `members`)".to_owned()][..]
        )
    );
    let mut limits = ChangeLimits::default();
    limits.documents.entries = 2;
    let error = limited("x.zip", &old, &old, &limits).unwrap_err();
    assert!(
        matches!(
            error,
            ExtractError::Limit {
                limit: "entries",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(changes("x.zip", &old, &old[..old.len() / 2]).is_err());
}

#[test]
fn pictures_have_kind_and_size() {
    let png = |width: u32| {
        let mut bytes = Cursor::new(Vec::new());
        let picture = image::RgbImage::new(width, 2);
        picture
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    };
    let found = changes("x.PNG", &png(3), b"no picture").unwrap();
    assert_eq!(found.inside, Inside::Picture);
    let before = found.picture_before.unwrap();
    assert_eq!(
        (before.mime, before.width, before.height),
        (Some("image/png"), Some(3), Some(2))
    );
    let after = found.picture_after.unwrap();
    assert_eq!((after.mime, after.width), (None, None));
}
