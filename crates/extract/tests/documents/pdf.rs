//! PDF, written here by hand.

use std::fmt::Write as _;
use std::time::Duration;

use extract::{ExtractError, Format, Limits};

use crate::read;

/// A document with one page per text.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let count = pages.len();
    let kids: Vec<String> = (0..count).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {count} >>",
            kids.join(" ")
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (n, text) in pages.iter().enumerate() {
        let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * n
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    let mut out = "%PDF-1.4\n".to_owned();
    let mut offsets = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        offsets.push(out.len());
        let _ = write!(out, "{} 0 obj\n{object}\nendobj\n", n + 1);
    }
    let xref = out.len();
    let _ = write!(out, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for offset in offsets {
        let _ = writeln!(out, "{offset:010} 00000 n ");
    }
    let _ = write!(
        out,
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n",
        objects.len() + 1
    );
    out.into_bytes()
}

#[test]
fn pages_are_read_in_order() {
    let document = read("x.pdf", &pdf(&["First page: 41,250", "Second"])).unwrap();
    assert_eq!(document.format, Format::Pdf);
    assert_eq!(
        document.text,
        "=== Page 1 ===\nFirst page: 41,250\n=== Page 2 ===\nSecond\n"
    );
    assert!(document.notes.is_empty());
}

#[test]
fn a_document_without_text_says_so() {
    let document = read("x.pdf", &pdf(&[""])).unwrap();
    assert_eq!(document.text, "=== Page 1 ===\n");
    assert!(document.notes[0].contains("no text on any page"));
}

/// A page that the parser gives up on hides no other.
#[test]
fn a_page_that_cannot_be_read_is_marked_and_the_others_are_read() {
    let whole = String::from_utf8(pdf(&["one", "two", "three"])).unwrap();
    let (first, rest) = whole.split_at(whole.find("(one)").unwrap());
    // The second page has no size.
    let document = format!("{first}{}", rest.replacen("/MediaBox", "/MediaBux", 1));
    let document = read("x.pdf", document.as_bytes()).unwrap();
    assert_eq!(
        document.text,
        "=== Page 1 ===\none\n=== Page 2 ===\n[this page cannot be read: the parser gave up]\n=== Page 3 ===\nthree\n"
    );
    assert_eq!(document.pages, Some(3));
    assert_eq!(document.notes, ["1 of 3 pages cannot be read"]);
}

#[test]
fn cut_and_garbled_documents_end_in_an_error_or_in_text() {
    let whole = pdf(&["text"]);
    for length in (9..whole.len()).step_by(37) {
        // Whatever the parser makes of it, it comes back.
        let _ = read("x.pdf", &whole[..length]);
    }
    let mut garbled = whole;
    for byte in garbled.iter_mut().skip(20).step_by(11) {
        *byte = byte.wrapping_mul(31).wrapping_add(7);
    }
    assert!(read("x.pdf", &garbled).is_err());
}

#[test]
fn a_parser_that_runs_too_long_is_left() {
    let limits = Limits {
        pdf_time: Duration::ZERO,
        ..Limits::default()
    };
    let error = extract::extract("x.pdf", &pdf(&["text"; 200]), &limits).unwrap_err();
    assert!(
        matches!(
            error,
            ExtractError::Timeout {
                limit: "pdf_time",
                ..
            }
        ),
        "{error:?}"
    );
}

/// Pages as pictures, by a program that need not be there.
#[test]
fn pages_are_drawn_where_the_settings_ask_and_the_program_is_there() {
    let pdf = include_bytes!("../fixtures/reportlab.pdf");
    assert!(read("x.pdf", pdf).unwrap().page_pictures.is_empty());
    let limits = Limits {
        page_pictures: 1,
        page_picture_edge: 200,
        ..Limits::default()
    };
    let elsewhere = Limits {
        program_path: "/nowhere:relative".into(),
        ..limits.clone()
    };
    let document = extract::extract("x.pdf", pdf, &elsewhere).unwrap();
    assert_eq!(
        document.notes,
        ["no pictures of the pages: `pdftoppm` is not installed (it comes with poppler-utils)"]
    );
    let installed =
        std::env::split_paths(&limits.program_path).any(|f| f.join("pdftoppm").exists());
    if !testkit::available("`pdftoppm`", installed) {
        return;
    }
    let document = extract::extract("x.pdf", pdf, &limits).unwrap();
    assert_eq!(document.page_pictures.len(), 1);
    let page = &document.page_pictures[0];
    // A4 upright, as reportlab makes pages.
    assert_eq!((page.mime, page.height), ("image/png", Some(200)));
    assert!(page.width.is_some_and(|width| (140..=143).contains(&width)));
    assert!(page.data_uri.is_some());
    assert_eq!(
        document.notes,
        ["pictures of 1 of 2 pages (limit `page_pictures`)"]
    );
    let limits = Limits {
        page_pictures_time: std::time::Duration::ZERO,
        ..limits
    };
    let document = extract::extract("x.pdf", pdf, &limits).unwrap();
    assert_eq!(
        document.notes,
        [
            "no pictures of the pages: `pdftoppm` cannot be used: with a document of ours, `pdftoppm` took more than 0 s (limit `page_pictures_time`)"
        ]
    );
}
