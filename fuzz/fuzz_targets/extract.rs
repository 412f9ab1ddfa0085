//! Reads hostile documents, and compares two of them: text or an error within limits, never a panic.
//!
//! The first byte chooses the format. A format that is a package of XML files gets the bytes as one of
//! those, because the checksums of a zip would keep the fuzzer out. PDF and xls are left out: their parsers
//! run in a child process, where they may end as they like.
#![no_main]

use std::io::{Cursor, Write as _};
use std::time::Duration;

use extract::{ChangeLimits, Limits, content_changes, extract};
use libfuzzer_sys::fuzz_target;

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/// Names of documents, and the file of the package that the bytes become.
const FORMATS: &[(&str, Option<&str>)] = &[
    ("x.docx", Some("word/document.xml")),
    ("x.docx", Some("word/comments.xml")),
    ("x.pptx", Some("ppt/slides/slide1.xml")),
    ("x.ods", Some("content.xml")),
    ("x.xlsx", Some("xl/worksheets/sheet1.xml")),
    ("x.xlsx", Some("xl/workbook.xml")),
    ("x.xlsx", Some("xl/styles.xml")),
    ("x.csv", None),
    ("x.eml", None),
    ("x.json", None),
    ("x.ipynb", None),
    ("x.xml", None),
    ("x.tar", None),
    ("x.zip", None),
    ("x.tgz", None),
    ("x.png", None),
    ("x.webp", None),
    ("x.txt", None),
];

/// A package whose other files are as short as they may be.
fn package(place: &str, bytes: &[u8]) -> Vec<u8> {
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations = |kind: &str, target: &str| {
        format!(r#"<Relationships><Relationship Id="r" Type="{relation}/{kind}" Target="{target}"/></Relationships>"#)
    };
    let files = [
        ("word/document.xml", "<d><p><r><t>x</t></r></p></d>".to_owned()),
        ("ppt/presentation.xml", r#"<p xmlns:r="r"><sldId r:id="r"/></p>"#.to_owned()),
        ("ppt/_rels/presentation.xml.rels", relations("slide", "slides/slide1.xml")),
        ("ppt/slides/slide1.xml", "<s/>".to_owned()),
        (
            "xl/workbook.xml",
            format!(r#"<workbook xmlns="{MAIN}" xmlns:r="{relation}"><sheets><sheet name="S" sheetId="1" r:id="r"/></sheets></workbook>"#),
        ),
        ("xl/_rels/workbook.xml.rels", relations("worksheet", "worksheets/sheet1.xml")),
        ("xl/worksheets/sheet1.xml", format!(r#"<worksheet xmlns="{MAIN}"><sheetData/></worksheet>"#)),
    ];
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files.iter().filter(|(name, _)| *name != place) {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.start_file(place, stored).unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap().into_inner()
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let (name, place) = FORMATS[usize::from(*choice) % FORMATS.len()];
    let limits = Limits {
        unpacked_bytes: 1 << 20,
        text_chars: 10_000,
        cell_bytes: 1 << 20,
        rows: 1_000,
        columns: 100,
        ..Limits::default()
    };
    let (old, new) = bytes.split_at(bytes.len() / 2);
    let made = |bytes: &[u8]| match place {
        Some(place) => package(place, bytes),
        None => bytes.to_vec(),
    };
    if let Ok(document) = extract(name, &made(bytes), &limits) {
        assert!(document.text.chars().count() <= limits.text_chars);
    }
    let limits = ChangeLimits {
        time: Duration::from_secs(2),
        database_bytes: 1 << 20,
        documents: limits,
        ..ChangeLimits::default()
    };
    let (old, new) = (made(old), made(new));
    let _ = content_changes(name, Some(&old.as_slice()), Some(&new.as_slice()), &limits);
});
