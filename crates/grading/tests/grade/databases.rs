//! Databases as evidence.

use serde_json::json;

use crate::case::{Case, database, stub, verdict};

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
