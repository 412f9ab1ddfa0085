//! How cells look.

use formats::grades::VerifierStatus;
use serde_json::json;

use crate::case::Case;
use testkit::documents::package;

const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A1 is red on solid yellow and bold; B1 takes its fill from the theme, lighter; C1 has a pattern
/// that is not solid; D1 has an old numbered colour; A2:B2 are merged; C2 is a formula.
fn workbook() -> Vec<u8> {
    let main = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
    package(&[
        (
            "[Content_Types].xml",
            "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>",
        ),
        (
            "_rels/.rels",
            &format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATION}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            &format!(
                "<workbook {main} xmlns:r=\"{RELATION}\"><sheets><sheet name=\"Data\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            &format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATION}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            &format!(
                "<worksheet {main}><sheetData><row r=\"1\"><c r=\"A1\" s=\"1\"><v>1</v></c><c r=\"B1\" s=\"2\"><v>2</v></c><c r=\"C1\" s=\"3\"><v>3</v></c><c r=\"D1\" s=\"4\"><v>4</v></c></row><row r=\"2\"><c r=\"A2\" s=\"1\"><v>5</v></c><c r=\"B2\"/><c r=\"C2\"><f>SUM(A1:B1)</f><v>3</v></c></row></sheetData><mergeCells count=\"1\"><mergeCell ref=\"A2:B2\"/></mergeCells></worksheet>"
            ),
        ),
        (
            "xl/styles.xml",
            &format!(
                "<styleSheet {main}><fonts><font/><font><b/><color rgb=\"FFFF0000\"/></font></fonts>\
                <fills><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"solid\"><fgColor rgb=\"FFFFFF00\"/></patternFill></fill>\
                <fill><patternFill patternType=\"solid\"><fgColor theme=\"4\" tint=\"0.7999\"/></patternFill></fill>\
                <fill><patternFill patternType=\"gray125\"><fgColor rgb=\"FF00FF00\"/></patternFill></fill>\
                <fill><patternFill patternType=\"solid\"><fgColor indexed=\"10\"/></patternFill></fill></fills>\
                <cellXfs><xf fontId=\"0\" fillId=\"0\"/><xf fontId=\"1\" fillId=\"1\"/><xf fontId=\"0\" fillId=\"2\"/><xf fontId=\"0\" fillId=\"3\"/><xf fontId=\"0\" fillId=\"4\"/></cellXfs>\
                <dxfs><dxf><font><b/></font><fill><patternFill patternType=\"solid\"><fgColor rgb=\"FF123456\"/></patternFill></fill></dxf></dxfs></styleSheet>"
            ),
        ),
        (
            "xl/theme/theme1.xml",
            "<a:theme xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"><a:themeElements><a:clrScheme name=\"x\"><a:dk1><a:sysClr val=\"windowText\" lastClr=\"000000\"/></a:dk1><a:lt1><a:sysClr val=\"window\" lastClr=\"FFFFFF\"/></a:lt1><a:accent1><a:srgbClr val=\"4472C4\"/></a:accent1></a:clrScheme></a:themeElements></a:theme>",
        ),
    ])
}

#[tokio::test]
async fn the_look_of_cells_is_checked() {
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &workbook()), ("t.csv", b"a\n")]);
    for (cell, kind, expected, score) in [
        (
            "A1",
            "highlight",
            json!({"expected_highlight": "#ffff00"}),
            1.0,
        ),
        (
            "A1",
            "highlight",
            json!({"expected_highlight": "FFFF0000"}),
            0.0,
        ),
        (
            "A1",
            "text_color",
            json!({"expected_text_color": "FF0000"}),
            1.0,
        ),
        ("A1", "bold", json!({"expected_bold": "true"}), 1.0),
        ("B1", "bold", json!({"expected_bold": true}), 0.0),
        ("B1", "bold", json!({"expected_bold": false}), 1.0),
        // Excel's "Blue, Accent 1, Lighter 80%".
        (
            "B1",
            "highlight",
            json!({"expected_highlight": "#D9E1F2"}),
            1.0,
        ),
        (
            "B1",
            "highlight",
            json!({"expected_highlight": "theme:4:0.80"}),
            1.0,
        ),
        (
            "C1",
            "highlight",
            json!({"expected_highlight": "00FF00"}),
            0.0,
        ),
        (
            "D1",
            "highlight",
            json!({"expected_highlight": "#FF0000"}),
            1.0,
        ),
        // B2 is covered by A2.
        ("A2:B2", "bold", json!({"expected_bold": true}), 1.0),
        ("B2", "bold", json!({"expected_bold": false}), 0.0),
        ("A1:B1", "bold", json!({"expected_bold": true}), 0.0),
        (
            "C2",
            "formula",
            json!({"expected_formula": "= sum(a1 : b1)"}),
            1.0,
        ),
        (
            "A1",
            "formula",
            json!({"expected_formula": "=SUM(A1:B1)"}),
            0.0,
        ),
    ] {
        let mut values = expected.clone();
        values["cell_reference"] = json!(cell);
        values["check_type"] = json!(format!("formatting_{kind}"));
        case.verifiers.clear();
        case.verifier("spreadsheet_verifier", values);
        let result = case.result().await;
        assert_eq!(result.status, VerifierStatus::Ok, "{result:?}");
        assert_eq!(result.score, score, "{cell} {kind} {expected}: {result:?}");
        let described = &result.verifier_result_values;
        assert_eq!(described["formatting_total_count"], 1);
        assert_eq!(described["formatting_checks"][0]["cell_reference"], cell);
    }
    let details = |result: &formats::grades::VerifierResult| {
        result.verifier_result_values["formatting_checks"][0]["details"].clone()
    };
    case.verifiers.clear();
    case.verifier(
        "spreadsheet_verifier",
        json!({"cell_reference": "A1:B1", "check_type": "formatting_bold", "expected_bold": true}),
    );
    let account = details(&case.result().await);
    assert_eq!(
        (&account["cells_checked"], &account["cells_passed"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        account["cell_results"]["B1"]["bold"],
        json!({"expected": true, "actual": false, "match": false})
    );
    for values in [
        json!({"check_type": "formatting_bold"}),
        json!({"check_type": "formatting_size", "expected_bold": true}),
        json!({"check_type": "formatting_bold", "expected_bold": true, "file_pattern": "*.csv"}),
    ] {
        case.verifiers.clear();
        case.verifier("spreadsheet_verifier", values);
        assert_eq!(case.result().await.status, VerifierStatus::Error);
    }
}
