//! Workbooks of the OpenDocument format, and of the format before 2007.

use std::time::Instant;

use extract::{ExtractError, Format, Limits};

use crate::{package, read};

/// An OpenDocument spreadsheet with this content of its body.
pub(crate) fn ods(tables: &str) -> Vec<u8> {
    let content = format!(
        r#"<?xml version="1.0"?><office:document-content xmlns:office="o" xmlns:table="t" xmlns:text="x" xmlns:style="s" xmlns:dc="d">
<office:automatic-styles><style:style style:name="ta1"><style:table-properties table:display="true"/></style:style>
<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style></office:automatic-styles>
<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"#
    );
    package(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", &content),
    ])
}

#[test]
fn values_formulas_comments_and_repeated_cells() {
    let bytes = ods(r#"<table:table table:name="One" table:style-name="ta1">
<table:table-row><table:table-cell office:value-type="string"><text:p>two</text:p><text:p>lines <text:s text:c="2"/>x</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="2"/><table:table-cell office:value-type="float" office:value="12.5"><office:annotation><dc:creator>Ann</dc:creator><dc:date>2025-01-01</dc:date><text:p>too high</text:p></office:annotation><text:p>12,50</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" office:value-type="boolean" office:boolean-value="true"><text:p>WAHR</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="10"><table:table-cell table:number-columns-repeated="1024"/></table:table-row>
<table:table-row><table:table-cell table:formula="of:=SUM([.D1:.D9])" office:value-type="percentage" office:value="0.125"><text:p>12.5%</text:p></table:table-cell>
<table:table-cell table:formula="of:=NOW()"/><table:table-cell office:value-type="date" office:date-value="2025-03-04T05:06:07"><text:p>x</text:p></table:table-cell></table:table-row>
</table:table><table:table table:name="Secret" table:style-name="ta2"><table:table-row><table:table-cell office:value-type="string"><text:p>hidden</text:p></table:table-cell></table:table-row></table:table>
<table:named-expressions><table:named-range table:name="Rate" table:cell-range-address="$One.$A$1"/></table:named-expressions>"#);
    let document = read("x.ods", &bytes).unwrap();
    assert_eq!(document.format, Format::Xlsx);
    assert_eq!(
        document.text,
        "=== Sheet: One ===\ntwo⏎lines   x\t\t\t12.5\nTRUE\tTRUE\nTRUE\tTRUE\n[10 empty rows]\n\
         0.125 {=SUM([.D1:.D9]); stored value, not calculated here}\t{=NOW(); not calculated}\t2025-03-04 05:06:07\n\
         === Number Formats ===\nA14\t12.5%\n=== Comments ===\nD1 (Ann): too high\n\
         === Defined Names ===\nRate = $One.$A$1\n"
    );
    assert_eq!(document.notes, ["hidden sheets are left out: Secret"]);
}

/// A few hundred bytes that mean a million million cells.
#[test]
fn repeated_cells_are_unrolled_within_limits() {
    let bomb = ods(
        r#"<table:table table:name="One"><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="1000000" office:value-type="string"><text:p>bomb</text:p></table:table-cell></table:table-row></table:table>"#,
    );
    let limits = Limits {
        cell_bytes: 1 << 20,
        ..Limits::default()
    };
    let start = Instant::now();
    let document = extract::extract("x.ods", &bomb, &limits).unwrap();
    assert!(start.elapsed().as_secs() < 20);
    assert!(
        document
            .notes
            .iter()
            .any(|note| note.contains("`cell_bytes`")),
        "{:?}",
        document.notes
    );
    // 68 bytes for each cell; one in 1,001 is listed to tell that there are columns beyond the limit.
    let listed = (1 << 20) / 68;
    assert_eq!(
        document.text.matches("bomb").count(),
        listed - listed / 1_001
    );
    let document = read("x.ods", &bomb).unwrap();
    assert!(document.truncated);
}

#[test]
fn what_is_broken_or_encrypted_is_told() {
    for (name, bytes) in [
        ("x.ods", b"no zip".to_vec()),
        ("x.ods", package(&[("mimetype", "x")])),
        ("x.ods", package(&[("content.xml", "<a><b></a>")])),
        (
            "x.xls",
            [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 600]].concat(),
        ),
        ("x.xls", vec![0, 1, 2, 3]),
    ] {
        let error = read(name, &bytes).unwrap_err();
        assert!(
            matches!(error, ExtractError::Broken { .. }),
            "{name}: {error:?}"
        );
    }
    let manifest =
        r#"<m:manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>"#;
    let encrypted = package(&[("META-INF/manifest.xml", manifest), ("content.xml", "xx")]);
    assert_eq!(
        read("x.ods", &encrypted).unwrap_err(),
        ExtractError::Encrypted { format: "ods" }
    );
}

/// Many programs call a table of HTML or text a workbook; spreadsheets open it all the same.
#[test]
fn workbooks_by_name_only() {
    let html = "<table><tr><td>1</td></tr></table>";
    assert_eq!(read("x.xls", html.as_bytes()).unwrap().text, html);
    let xlsx = crate::office::workbook(r#"<row r="1"><c r="A1"><v>1</v></c></row>"#, "");
    assert!(read("x.xls", &xlsx).unwrap().text.contains("\n1\n"));
}
