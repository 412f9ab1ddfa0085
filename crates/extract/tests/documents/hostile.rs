//! Files that want to do harm end in an error that names the rule, soon.

use std::io::{Cursor, Write as _};

use extract::{ExtractError, Limits};

use crate::office::workbook;
use crate::{package, read};

fn limit_of(error: &ExtractError) -> &str {
    match error {
        ExtractError::Limit { limit, .. } => limit,
        other => panic!("not a limit: {other}"),
    }
}

fn docx(document: &str) -> Vec<u8> {
    package(&[("word/document.xml", document)])
}

#[test]
fn an_archive_bomb_is_stopped_by_what_it_unpacks_to() {
    let limits = Limits {
        unpacked_bytes: 1 << 20,
        ..Limits::default()
    };
    let zeros = " ".repeat(2 << 20);
    let bomb = docx(&zeros);
    assert!(bomb.len() < 10_000);
    let error = extract::extract("x.docx", &bomb, &limits).unwrap_err();
    assert_eq!(limit_of(&error), "unpacked_bytes");
    assert_eq!(
        error.to_string(),
        "unpacked size in bytes (at least): got 1048577, limit `unpacked_bytes` is 1048576"
    );
    let bomb = workbook(&zeros, "");
    let error = extract::extract("x.xlsx", &bomb, &limits).unwrap_err();
    assert_eq!(limit_of(&error), "unpacked_bytes");
}

#[test]
fn many_entries_deep_nesting_and_large_files_are_refused() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for n in 0..50 {
        zip.start_file(format!("{n}"), zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(b"x").unwrap();
    }
    let many = zip.finish().unwrap().into_inner();
    let limits = Limits {
        entries: 49,
        ..Limits::default()
    };
    let error = extract::extract("x.docx", &many, &limits).unwrap_err();
    assert_eq!(limit_of(&error), "entries");

    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    assert_eq!(
        limit_of(&read("x.docx", &docx(&deep)).unwrap_err()),
        "xml_depth"
    );

    let limits = Limits {
        file_bytes: 10,
        ..Limits::default()
    };
    let error = extract::extract("x.txt", b"12345678901", &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file size in bytes: got 11, limit `file_bytes` is 10"
    );
}

#[test]
fn entities_are_not_expanded_and_nothing_outside_is_read() {
    let laughs = r#"<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>
<d><p><r><t>x &b; &f; y</t></r></p></d>"#;
    let document = read("x.docx", &docx(laughs)).unwrap();
    assert_eq!(document.text, "x   y\n");
}

/// Each format that is XML inside: an entity that means a billion words, elements without end, and an
/// element that is not closed.
#[test]
fn hostile_xml_inside_of_every_format() {
    let wrap = |format: &str, content: &str| match format {
        "docx" => docx(content),
        "pptx" => package(&[("ppt/presentation.xml", content)]),
        "ods" => package(&[("content.xml", content)]),
        _ => package(&[("xl/workbook.xml", content)]),
    };
    let bomb = |levels: u32| -> String {
        let entities: String = (1..levels)
            .map(|n| format!("<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10)))
            .collect();
        format!(
            "<!DOCTYPE d [<!ENTITY e0 \"lol\">{entities}]><d><p><t>&e{};</t></p></d>",
            levels - 1
        )
    };
    for format in ["docx", "pptx", "ods", "xlsx"] {
        let name = format!("x.{format}");
        match read(&name, &wrap(format, &bomb(30))) {
            Ok(document) => assert!(!document.text.contains("lol"), "{name}"),
            Err(error) => assert!(
                matches!(error, ExtractError::Broken { .. }),
                "{name}: {error:?}"
            ),
        }
        let deep = "<a>".repeat(200_000);
        let error = read(&name, &wrap(format, &deep)).unwrap_err();
        assert!(!error.to_string().is_empty(), "{name}");
        let error = read(&name, &wrap(format, "<d><p>")).unwrap_err();
        assert!(
            matches!(error, ExtractError::Broken { .. }),
            "{name}: {error:?}"
        );
    }
}

/// A picture that promises more pixels than there is memory is described and not decoded; mails and
/// JSON may nest as deep as they like.
#[test]
fn promises_and_depth_cost_nothing() {
    let mut huge =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0".to_vec();
    huge.extend_from_slice(&[0; 64]);
    let picture = read("x.png", &huge).unwrap().picture.unwrap();
    assert_eq!(picture.mime, "image/png");

    let mut mail = String::from("From: a@b\r\n");
    for level in 0..2_000 {
        mail +=
            &format!("Content-Type: multipart/mixed; boundary=\"b{level}\"\r\n\r\n--b{level}\r\n");
    }
    mail += "\r\ntext";
    assert!(read("x.eml", mail.as_bytes()).is_ok());
    let deep = "[".repeat(1_000_000);
    assert_eq!(read("x.json", deep.as_bytes()).unwrap().text, deep);
    let error = read("x.ipynb", deep.as_bytes()).unwrap_err();
    assert!(matches!(error, ExtractError::Broken { .. }), "{error:?}");
    // An open quote swallows the rest of a file, and nothing more.
    let open = format!("a,b\n\"{}", "x,y\n".repeat(100_000));
    assert_eq!(
        read("x.csv", open.as_bytes()).unwrap().text.len(),
        open.len()
    );
}

#[test]
fn broken_documents_are_told_apart_from_empty_ones() {
    for (name, bytes) in [
        ("x.docx", b"not a zip".to_vec()),
        ("x.docx", package(&[("other.xml", "<a/>")])),
        ("x.docx", docx("<a><b></a>")),
        ("x.docx", docx("<a><b>")),
        ("x.pptx", package(&[])),
        ("x.xlsx", package(&[("xl/workbook.xml", "<workbook>")])),
        ("x.pdf", b"no pdf".to_vec()),
        ("x.ipynb", b"{".to_vec()),
    ] {
        let error = read(name, &bytes).unwrap_err();
        assert!(
            matches!(error, ExtractError::Broken { .. }),
            "{name}: {error:?}"
        );
    }
    for name in ["x.docx", "x.xlsx", "x.pptx"] {
        let error = read(name, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1").unwrap_err();
        assert!(
            matches!(error, ExtractError::Encrypted { .. }),
            "{name}: {error:?}"
        );
    }
    assert_eq!(read("x.docx", &docx("<a/>")).unwrap().text, "");
}

#[test]
fn long_texts_are_cut_not_refused() {
    let limits = Limits {
        text_chars: 100,
        ..Limits::default()
    };
    let paragraphs = "<p><r><t>0123456789</t></r></p>".repeat(1000);
    let document =
        extract::extract("x.docx", &docx(&format!("<d>{paragraphs}</d>")), &limits).unwrap();
    assert_eq!(document.text.chars().count(), 100);
    assert!(document.truncated);
    assert!(document.notes[0].contains("`text_chars`"));
    let row = r#"<row r="1"><c r="A1"><v>12345678901234567890</v></c></row>"#;
    let document = extract::extract("x.xlsx", &workbook(&row.repeat(50), row), &limits).unwrap();
    assert!(document.truncated);
    assert!(document.text.chars().count() <= 100);
}
