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
fn members_of_archives_inside_of_archives_are_compared() {
    let tar = |text: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in [("same.txt", "same"), ("a/changed.txt", text)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            builder
                .append_data(&mut header, name, content.as_bytes())
                .unwrap();
        }
        builder.into_inner().unwrap()
    };
    let gz = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let outer = |inner: &[u8]| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("in.tgz", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(inner).unwrap();
        zip.finish().unwrap().into_inner()
    };
    let (old, new) = (gz(&tar("one")), gz(&tar("two")));
    let names = |name: &str, old: &[u8], new: &[u8]| -> Vec<String> {
        let found = changes(name, old, new).unwrap();
        assert_eq!(found.inside, Inside::Archive);
        assert!(
            found
                .members
                .iter()
                .all(|m| m.happened == Happened::Changed)
        );
        found.members.into_iter().map(|m| m.name).collect()
    };
    assert_eq!(names("x.tar", &tar("one"), &tar("two")), ["a/changed.txt"]);
    assert_eq!(names("x.tar.gz", &old, &new), ["a/changed.txt"]);
    let zst = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    assert_eq!(
        names("x.tar.zst", &zst(&tar("one")), &zst(&tar("two"))),
        ["a/changed.txt"]
    );
    assert_eq!(
        names("x.zip", &outer(&old), &outer(&new)),
        ["in.tgz", "in.tgz/a/changed.txt"]
    );
    let limits = ChangeLimits {
        archive_bytes: 10,
        ..ChangeLimits::default()
    };
    let error = limited("x.tar", &tar("one"), &tar("two"), &limits).unwrap_err();
    assert!(error.to_string().contains("`archive_bytes`"), "{error}");
}

/// Small pictures are shown as they are, large ones scaled down, and those that cannot be decoded
/// within limits not at all.
#[test]
fn pictures_have_previews() {
    let noise = |width: u32, height: u32| {
        let mut state = 7_u32;
        image::RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb(state.to_be_bytes()[..3].try_into().unwrap())
        })
    };
    let png = |picture: &image::DynamicImage| {
        let mut bytes = Cursor::new(Vec::new());
        picture
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    };
    let small = png(&noise(10, 10).into());
    let large = png(&noise(1000, 600).into());
    assert!(large.len() > 1_000_000);
    let found = changes("x.png", &small, &large).unwrap();
    let decoded = |uri: &str| {
        use base64::Engine as _;
        let (head, data) = uri.split_once(";base64,").unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        (head.to_owned(), bytes)
    };
    let (head, bytes) = decoded(&found.picture_before.unwrap().preview.unwrap());
    assert_eq!((head.as_str(), bytes), ("data:image/png", small.clone()));
    let after = found.picture_after.unwrap();
    assert_eq!((after.width, after.height), (Some(1000), Some(600)));
    let (head, bytes) = decoded(&after.preview.unwrap());
    assert_eq!(head, "data:image/jpeg");
    assert!(bytes.len() < 192 << 10);
    let preview = image::load_from_memory(&bytes).unwrap();
    assert_eq!((preview.width(), preview.height()), (480, 288));

    // With transparent places it stays a PNG.
    let mut clear = image::DynamicImage::from(noise(600, 600)).into_rgba8();
    clear.get_pixel_mut(0, 0).0[3] = 0;
    for (x, _, pixel) in clear.enumerate_pixels_mut() {
        if x % 100 > 3 {
            pixel.0 = [9, 9, 9, 0];
        }
    }
    let limits = ChangeLimits {
        preview_bytes: 20_000,
        preview_edge: 60,
        ..ChangeLimits::default()
    };
    let found = limited("x.png", &png(&clear.into()), &small, &limits).unwrap();
    let preview = found.picture_before.unwrap().preview.unwrap();
    assert_eq!(decoded(&preview).0, "data:image/png");

    let limits = ChangeLimits {
        preview_memory_bytes: 100_000,
        ..ChangeLimits::default()
    };
    let found = limited("x.png", &large, &large[..large.len() / 2], &limits).unwrap();
    for side in [found.picture_before, found.picture_after] {
        let side = side.unwrap();
        assert_eq!((side.width, side.preview), (Some(1000), None));
    }
    let limits = ChangeLimits {
        previews: false,
        ..ChangeLimits::default()
    };
    let found = limited("x.png", &small, &small, &limits).unwrap();
    assert_eq!(found.picture_after.unwrap().preview, None);
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
