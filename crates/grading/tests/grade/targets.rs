//! What each grading target lets through (`spec/grading.md` §5.2).

use serde_json::{Value, json};

use crate::case::{Case, stub, verdict};

/// Every name of the table and its short forms, with the extensions that it means.
const TARGETS: [(&[&str], &[&str]); 11] = [
    (
        &["Word Documents (.docx, .doc, .odt)", "docx", "word"],
        &["doc", "docx", "odt"],
    ),
    (&["Text Files (.txt)", "txt", "text"], &["txt"]),
    (&["PDF Documents (.pdf)", "pdf"], &["pdf"]),
    (
        &["Spreadsheets (.xlsx, .xls, .xlsm, .ods)", "spreadsheet"],
        &["ods", "xls", "xlsm", "xlsx"],
    ),
    (
        &["Presentations (.pptx, .ppt, .odp)", "presentation"],
        &["odp", "ppt", "pptx"],
    ),
    (&["Python Files (.py)", "python"], &["py"]),
    (
        &["JavaScript/TypeScript (.js, .ts, .jsx, .tsx)", "typescript"],
        &["js", "jsx", "ts", "tsx"],
    ),
    (&["Markdown (.md)", "markdown"], &["md"]),
    (
        &["JSON/YAML (.json, .yaml, .yml)", "yaml"],
        &["json", "yaml", "yml"],
    ),
    (
        &["Images (.png, .jpg, .jpeg, .webp)", "image"],
        &["jpeg", "jpg", "png", "webp"],
    ),
    (&["csv"], &["csv"]),
];

async fn shown(case: &mut Case, target: Value) -> (String, String) {
    case.verifiers.clear();
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": target}),
    );
    let judge = stub([verdict(true, "ok")]).await;
    let grades = case.grade_with(&judge).await;
    let values = &grades.verifier_results[0].verifier_result_values;
    let prompt = judge.requests()[0].body["messages"][1]["content"].to_string();
    let files = values["evaluated_artifacts"].as_str().unwrap().to_owned();
    (files, prompt)
}

#[tokio::test]
async fn every_target_has_its_extensions() {
    let mut names: Vec<String> = TARGETS
        .iter()
        .flat_map(|(_, extensions)| extensions.iter().map(|extension| format!("f.{extension}")))
        .collect();
    names.push("f.zip".to_owned());
    names.sort();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), b"x" as &[u8]))
        .collect();
    let mut case = Case::new("The answer.");
    case.worlds(&[], &files);
    for (words, extensions) in TARGETS {
        let expected: Vec<String> = extensions.iter().map(|e| format!("f.{e}")).collect();
        for word in words {
            let (files, prompt) = shown(&mut case, json!(word)).await;
            assert_eq!(files, expected.join(", "), "{word}");
            // A target of files has nothing to do with what was said.
            assert!(!prompt.contains("The answer."), "{word}");
        }
    }
    // Everything, also by a name that is not known, and a list of one's own.
    for target in [
        json!("All output (modified files and final message in console)"),
        json!("all"),
        json!(null),
        json!("Sculptures"),
    ] {
        let (files, prompt) = shown(&mut case, target.clone()).await;
        assert_eq!(files, names.join(", "), "{target}");
        assert!(prompt.contains("The answer."), "{target}");
    }
    let (files, _) = shown(&mut case, json!([".ZIP", "md"])).await;
    assert_eq!(files, "f.md, f.zip");
}
