//! Values of workbooks: kinds of cells, hidden sheets, formulas without a stored result.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;
use testkit::documents::workbook;

async fn cell(case: &mut Case, reference: &str, check: &str, more: Value) -> VerifierResult {
    case.verifiers.clear();
    let mut values = json!({
        "file_pattern": "*.xlsx", "cell_reference": reference, "check_type": format!("value_{check}"),
    });
    let more = more.as_object().unwrap().clone();
    values.as_object_mut().unwrap().extend(more);
    case.verifier("spreadsheet_verifier", values);
    case.result().await
}

/// A cell with a formula and no result.
fn formula(name: &str, text: &str) -> String {
    format!("<c r=\"{name}\"><f>{text}</f></c>")
}

#[tokio::test]
async fn each_kind_of_cell_has_its_text() {
    // 45688 is 31 January 2025; 0.5 shown as a percentage stays 0.5.
    let rows = "<row r=\"1\"><c r=\"A1\" s=\"1\"><v>45688</v></c><c r=\"B1\" t=\"b\"><v>1</v></c>\
        <c r=\"C1\"><v>2.50</v></c><c r=\"D1\" s=\"2\"><v>0.5</v></c><c r=\"E1\" t=\"e\"><v>#DIV/0!</v></c>\
        <c r=\"F1\" t=\"str\"><f>1+1</f><v>stored</v></c><c r=\"G1\"><v>1E3</v></c></row>";
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &workbook(&[("Data", rows)]))]);
    for (reference, text) in [
        ("A1", "2025-01-31 00:00:00"),
        ("B1", "True"),
        ("C1", "2.5"),
        ("D1", "0.5"),
        ("E1", "#DIV/0!"),
        ("F1", "stored"),
        ("G1", "1000"),
        ("H9", ""),
    ] {
        let more = json!({"expected_value": text, "case_sensitive": true});
        let result = cell(&mut case, reference, "exact_match", more).await;
        assert_eq!(result.score, 1.0, "{reference}: {result:?}");
    }
}

#[tokio::test]
async fn formulas_without_a_stored_result_are_calculated() {
    let data = "<row r=\"1\"><c r=\"A1\"><v>2</v></c><c r=\"B1\" t=\"inlineStr\"><is><t>apples</t></is></c></row>\
        <row r=\"2\"><c r=\"A2\"><v>40</v></c><c r=\"B2\" t=\"inlineStr\"><is><t>Pears</t></is></c></row>\
        <row r=\"3\"><c r=\"A3\"><v>0.5</v></c><c r=\"B3\" t=\"inlineStr\"><is><t>apples</t></is></c></row>";
    // What each formula gives, worked out by hand.
    let formulas: [(&str, Value); 36] = [
        ("A1", json!(2)),
        ("'My Data'!$A$2", json!(40)),
        ("my data!A1", json!(null)),
        ("A1+A2*A3", json!(22)),
        ("(A1+A2)*A3", json!(21)),
        ("-A1^2", json!(4)),
        ("2^3^2", json!(64)),
        ("10-4-3", json!(3)),
        ("50%*A2", json!(20)),
        ("1.5E2/A1", json!(75)),
        ("A2/A9", json!("#DIV/0!")),
        ("IFERROR(A2/A9,\"none\")", json!("none")),
        ("SUM(A1:A3,B1:B3,7)", json!(49.5)),
        ("AVERAGE(A1:A3)", json!(42.5 / 3.0)),
        ("MIN(A1:A3)+MAX(A1:A3)", json!(40.5)),
        ("COUNT(A1:B3)&amp;\"/\"&amp;COUNTA(A1:B9)", json!("3/6")),
        ("ROUND(2.345,2)", json!(2.35)),
        ("ROUND(1234.5,-2)", json!(1200)),
        ("IF(A1&gt;1,\"big\",\"small\")", json!("big")),
        ("IF(A9=\"\",\"empty\")", json!("empty")),
        ("AND(A1=2,OR(FALSE,A2&lt;&gt;40))", json!(false)),
        ("NOT(\"a\"=\"A\")", json!(false)),
        ("SUMIF(B1:B3,\"APPLES\",A1:A3)", json!(2.5)),
        ("COUNTIF(A1:A3,\"&gt;=2\")", json!(2)),
        ("SUMPRODUCT(A1:A3,A1:A3)", json!(1604.25)),
        ("MEDIAN(A1:A3)", json!(2)),
        ("MOD(-7,3)", json!(2)),
        ("INT(-1.5)", json!(-2)),
        ("UPPER(TRIM(\"  a  \"\"b\"\" \"))", json!("A \"B\"")),
        ("SUM(C1:C2)", json!(42)),
        ("A9", json!(0)),
        ("SUM('My Data'!A:A)", json!(42.5)),
        ("COUNTA('My Data'!$A:$B)", json!(6)),
        ("SUMIF('My Data'!B:B,\"Pears\",'My Data'!A:A)", json!(40)),
        ("SQRT(-1)", json!("#NUM!")),
        ("LEN(CONCATENATE(\"a\",12,TRUE))", json!(7)),
    ];
    let own: String = formulas
        .iter()
        .enumerate()
        .map(|(at, (text, _))| {
            format!(
                "<row r=\"{}\">{}</row>",
                at + 10,
                formula(&format!("D{}", at + 10), text)
            )
        })
        .collect();
    // The formulas stand below the data of the first sheet; C1 and C2 need other formulas.
    let chained = data
        .replace(
            "</row><row r=\"2\"",
            &format!("{}</row><row r=\"2\"", formula("C1", "A1*1")),
        )
        .replace(
            "</row><row r=\"3\"",
            &format!("{}</row><row r=\"3\"", formula("C2", "C1*20")),
        );
    assert_ne!(chained, data);
    let book = workbook(&[("Sheet", &format!("{chained}{own}")), ("My Data", data)]);
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &book)]);
    for (at, (text, expected)) in formulas.iter().enumerate() {
        let reference = format!("D{}", at + 10);
        if expected.is_null() {
            // A name with a blank needs quotes.
            let result = cell(&mut case, &reference, "not_empty", json!({})).await;
            assert_eq!(result.status, VerifierStatus::Error, "{text}: {result:?}");
            continue;
        }
        let (check, more) = match expected {
            Value::Number(_) => ("equals_number", json!({"expected_value": expected})),
            Value::Bool(truth) => {
                let word = if *truth { "True" } else { "False" };
                ("exact_match", json!({"expected_value": word}))
            }
            _ => (
                "exact_match",
                json!({"expected_value": expected, "case_sensitive": true}),
            ),
        };
        let result = cell(&mut case, &reference, check, more).await;
        assert_eq!(result.score, 1.0, "{text} → {expected}: {result:?}");
    }
}

/// A running balance: each row needs the one above. The last one needs all.
#[tokio::test]
async fn chains_of_formulas_may_be_as_long_as_a_sheet() {
    let mut rows = String::from("<row r=\"1\"><c r=\"A1\"><v>1</v></c></row>");
    for row in 2..=3_000 {
        rows.push_str(&format!(
            "<row r=\"{row}\">{}</row>",
            formula(&format!("A{row}"), &format!("A{}+1", row - 1))
        ));
    }
    rows.push_str(&format!(
        "<row r=\"3001\">{}</row>",
        formula("A3001", "SUM(A1:A3000)")
    ));
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &workbook(&[("S", &rows)]))]);
    // 1 + 2 + … + 3000 = 3000 · 3001 / 2.
    for (reference, expected) in [("A3000", 3_000), ("A3001", 4_501_500)] {
        let more = json!({"expected_value": expected.to_string()});
        let result = cell(&mut case, reference, "exact_match", more).await;
        assert_eq!(result.score, 1.0, "{reference}: {result:?}");
    }
}

/// Nobody knows the result: that is neither a pass nor the agent's fail.
#[tokio::test]
async fn a_formula_that_cannot_be_calculated_is_an_error() {
    let rows = format!(
        "<row r=\"1\">{}{}{}{}<c r=\"E1\" t=\"inlineStr\"><is><t>soon</t></is></c>{}{}</row>",
        formula("A1", "XLOOKUP(1,H1:H9,I1:I9)"),
        formula("B1", "C1+1"),
        formula("C1", "B1+1"),
        formula("D1", "E1+1"),
        formula("F1", "1+"),
        formula("G1", &format!("{}1", "NOT(".repeat(100))),
    );
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &workbook(&[("S", &rows)]))]);
    for (reference, part) in [
        ("A1", "the function `XLOOKUP` is not known"),
        ("B1", "it needs its own result"),
        ("D1", "the text \"soon\""),
        ("F1", "the formula is cut"),
        ("G1", "more than 64 deep"),
    ] {
        for check in ["not_empty", "is_empty"] {
            let result = cell(&mut case, reference, check, json!({})).await;
            assert_eq!(result.status, VerifierStatus::Error, "{result:?}");
            assert_eq!(result.verifier_result_values["error_kind"], "cannot_assess");
            assert!(result.message.contains(part), "{}", result.message);
        }
    }
}

#[tokio::test]
async fn hidden_sheets_do_not_count_as_pages() {
    let row = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row>";
    let book = workbook(&[("Shown", row), ("~Hidden", row), ("Too", row)]);
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &book)]);
    case.verifier(
        "page_count_check",
        json!({"file_pattern": "*.xlsx", "min_count": 2, "max_count": 2}),
    );
    let result = case.result().await;
    assert_eq!(result.score, 1.0, "{result:?}");
    assert_eq!(
        result.verifier_result_values["counts_by_unit"],
        json!({"sheets": 2})
    );
}

#[tokio::test]
async fn parts_are_measured_on_their_own_and_without_what_extraction_adds() {
    let text = |name: &str, words: &str| {
        format!("<c r=\"{name}\" t=\"inlineStr\"><is><t>{words}</t></is></c>")
    };
    // The percentage is listed with its format below the sheet's text; the list does not count.
    let first = format!(
        "<row r=\"1\">{}<c r=\"B1\" s=\"2\"><v>7</v></c></row>",
        text("A1", "alpha beta")
    );
    let second = format!("<row r=\"1\">{}</row>", text("A1", "one two three four"));
    let book = workbook(&[("First", &first), ("Second", &second)]);
    let mut case = Case::new("");
    case.worlds(&[], &[("t.xlsx", &book)]);
    case.verifier(
        "content_length_check",
        json!({
            "comparison_type": "Exactly", "expected_value": 7, "metric_type": "Word Count",
        }),
    );
    let result = case.result().await;
    let values = &result.verifier_result_values;
    assert_eq!(values["per_source_values"], json!([3, 4]), "{result:?}");
    assert_eq!(
        values["evaluated_artifacts"],
        "t.xlsx (index 1), t.xlsx (index 2)"
    );
    assert_eq!(result.score, 1.0);
}
