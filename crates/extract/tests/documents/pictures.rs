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

/// A picture that the providers refuse takes the whole question with it, so what an agent leaves is
/// made to fit, or is not shown.
#[test]
fn pictures_are_made_to_fit_what_providers_take() {
    use base64::Engine as _;
    let noise = |width: u32, height: u32| {
        let mut state = 7_u32;
        image::RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb(state.to_be_bytes()[..3].try_into().unwrap())
        })
    };
    let png = |picture: &image::RgbImage| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    };
    let data = |uri: &str| {
        let (head, data) = uri.split_once(";base64,").unwrap();
        (
            head.to_owned(),
            base64::engine::general_purpose::STANDARD
                .decode(data)
                .unwrap(),
        )
    };
    // Too wide: 9,000 by 30 become 2,000 by 7.
    let wide = png(&image::RgbImage::new(9_000, 30));
    let document = read("wide.png", &wide).unwrap();
    let picture = document.picture.unwrap();
    assert_eq!((picture.width, picture.height), (Some(9_000), Some(30)));
    let (head, bytes) = data(&picture.data_uri.unwrap());
    let small = image::load_from_memory(&bytes).unwrap();
    assert_eq!(
        (head.as_str(), small.width(), small.height()),
        ("data:image/jpeg", 2_000, 7)
    );
    assert_eq!(
        document.notes,
        [
            "the picture of 9000 by 30 pixels is shown with 2000 by 7 (limits `picture_edge`, `picture_data_bytes`)"
        ]
    );
    // Too many bytes: written anew, and smaller until it fits.
    let limits = Limits {
        picture_data_bytes: 20_000,
        ..Limits::default()
    };
    let large = png(&noise(300, 200));
    assert!(large.len() > 150_000);
    let document = extract::extract("large.png", &large, &limits).unwrap();
    let (head, bytes) = data(&document.picture.unwrap().data_uri.unwrap());
    assert!(
        head == "data:image/jpeg" && bytes.len() <= 20_000,
        "{head} {}",
        bytes.len()
    );
    let small = image::load_from_memory(&bytes).unwrap();
    assert!(small.width() > small.height() && small.width() <= 300);
    // What begins as a picture and is none, and one that is larger than it looks.
    let (end, bomb) = (wide.len() / 2, png(&image::RgbImage::new(3_000, 3_000)));
    for (bytes, memory) in [
        (&wide[..end], 256 << 20),
        (&b"\x89PNG\r\n\x1a\nrubbish"[..], 256 << 20),
        (&bomb, 1 << 20),
    ] {
        let limits = Limits {
            picture_memory_bytes: memory,
            ..Limits::default()
        };
        let document = extract::extract("x.png", bytes, &limits).unwrap();
        assert_eq!(document.picture.unwrap().data_uri, None);
        assert!(
            document.notes[0].contains("it cannot be decoded with"),
            "{:?}",
            document.notes
        );
    }
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
