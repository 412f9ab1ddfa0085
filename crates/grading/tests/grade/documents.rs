//! Documents and pictures as evidence.

use serde_json::{Value, json};

use crate::case::{Case, stub, verdict};
use testkit::documents::{package, workbook};

fn rows(a3: &str) -> String {
    format!(
        "<row r=\"1\"><c r=\"A1\"><v>2</v></c></row><row r=\"2\"><c r=\"A2\"><v>40</v></c></row><row r=\"3\"><c r=\"A3\">{a3}</c></row>"
    )
}

async fn asked(case: &Case) -> (Value, Value) {
    let judge = stub([verdict(true, "ok")]).await;
    let grades = case.grade_with(&judge).await;
    let values = Value::Object(grades.verifier_results[0].verifier_result_values.clone());
    let content = judge.requests()[0].body["messages"][1]["content"].clone();
    (values, content)
}

/// Pitfall A14: the formula is shown, its value is "not calculated", and a change of the formula
/// alone is a change.
#[tokio::test]
async fn a_changed_formula_is_seen_and_no_stale_value_passes_for_its_result() {
    let mut case = Case::new("x");
    let before = workbook(&[
        ("Sum", &rows("<f>A1+A2</f><v>7</v>")),
        ("Rest", &rows("<v>1</v>")),
    ]);
    let after = workbook(&[
        ("Sum", &rows("<f>A1*A2</f><v>7</v>")),
        ("Rest", &rows("<v>1</v>")),
    ]);
    case.worlds(
        &[("book.xlsx", &before)],
        &[
            ("book.xlsx", &after),
            ("new.xlsx", &workbook(&[("Only", &rows("<f>A1+A2</f>"))])),
        ],
    );
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": "spreadsheet"}),
    );
    let (values, content) = asked(&case).await;
    assert_eq!(
        values["evaluated_artifacts"],
        "new.xlsx (Sheet 1: Only), book.xlsx (Sheet 1: Sum)"
    );
    let text = content.as_str().unwrap();
    assert!(text.contains("{=A1+A2; not calculated}"), "{text}");
    assert!(text.contains("-7 {=A1+A2; stored value, not calculated here}\n+7 {=A1*A2; stored value, not calculated here}"), "{text}");
    assert!(text.contains("type: sheet\nchange: modified\npath: \"book.xlsx\"\ntitle: \"Sum\"\nposition: 1\noriginal position: 1\n"), "{text}");
    assert!(!text.contains("Rest"), "{text}");
}

/// A document with a tracked change and a comment on it.
fn reviewed(price: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let run = |kind: &str, text: &str| {
        format!("<w:r><w:{kind} xml:space=\"preserve\">{text}</w:{kind}></w:r>")
    };
    let body = format!(
        "<w:document xmlns:w=\"{main}\"><w:body><w:p><w:commentRangeStart w:id=\"0\"/>{}<w:del w:author=\"Ann\">{}</w:del><w:ins w:author=\"Ann\">{}</w:ins><w:commentRangeEnd w:id=\"0\"/></w:p></w:body></w:document>",
        run("t", "The price is "),
        run("delText", "100"),
        run("t", price),
    );
    let comments = format!(
        "<w:comments xmlns:w=\"{main}\"><w:comment w:id=\"0\" w:author=\"Ben\"><w:p>{}</w:p></w:comment></w:comments>",
        run("t", "too much")
    );
    package(&[
        ("word/document.xml", &body),
        ("word/comments.xml", &comments),
    ])
}

#[tokio::test]
async fn tracked_changes_stand_before_comments_and_both_once() {
    let mut case = Case::new("x");
    case.worlds(
        &[("a.docx", &reviewed("110"))],
        &[("a.docx", &reviewed("120"))],
    );
    case.verifier(
        "output_llm",
        json!({"criteria": "The edit is a tracked change"}),
    );
    let (_, content) = asked(&case).await;
    let text = content.as_str().unwrap();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    let order = [
        "BEGIN A1 tracked changes",
        "BEGIN A1 comments",
        "BEGIN A1 diff",
        "BEGIN A1 content",
    ];
    let places: Vec<usize> = order.into_iter().map(at).collect();
    assert!(places.is_sorted(), "{text}");
    let changes = &text[places[0]..places[1]];
    assert!(
        changes.contains("DELETED: \"100\"") && changes.contains("INSERTED: \"120\""),
        "{changes}"
    );
    // The text has the change accepted; the comment is not repeated behind it.
    let content = &text[places[3]..];
    assert!(content.contains("The price is 120"), "{content}");
    assert_eq!(text.matches("too much").count(), 1, "{text}");
    assert!(
        text.contains("is proved by the block `tracked changes` alone"),
        "{text}"
    );
}

#[tokio::test]
async fn a_workbook_that_was_only_saved_again_stays_one_file() {
    let mut case = Case::new("x");
    let same = workbook(&[("Sum", &rows("<v>1</v>"))]);
    let mut saved = same.clone();
    // A comment at the end of the archive: other bytes, same sheets.
    let end = saved.len();
    saved[end - 2..].copy_from_slice(&[1, 0]);
    saved.push(b'x');
    case.worlds(&[("book.xlsx", &same)], &[("book.xlsx", &saved)]);
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (values, content) = asked(&case).await;
    assert_eq!(values["evaluated_artifacts"], "book.xlsx");
    let text = content.as_str().unwrap();
    assert!(
        text.contains("note: \"no sheet or slide has other content\""),
        "{text}"
    );
}

#[tokio::test]
async fn a_document_that_cannot_be_read_is_shown_with_the_reason() {
    let mut case = Case::new("x");
    case.worlds(&[], &[("bad.docx", b"no zip")]);
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (values, content) = asked(&case).await;
    assert_eq!(values["evaluated_artifacts"], "bad.docx");
    let text = content.as_str().unwrap();
    assert!(
        text.contains("note: \"cannot be read after the change: broken docx document: "),
        "{text}"
    );
}

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

#[tokio::test]
async fn pictures_follow_the_text_under_their_labels() {
    let mut case = Case::new("x");
    case.worlds(
        &[("b.jpg", PNG), ("ref.png", PNG)],
        &[("a.png", PNG), ("note.txt", b"n"), ("ref.png", PNG)],
    );
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "artifacts_to_reference": [{"name": "ref.png"}]}),
    );
    let (values, content) = asked(&case).await;
    assert_eq!(values["evaluated_artifacts"], "a.png, note.txt, b.jpg");
    let blocks = content.as_array().unwrap();
    assert_eq!(blocks.len(), 7);
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(
        text.contains("path: \"a.png\"\npicture: [VISUAL_ARTIFACT_1]\n"),
        "{text}"
    );
    assert!(
        text.contains("path: \"b.jpg\"\npicture: [VISUAL_ARTIFACT_2]\n"),
        "{text}"
    );
    assert!(
        text.contains("path: \"ref.png\"\npicture: [VISUAL_ARTIFACT_3]\n"),
        "{text}"
    );
    for (n, pair) in blocks[1..].chunks(2).enumerate() {
        assert_eq!(
            pair[0]["text"],
            format!("IMAGE: [VISUAL_ARTIFACT_{}]", n + 1)
        );
        // By content: the picture in b.jpg is a PNG.
        let url = pair[1]["image_url"]["url"].as_str().unwrap();
        assert!(url.starts_with("data:image/png;base64,"), "{url}");
    }
}

#[tokio::test]
async fn pictures_beyond_the_limits_are_named_and_not_shown() {
    let mut case = Case::new("x");
    case.worlds(&[], &[("a.png", PNG), ("b.png", PNG)]);
    case.options.evidence.pictures = 1;
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (_, content) = asked(&case).await;
    let blocks = content.as_array().unwrap();
    assert_eq!(blocks.len(), 3);
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(
        text.contains("limits `pictures`, `total_picture_bytes`"),
        "{text}"
    );
}

#[tokio::test]
async fn texts_beyond_the_limit_are_named_and_not_shown() {
    let mut case = Case::new("x");
    case.worlds(&[], &[("a.txt", b"0123456789"), ("b.txt", b"0123456789")]);
    case.options.evidence.total_text_bytes = 15;
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (_, content) = asked(&case).await;
    let text = content.as_str().unwrap();
    assert!(text.contains("BEGIN A1 content\n0123456789"), "{text}");
    assert!(!text.contains("BEGIN A2 content"), "{text}");
    assert!(text.contains("limit `total_text_bytes`"), "{text}");
}

/// What changed stands far behind the text that is kept of the file.
#[tokio::test]
async fn a_change_in_the_cut_part_of_a_long_text_is_seen() {
    let mut case = Case::new("x");
    let text = |last: &str| -> Vec<u8> {
        let lines: String = (0..500).map(|n| format!("line {n}\n")).collect();
        format!("{lines}{last}\n").into_bytes()
    };
    case.worlds(&[("log.txt", &text("old"))], &[("log.txt", &text("new"))]);
    case.options.evidence.extract.text_chars = 100;
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (_, content) = asked(&case).await;
    let text = content.as_str().unwrap();
    assert!(
        text.contains("@@ -498,4 +498,4 @@\n line 497\n line 498\n line 499\n-old\n+new"),
        "{text}"
    );
    assert!(text.contains("limit `text_chars`"), "{text}");
}

/// Pages of a PDF are pictures where the settings ask, or a note where the program is missing.
#[tokio::test]
async fn pages_of_a_pdf_are_shown_where_the_settings_ask() {
    let pdf = include_bytes!("../../../extract/tests/fixtures/reportlab.pdf");
    let mut case = Case::new("x");
    case.worlds(&[], &[("report.pdf", pdf)]);
    case.verifier("output_llm", json!({"criteria": "c"}));
    let (_, content) = asked(&case).await;
    assert!(content.is_string(), "{content}");
    case.settings["llm_judge_pdf_pages"] = json!(1);
    let (_, content) = asked(&case).await;
    let path = case.options.program_path.clone();
    if std::env::split_paths(&path).any(|folder| folder.join("pdftoppm").exists()) {
        let blocks = content.as_array().unwrap();
        assert_eq!(blocks.len(), 3);
        let text = blocks[0]["text"].as_str().unwrap();
        assert!(text.contains("picture: [VISUAL_ARTIFACT_1]\n"), "{text}");
        assert!(text.contains("pictures of 1 of 2 pages"), "{text}");
        let url = blocks[2]["image_url"]["url"].as_str().unwrap();
        assert!(url.starts_with("data:image/png;base64,"), "{url}");
    }
    case.options.program_path = "/nowhere".into();
    let (_, content) = asked(&case).await;
    let text = content.as_str().unwrap();
    assert!(text.contains("`pdftoppm` is not installed"), "{text}");
}

#[tokio::test]
async fn one_part_of_a_reference_is_shown_where_it_is_asked_for() {
    let mut case = Case::new("x");
    let cell = |text: &str| {
        format!("<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>{text}</t></is></c></row>")
    };
    let book = workbook(&[("First", &cell("alpha")), ("Second", &cell("beta"))]);
    case.worlds(&[("ref.xlsx", &book)], &[("ref.xlsx", &book)]);
    case.verifier(
        "output_llm",
        json!({
            "criteria": "c",
            "artifacts_to_reference": [{"name": "ref.xlsx", "source": "world", "index": 1}],
        }),
    );
    let (_, content) = asked(&case).await;
    let text = content.as_str().unwrap();
    assert!(text.contains("beta") && text.contains("Second"), "{text}");
    assert!(!text.contains("alpha"), "{text}");
}
