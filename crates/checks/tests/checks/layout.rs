//! Pages that are known only after a program has laid a document out.

use formats::grades::VerifierStatus;
use serde_json::{Value, json};

use crate::case::Case;
use testkit::documents::text_pages;

fn case(values: Value) -> Case {
    let mut case = Case::new("Done.");
    let (one, three) = (text_pages(1), text_pages(3));
    case.worlds(&[], &[("a.docx", &one), ("b.docx", &three)]);
    case.verifier("page_count_check", values);
    case
}

#[tokio::test]
async fn pages_of_text_documents_are_counted_after_layout() {
    let name = "`soffice` of libreoffice-writer";
    let folders = std::env::split_paths("/usr/local/bin:/usr/bin:/bin").collect::<Vec<_>>();
    if !testkit::available(
        name,
        folders.iter().any(|folder| folder.join("soffice").exists()),
    ) {
        return;
    }
    let values = json!({"file_pattern": "*.docx", "min_count": 1, "max_count": 3});
    let result = case(values).result().await;
    assert_eq!(result.score, 1.0, "{result:?}");
    let described = &result.verifier_result_values;
    assert_eq!(
        described["files_checked"],
        json!([
            {"file": "filesystem/a.docx", "count": 1, "unit": "pages"},
            {"file": "filesystem/b.docx", "count": 3, "unit": "pages"},
        ])
    );
    let result = case(json!({"file_pattern": "*.docx", "max_count": 2}))
        .result()
        .await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
}

#[tokio::test]
async fn without_the_program_each_file_says_so() {
    let mut case = case(json!({"file_pattern": "*.docx", "min_count": 1}));
    case.program_path = "/nowhere".into();
    let result = case.result().await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
    let files = &result.verifier_result_values["files_checked"];
    for index in [0, 1] {
        let told = files[index]["error"].as_str().unwrap();
        assert!(told.contains("`soffice` is not installed"), "{told}");
    }
}
