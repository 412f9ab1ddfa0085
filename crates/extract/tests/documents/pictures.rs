//! Pictures by content, and everything that has no text.

use extract::{Format, Limits};

use crate::read;

/// A PNG of one pixel (its header says 1×1).
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

#[test]
fn the_kind_of_a_picture_comes_from_its_content() {
    for name in ["a.png", "b.JPG"] {
        let document = read(name, PNG).unwrap();
        assert_eq!(document.format, Format::Picture);
        let picture = document.picture.unwrap();
        assert_eq!(picture.mime, "image/png");
        assert_eq!((picture.width, picture.height), (Some(1), Some(1)));
        let uri = picture.data_uri.unwrap();
        assert!(
            uri.starts_with("data:image/png;base64,iVBORw0KGgo"),
            "{uri}"
        );
        assert_eq!(document.text, "");
    }
    let document = read("a.png", b"BM no picture that a model takes").unwrap();
    assert_eq!(document.picture, None);
    assert_eq!(
        document.notes,
        ["the content is no PNG, JPEG, GIF or WebP picture"]
    );
}

#[test]
fn a_large_picture_is_described_and_not_shown() {
    let limits = Limits {
        picture_bytes: PNG.len() - 1,
        ..Limits::default()
    };
    let document = extract::extract("a.png", PNG, &limits).unwrap();
    let picture = document.picture.unwrap();
    assert_eq!(picture.data_uri, None);
    assert_eq!(picture.width, Some(1));
    assert!(document.notes[0].contains("limit `picture_bytes` is"));
}

#[test]
fn text_is_text_under_any_name_and_binary_is_not() {
    assert_eq!(read("Makefile", b"all:\n").unwrap().text, "all:\n");
    assert_eq!(
        read("noext", "ünï".as_bytes()).unwrap().format,
        Format::Text
    );
    assert_eq!(read("a.html", b"<p>x</p>").unwrap().text, "<p>x</p>");
    assert_eq!(read("a.csv", b"a,b\n").unwrap().text, "a\tb\n");
    let document = read("a.exe", b"MZ\0\0").unwrap();
    assert_eq!(document.format, Format::Binary);
    assert_eq!(document.text, "");
}
