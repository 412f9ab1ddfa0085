//! Documents that a judge sees as pictures of their pages. Programs of our own stand in the place of
//! LibreOffice and `pdftoppm`, but for the last test.

use grading::{GradingPlan, IsolationRule, Severity, validate};
use llm_client::Models;
use serde_json::{Value, json};

use crate::case::{Case, stub, verdict};

const DOCX: &[u8] = include_bytes!("../../../extract/tests/fixtures/python-docx.docx");
const PPTX: &[u8] = include_bytes!("../../../extract/tests/fixtures/python-pptx.pptx");
const PDF: &[u8] = include_bytes!("../../../extract/tests/fixtures/reportlab.pdf");
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// Makes a PDF of everything but of a document in which the word `broken` stands, and writes down
/// that it was asked.
const SOFFICE: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        --convert-to) to=${2%%:*}; filter=$2; shift ;;
        --outdir) out=$2; shift ;;
    esac
    in=$1; shift
done
case "$in" in *.txt) ;; *) echo x >> "$(dirname "$0")/asked" ;; esac
grep -q broken "$in" && exit 0
mkdir -p "$out"
printf '%%PDF-' > "$out/in.$to"
"#;

/// Draws 25 pages of everything.
const PDFTOPPM: &str = r#"#!/bin/sh
last=$5; prefix=$9; n=1
while [ $n -le 25 ] && [ $n -le $last ]; do
    cp "$(dirname "$0")/page.png" "$(printf '%s-%02d.png' "$prefix" $n)"
    n=$((n + 1))
done
"#;

/// Puts the programs into a folder of the case and leads to it.
fn with_programs(case: &mut Case) {
    let folder = case.path("programs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("page.png"), PNG).unwrap();
    testkit::script(&folder.join("soffice"), SOFFICE);
    testkit::script(&folder.join("pdftoppm"), PDFTOPPM);
    let mut path = folder.into_os_string();
    path.push(":/usr/bin:/bin");
    case.options.program_path = path;
    // So that they can write down that they were asked.
    case.options.isolation = IsolationRule::Off;
}

fn conversions(case: &Case) -> usize {
    let asked = std::fs::read_to_string(case.path("programs/asked"));
    asked.unwrap_or_default().lines().count()
}

/// The values of the first result, the text of the question and the labels of its pictures.
async fn asked(case: &Case) -> (Value, String, Vec<String>) {
    let judge = stub(case.verifiers.iter().map(|_| verdict(true, "ok"))).await;
    let grades = case.grade_with(&judge).await;
    let values = Value::Object(grades.verifier_results[0].verifier_result_values.clone());
    let requests = judge.requests();
    assert!(!requests.is_empty(), "{grades:?}");
    let (text, labels) = shown(&requests[0].body["messages"][1]["content"]);
    (values, text, labels)
}

fn shown(content: &Value) -> (String, Vec<String>) {
    let Some(blocks) = content.as_array() else {
        return (content.as_str().unwrap().to_owned(), Vec::new());
    };
    let labels = blocks[1..].chunks(2).map(|pair| {
        let url = pair[1]["image_url"]["url"].as_str().unwrap();
        assert!(url.starts_with("data:image/png;base64,"), "{url}");
        let label = pair[0]["text"].as_str().unwrap();
        label.strip_prefix("IMAGE: ").unwrap().to_owned()
    });
    (
        blocks[0]["text"].as_str().unwrap().to_owned(),
        labels.collect(),
    )
}

fn numbered(label: &str, from: usize, to: usize) -> Vec<String> {
    (from..=to).map(|n| format!("[{label}_{n}]")).collect()
}

#[tokio::test]
async fn criterion_output_verifier_shows_ten_pages_beside_the_text() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    case.worlds(&[], &[("report.docx", DOCX), ("note.txt", b"words")]);
    let values = json!({"description": "is tidy", "convert_to_images": true});
    case.verifier("criterion_output_verifier", values);
    let (values, text, labels) = asked(&case).await;
    assert_eq!(labels, numbered("CONVERTED_IMAGE", 1, 10));
    for page in 1..=10 {
        let line = format!("\npicture: [CONVERTED_IMAGE_{page}] page {page}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(
        text.contains("note: \"only its first 10 pages are shown as pictures\""),
        "{text}"
    );
    assert!(text.contains("First paragraph"), "{text}");
    assert_eq!(
        values["document_pictures"],
        json!({"pages": 10, "not_shown": []})
    );
    // Without the setting nothing is drawn.
    case.verifiers[0]["verifier_values"]["convert_to_images"] = json!(false);
    let (values, text, labels) = asked(&case).await;
    assert_eq!(labels, Vec::<String>::new());
    assert!(!text.contains("picture:"));
    assert_eq!(values.get("document_pictures"), None);
    assert_eq!(conversions(&case), 1);
}

#[tokio::test]
async fn multi_representation_shows_twenty_pages_of_each_file_in_its_place() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    // Room for all: the context of the judge that is named otherwise holds fewer pictures.
    case.settings["llm_judge_model"] = json!("openai/gpt-4.1");
    case.worlds(
        &[("gone.docx", DOCX), ("ref.docx", DOCX)],
        &[
            ("a.png", PNG),
            ("deck.pptx", PPTX),
            ("ref.docx", DOCX),
            ("x.pdf", PDF),
        ],
    );
    let values = json!({
        "criteria": "is tidy", "enable_visual_grading": true,
        "artifacts_to_reference": [
            {"name": "/ref.docx", "transformations": ["docx_to_images"]},
            {"name": "none.docx", "transformations": ["docx_to_images"]},
        ],
    });
    case.verifier("output_llm_multi_representation", values);
    let (values, text, labels) = asked(&case).await;
    let mut expected = numbered("VISUAL_ARTIFACT", 1, 1);
    expected.extend(numbered("ARTIFACT_SCREENSHOT", 1, 50));
    assert_eq!(labels, expected);
    // The slides are artifacts of their own; the first of them has the pages of the deck.
    let deck = text.find("path: \"deck.pptx\"").unwrap();
    let first = text.find("[ARTIFACT_SCREENSHOT_1] page 1").unwrap();
    let last = text.find("[ARTIFACT_SCREENSHOT_20] page 20").unwrap();
    let pdf = text.find("path: \"x.pdf\"").unwrap();
    assert!(deck < first && first < last && last < pdf, "{text}");
    assert!(
        text.contains("the pictures show the pages of the whole file"),
        "{text}"
    );
    assert!(pdf < text.find("[ARTIFACT_SCREENSHOT_21] page 1").unwrap());
    // Ten pages of the reference, from the world before.
    let reference = text.find("path: \"ref.docx\"").unwrap();
    let of_reference = text.find("[ARTIFACT_SCREENSHOT_41] page 1").unwrap();
    assert!(reference < of_reference && of_reference < deck, "{text}");
    assert_eq!(
        values["document_pictures"],
        json!({"pages": 40, "not_shown": []})
    );
    assert_eq!(values["references_missing"], json!(["none.docx"]));
    // Deck and reference: a PDF needs no conversion, what is gone is not drawn.
    assert_eq!(conversions(&case), 2);
}

#[tokio::test]
async fn a_document_is_drawn_once_for_all_verifiers() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    case.worlds(&[], &[("a.docx", DOCX)]);
    let values = json!({"criteria": "is tidy", "enable_visual_grading": true});
    case.verifier("output_llm_multi_representation", values.clone());
    case.verifier("output_llm_multi_representation", values);
    let values = json!({"description": "is tidy", "convert_to_images": true});
    case.verifier("criterion_output_verifier", values);
    let judge = stub((0..3).map(|_| verdict(true, "ok"))).await;
    case.grade_with(&judge).await;
    let mut counts: Vec<usize> = judge
        .requests()
        .iter()
        .map(|request| shown(&request.body["messages"][1]["content"]).1.len())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [10, 20, 20]);
    assert_eq!(conversions(&case), 1);
}

/// 128,000 tokens are the context of a judge that nobody knows; a picture counts 1,500. 45 % of it
/// hold 38 pictures.
#[tokio::test]
async fn pictures_leave_room_for_the_text_and_stay_within_the_limits() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    case.worlds(&[], &[("a.docx", DOCX), ("b.docx", DOCX), ("c.docx", DOCX)]);
    let values = json!({"criteria": "is tidy", "enable_visual_grading": true});
    case.verifier("output_llm_multi_representation", values);
    let (values, text, labels) = asked(&case).await;
    assert_eq!(labels.len(), 38);
    assert!(text.contains("its pages from 19 on are left out"), "{text}");
    let not_shown = &values["document_pictures"]["not_shown"];
    assert_eq!(not_shown[0]["path"], "c.docx", "{values}");
    assert!(text.contains("A3 content"), "{text}");
    // All pictures together, and their bytes, have limits of their own.
    case.options.evidence.pictures = 5;
    assert_eq!(asked(&case).await.2.len(), 5);
    case.options.evidence.pictures = 100;
    case.options.evidence.total_picture_bytes = 4 * PNG.len() as u64 - 1;
    assert_eq!(asked(&case).await.2.len(), 3);
}

#[tokio::test]
async fn a_document_that_cannot_be_drawn_is_named_to_the_judge_and_in_the_result() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    case.worlds(&[], &[("a.docx", b"broken"), ("b.docx", DOCX)]);
    let values = json!({"description": "is tidy", "convert_to_images": true});
    case.verifier("criterion_output_verifier", values);
    let (values, text, labels) = asked(&case).await;
    assert_eq!(labels, numbered("CONVERTED_IMAGE", 1, 10));
    let reason = "`soffice` made no pdf of it (exit status: 0)";
    assert_eq!(
        values["document_pictures"],
        json!({"pages": 10, "not_shown": [{"path": "a.docx", "reason": reason}]})
    );
    assert!(
        text.contains(&format!("it is not shown as pictures: {reason}")),
        "{text}"
    );
}

#[tokio::test]
async fn without_the_programs_nobody_is_paid() {
    for (eval, key, values) in [
        (
            "criterion_output_verifier",
            "convert_to_images",
            json!({"description": "c"}),
        ),
        (
            "output_llm_multi_representation",
            "enable_visual_grading",
            json!({"criteria": "c"}),
        ),
    ] {
        let mut case = Case::new("done");
        case.worlds(&[], &[("a.docx", DOCX)]);
        let mut values = values;
        values[key] = json!(true);
        case.verifier(eval, values);
        case.verifier("output_llm", json!({"criteria": "c"}));
        case.options.program_path = "/nowhere".into();
        let judge = stub([verdict(true, "ok")]).await;
        let grades = case.grade_with(&judge).await;
        let result = &grades.verifier_results[0];
        assert_eq!(
            result.verifier_result_values["error_kind"], "config",
            "{result:?}"
        );
        assert!(
            result
                .message
                .contains(&format!("`{key}`: needs `soffice` (LibreOffice)")),
            "{result:?}"
        );
        assert!(
            result.message.contains("needs `pdftoppm` (poppler-utils)"),
            "{result:?}"
        );
        // The other one was asked.
        assert_eq!(judge.requests().len(), 1);
        assert_eq!(grades.verifier_results[1].score, 1.0);
        assert_eq!(missing(&case), [("soffice", true), ("pdftoppm", true)]);
    }
}

/// Which programs validation misses, and whether as errors.
fn missing(case: &Case) -> Vec<(&'static str, bool)> {
    let input = case.input();
    let plan = GradingPlan {
        program_path: &case.options.program_path,
        ..input.plan()
    };
    let models = Models::new(|name| (name == "OPENAI_API_KEY").then(|| "k".to_owned()));
    let problems = match validate(&case.registry, plan, &models) {
        Ok(validated) => validated.warnings,
        Err(problems) => problems,
    };
    let told = |program: &'static str| {
        let is_about = |rule: &str| rule.contains(&format!("needs `{program}`"));
        let problem = problems.iter().find(|problem| is_about(&problem.rule))?;
        Some((program, problem.severity == Severity::Error))
    };
    ["soffice", "pdftoppm"]
        .into_iter()
        .filter_map(told)
        .collect()
}

#[test]
fn only_the_programs_that_are_needed_are_missed() {
    let both = vec![("soffice", true), ("pdftoppm", true)];
    for (target, references, expected) in [
        ("all", json!([]), both.clone()),
        ("docx", json!([]), both.clone()),
        ("pdf", json!([]), vec![("pdftoppm", true)]),
        ("final_answer", json!([]), Vec::new()),
        ("image", json!([]), Vec::new()),
        (
            "final_answer",
            json!([{"name": "a.pdf", "transformations": ["pdf_to_images"]}]),
            vec![("pdftoppm", true)],
        ),
        (
            "final_answer",
            json!([{"name": "a.xlsx", "transformations": ["xlsx_to_images"]}]),
            both,
        ),
    ] {
        let mut case = Case::new("");
        case.options.program_path = "/nowhere".into();
        let values = json!({
            "criteria": "c", "enable_visual_grading": true, "expected_file_type": target,
            "artifacts_to_reference": references,
        });
        case.verifier("output_llm_multi_representation", values);
        assert_eq!(missing(&case), expected, "{target}");
    }
}

/// Claude's interface, whose stub checks pictures: how many, how large, of which kind.
#[tokio::test]
async fn claude_gets_the_pictures_in_its_own_form() {
    let mut case = Case::new("done");
    with_programs(&mut case);
    case.settings["llm_judge_model"] = json!("anthropic/claude-sonnet-4-5");
    case.worlds(&[], &[("a.docx", DOCX), ("b.pdf", PDF)]);
    let values = json!({"criteria": "is tidy", "enable_visual_grading": true});
    case.verifier("output_llm_multi_representation", values);
    let says = json!({"rationale": "ok", "is_criteria_true": true}).to_string();
    let turns = testkit::anthropic::Script::new([testkit::anthropic::Turn::says(says)]);
    let stub = testkit::anthropic::AnthropicStub::start(turns)
        .await
        .unwrap();
    let models = Models::new(stub.variables());
    let grades = case.grade_by(&models, &|_| {}).await;
    assert_eq!(grades.verifier_results[0].score, 1.0, "{grades:?}");
    let requests = stub.requests();
    let blocks = requests[0].body["messages"][0]["content"]
        .as_array()
        .unwrap();
    let pictures = blocks.iter().filter(|block| block["type"] == "image");
    assert_eq!(pictures.count(), 40);
}

/// The real programs.
#[tokio::test]
async fn a_document_is_laid_out_and_drawn() {
    let mut case = Case::new("done");
    let path = case.options.program_path.clone();
    for name in ["soffice", "pdftoppm"] {
        let found = std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        if !testkit::available(&format!("`{name}`"), found) {
            return;
        }
    }
    case.worlds(&[], &[("a.docx", DOCX), ("b.pdf", PDF)]);
    let values = json!({"description": "is tidy", "convert_to_images": true});
    case.verifier("criterion_output_verifier", values);
    let (values, _, labels) = asked(&case).await;
    assert_eq!(labels, numbered("CONVERTED_IMAGE", 1, 3), "{values}");
    assert_eq!(
        values["document_pictures"],
        json!({"pages": 3, "not_shown": []})
    );
}
