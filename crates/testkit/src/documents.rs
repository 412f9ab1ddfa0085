//! Documents and databases of which tests know every byte (feature `documents`).
//!
//! # Panics
//! All functions panic where the machine has no room for a temporary file: they are for tests.

#![expect(
    clippy::unwrap_used,
    reason = "only tests call it, and what it writes is its own"
)]

use std::io::{Cursor, Write as _};

/// A package with these parts: name and text.
#[must_use]
pub fn package(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in parts {
        zip.start_file(*name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A workbook with these sheets: name and rows in `SpreadsheetML`. One whose name begins with `~`
/// is hidden. Style 1 is a date, style 2 a percentage.
#[must_use]
pub fn workbook(sheets: &[(&str, &str)]) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relations_of = "http://schemas.openxmlformats.org/package/2006/relationships";
    let mut list = String::new();
    let mut relations =
        format!("<Relationship Id=\"styles\" Type=\"{office}/styles\" Target=\"styles.xml\"/>");
    let mut parts = Vec::new();
    for (n, (name, rows)) in sheets.iter().enumerate() {
        let state = if name.starts_with('~') {
            " state=\"hidden\""
        } else {
            ""
        };
        list.push_str(&format!(
            "<sheet name=\"{name}\" sheetId=\"{}\"{state} r:id=\"r{n}\"/>",
            n + 1
        ));
        relations.push_str(&format!(
            "<Relationship Id=\"r{n}\" Type=\"{office}/worksheet\" Target=\"worksheets/s{n}.xml\"/>"
        ));
        parts.push((
            format!("xl/worksheets/s{n}.xml"),
            format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>"),
        ));
    }
    parts.push((
        "_rels/.rels".into(),
        format!("<Relationships xmlns=\"{relations_of}\"><Relationship Id=\"r\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"),
    ));
    parts.push((
        "xl/_rels/workbook.xml.rels".into(),
        format!("<Relationships xmlns=\"{relations_of}\">{relations}</Relationships>"),
    ));
    parts.push((
        "xl/workbook.xml".into(),
        format!(
            "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets>{list}</sheets></workbook>"
        ),
    ));
    parts.push((
        "xl/styles.xml".into(),
        format!("<styleSheet xmlns=\"{main}\"><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"9\"/></cellXfs></styleSheet>"),
    ));
    let parts: Vec<(&str, &str)> = parts
        .iter()
        .map(|(name, text): &(String, String)| (name.as_str(), text.as_str()))
        .collect();
    package(&parts)
}

/// The bytes of a database after `sql`.
#[must_use]
pub fn database(sql: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    std::fs::read(path).unwrap()
}

/// A database of deals: in the second, deal 2 is worth more, and deal 3 is new.
#[must_use]
pub fn sales_before_and_after() -> (Vec<u8>, Vec<u8>) {
    let schema = "create table deals (id integer primary key, name text, worth real);";
    let of = |rows: &str| database(&format!("{schema} insert into deals values {rows};"));
    (
        of("(1, 'Acme', 10.5), (2, 'Bolt', 20.0)"),
        of("(1, 'Acme', 10.5), (2, 'Bolt', 25.0), (3, 'Core', 5.0)"),
    )
}

/// A text document: its main part, and further relations of that part.
#[must_use]
pub fn text_document(main: &str, relations: &str) -> Vec<u8> {
    let of = "http://schemas.openxmlformats.org/package/2006";
    let office =
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument";
    let main_type =
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml";
    package(&[
        (
            "[Content_Types].xml",
            &format!(
                r#"<Types xmlns="{of}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="{main_type}"/></Types>"#
            ),
        ),
        (
            "_rels/.rels",
            &format!(
                r#"<Relationships xmlns="{of}/relationships"><Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>"#
            ),
        ),
        ("word/document.xml", main),
        (
            "word/_rels/document.xml.rels",
            &format!(r#"<Relationships xmlns="{of}/relationships">{relations}</Relationships>"#),
        ),
    ])
}

/// A text document of so many pages.
#[must_use]
pub fn text_pages(count: usize) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let end = r#"<w:p><w:r><w:br w:type="page"/></w:r></w:p>"#;
    let body = vec!["<w:p><w:r><w:t>Words</w:t></w:r></w:p>"; count].join(end);
    text_document(
        &format!(r#"<w:document xmlns:w="{main}"><w:body>{body}</w:body></w:document>"#),
        "",
    )
}
