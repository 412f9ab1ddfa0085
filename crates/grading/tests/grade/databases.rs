//! Databases as evidence.

use formats::grades::VerifierStatus;
use serde_json::json;
use testkit::openai::Turn;

use crate::case::{Case, stub, verdict};
use testkit::documents::{database, sales_before_and_after};

/// §4.5: the judge sees the rows that changed, not the bytes.
#[tokio::test]
async fn a_judge_sees_the_changed_rows_of_a_database() {
    let schema = "CREATE TABLE deals (id INTEGER PRIMARY KEY, stage);";
    let before = database(&format!(
        "{schema} INSERT INTO deals VALUES (1,'new'),(2,'new');"
    ));
    let after = database(&format!(
        "{schema} INSERT INTO deals VALUES (1,'new'),(2,'won'),(3,'new');"
    ));
    let mut case = Case::new("x");
    case.worlds(&[("crm.db", &before)], &[("crm.db", &after)]);
    case.verifier("output_llm", json!({"criteria": "c"}));
    let judge = stub([verdict(true, "ok")]).await;
    let grades = case.grade_with(&judge).await;
    let values = &grades.verifier_results[0].verifier_result_values;
    assert_eq!(values["evaluated_artifacts"], "crm.db");
    let content = judge.requests()[0].body["messages"][1]["content"].clone();
    let text = content.as_str().unwrap();
    for line in [
        "## deals: +1 -0 ~1",
        r#"+ {"id":3,"stage":"new"}"#,
        r#"~ {"id":2,"stage":"new"} -> {"id":2,"stage":"won"}"#,
    ] {
        assert!(text.contains(line), "{text}");
    }
}

fn sales() -> Case {
    let case = Case::new("done");
    let (before, after) = sales_before_and_after();
    case.worlds(&[("data/sales.db", &before)], &[("data/sales.db", &after)]);
    case
}

#[tokio::test]
async fn db_diff_llm_shows_the_judge_exact_counts_and_rows() {
    for (eval, shows_rows) in [
        ("db_diff_llm", true),
        // These have the rows shown by tools.
        ("output_llm", false),
        ("output_llm_lite", false),
    ] {
        let mut case = sales();
        case.verifier(
            eval,
            json!({"criteria": "Bolt is worth 25", "expected_file_type": "Database Files (.db)"}),
        );
        let judge = stub([Turn::says(r#"{"result": 1, "reason": "row 2"}"#)]).await;
        let grades = case.grade_with(&judge).await;
        let result = &grades.verifier_results[0];
        assert_eq!(result.score, 1.0, "{result:?}");
        let values = &result.verifier_result_values;
        assert_eq!(values["judge_grade"], "pass");
        assert_eq!(values["grade_rationale"], "row 2");
        let summary = values["db_diff_summary"].as_str().unwrap();
        assert!(summary.contains("+1 -0 ~1"), "{summary}");
        assert_eq!(
            summary.contains(r#"+ {"id":3,"name":"Core","worth":5.0}"#),
            shows_rows,
            "{summary}"
        );
        let text = judge.requests()[0].body["messages"][1]["content"].to_string();
        assert_eq!(text.contains("Core"), shows_rows);
    }
    // No row changed: no judge.
    let mut case = Case::new("");
    let (same, _) = sales_before_and_after();
    case.worlds(&[("a.db", &same)], &[("a.db", &same)]);
    case.verifier("db_diff_llm", json!({"criteria": "c"}));
    let result = case.result().await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
    assert_eq!(result.verifier_result_values["judge_grade"], "fail");
}
