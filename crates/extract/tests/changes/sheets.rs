//! Cells of workbooks.

use std::io::{Cursor, Write as _};

use extract::{Happened, Inside};

use crate::{changes, lines, lone};

/// A workbook of these sheets: name, hidden or not, rows.
fn workbook(sheets: &[(&str, bool, &str)], names: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let mut entries = String::new();
    let mut rels = String::new();
    let mut files = Vec::new();
    for (n, (name, hidden, rows)) in sheets.iter().enumerate() {
        let state = if *hidden { r#" state="hidden""# } else { "" };
        entries += &format!(
            r#"<sheet name="{name}" sheetId="{}"{state} r:id="r{n}"/>"#,
            n + 1
        );
        rels += &format!(
            r#"<Relationship Id="r{n}" Type="{rel}/worksheet" Target="worksheets/s{n}.xml"/>"#
        );
        files.push((
            format!("xl/worksheets/s{n}.xml"),
            format!(r#"<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>"#),
        ));
    }
    files.push((
        "xl/workbook.xml".to_owned(),
        format!(r#"<workbook xmlns="{main}" xmlns:r="{rel}"><sheets>{entries}</sheets><definedNames>{names}</definedNames></workbook>"#),
    ));
    files.push((
        "xl/_rels/workbook.xml.rels".to_owned(),
        format!(r#"<Relationships xmlns="{package}">{rels}</Relationships>"#),
    ));
    files.push((
        "_rels/.rels".to_owned(),
        format!(r#"<Relationships xmlns="{package}"><Relationship Id="r" Type="{rel}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#),
    ));
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A row of number cells.
fn row(number: usize, cells: &[&str]) -> String {
    let cells: String = cells
        .iter()
        .enumerate()
        .map(|(at, value)| {
            format!(
                r#"<c r="{}{number}"><v>{value}</v></c>"#,
                char::from(b'A' + u8::try_from(at).unwrap())
            )
        })
        .collect();
    format!(r#"<row r="{number}">{cells}</row>"#)
}

/// Pitfall A14: nothing but a formula changed, with and without a stored value.
#[test]
fn a_formula_is_a_change_of_its_own() {
    let sheet = |a3: &str| {
        format!(
            r#"{}{}<row r="3"><c r="A3">{a3}</c></row>"#,
            row(1, &["2"]),
            row(2, &["40"])
        )
    };
    let book = |a3: &str| workbook(&[("Data", false, &sheet(a3))], "");
    let found = changes(
        "x.xlsx",
        &book("<f>A1+A2</f><v>42</v>"),
        &book("<f>SUM(A1:A2)</f><v>42</v>"),
    )
    .unwrap();
    assert_eq!(found.inside, Inside::Workbook);
    assert_eq!(found.tables[0].name, "Data");
    assert_eq!(
        lines(&found.tables[0].rows),
        [r#"~ row 3: {"A3":"42 {=A1+A2}"} -> {"A3":"42 {=SUM(A1:A2)}"}"#]
    );
    let found = changes("x.xlsx", &book("<v>42</v>"), &book("<f>A1+A2</f>")).unwrap();
    assert_eq!(
        lines(&found.tables[0].rows),
        [r#"~ row 3: {"A3":"42"} -> {"A3":"{=A1+A2; not calculated}"}"#]
    );
}

#[test]
fn an_inserted_row_does_not_change_those_below() {
    let old = [
        row(1, &["1", "10"]),
        row(2, &["2", "20"]),
        row(4, &["4", "40"]),
    ]
    .concat();
    let new = [
        row(1, &["1", "10"]),
        row(2, &["9", "90"]),
        row(3, &["2", "20"]),
        row(5, &["4", "41"]),
    ]
    .concat();
    let found = changes(
        "x.xlsm",
        &workbook(&[("S", false, &old)], ""),
        &workbook(&[("S", false, &new)], ""),
    )
    .unwrap();
    assert_eq!(
        lines(&found.tables[0].rows),
        [
            r#"+ row 2: {"A2":"9","B2":"90"}"#,
            r#"~ row 5 (was 4): {"B4":"40"} -> {"B5":"41"}"#,
        ]
    );
}

#[test]
fn sheets_and_names_come_and_go_and_hide() {
    let one = row(1, &["1"]);
    let old = workbook(
        &[("Kept", false, &one), ("Gone", false, &one)],
        r#"<definedName name="Rate">Kept!$A$1</definedName><definedName name="Old">Kept!$A$1</definedName>"#,
    );
    let new = workbook(
        &[("New", true, &one), ("Kept", true, &one)],
        r#"<definedName name="Rate">Kept!$A$2</definedName>"#,
    );
    let found = changes("x.xlsx", &old, &new).unwrap();
    let tables: Vec<_> = found
        .tables
        .iter()
        .map(|t| (t.name.as_str(), t.happened, t.added, t.removed))
        .collect();
    assert_eq!(
        tables,
        [
            ("New", Happened::Added, 1, 0),
            ("Kept", Happened::Changed, 0, 0),
            ("Gone", Happened::Removed, 0, 1),
        ]
    );
    assert_eq!(found.tables[0].notes, ["the sheet is hidden"]);
    assert_eq!(found.tables[1].notes, ["the sheet is now hidden"]);
    assert_eq!(
        found.notes,
        [
            "defined name `Rate` was Kept!$A$1, is Kept!$A$2",
            "defined name `Old` is gone"
        ]
    );
}

#[test]
fn a_saved_workbook_with_the_same_cells_says_so() {
    let one = row(1, &["1"]);
    let book = workbook(&[("S", false, &one)], "");
    let found = changes("x.xlsx", &book, &book).unwrap();
    assert_eq!(
        found.notes,
        ["no value and no formula of a cell has changed"]
    );
    assert_eq!(lone("x.xlsx", None, Some(&book)).tables[0].added, 1);
    assert!(changes("x.xlsx", &book, b"broken").is_err());
}

#[test]
fn cells_of_opendocument_sheets_are_compared() {
    let ods = |price: &str| {
        let content = format!(
            r#"<c xmlns:t="t" xmlns:o="o" xmlns:x="x"><t:table t:name="One"><t:table-row><t:table-cell o:value-type="string"><x:p>Price</x:p></t:table-cell><t:table-cell o:value-type="float" o:value="{price}"/></t:table-row></t:table></c>"#
        );
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("content.xml", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
        zip.finish().unwrap().into_inner()
    };
    let found = changes("x.ods", &ods("10"), &ods("12.5")).unwrap();
    assert_eq!(found.inside, Inside::Workbook);
    assert_eq!(
        lines(&found.tables[0].rows),
        [r#"~ row 1: {"B1":"10"} -> {"B1":"12.5"}"#]
    );
    // A table of HTML that is called a workbook has no cells.
    let html = changes("x.xls", b"<table>", b"<table><tr>").unwrap();
    assert_eq!(html.inside, Inside::Nothing);
}
