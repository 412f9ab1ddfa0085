//! Databases compared with a correct end state.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;
use testkit::documents::database;

async fn golden(case: &mut Case, values: Value) -> VerifierResult {
    case.verifiers.clear();
    case.verifier("golden_db_match", values);
    case.result().await
}

#[tokio::test]
async fn databases_are_compared_with_the_best_correct_end_state() {
    let world = |stage: &str, at: u32, log: u32| {
        database(&format!(
            "create table deals (id integer primary key, stage text, updated_at int);
             create table people (id integer primary key, name text);
             create table log (n int);
             insert into deals values (1, '{stage}', {at}); insert into people values (1, 'Ada');
             insert into log values ({log});"
        ))
    };
    let mut case = Case::new("done");
    let after = world("won", 7, 1);
    case.worlds(&[], &[("crm.db", &after)]);
    let result = golden(&mut case, json!({})).await;
    assert_eq!(result.status, VerifierStatus::Error);
    assert!(
        result.message.contains("--golden-snapshot"),
        "{}",
        result.message
    );

    case.golden(&[("crm.db", &world("lost", 7, 1))]);
    case.golden(&[("crm.db", &world("won", 9, 2))]);
    // The second end state differs in `updated_at` and in `log`.
    let strict = golden(&mut case, json!({})).await;
    assert_eq!(
        (strict.status, strict.score),
        (VerifierStatus::Ok, 0.0),
        "{strict:?}"
    );
    let free = json!({"ignore_tables": ["LOG"], "ignore_columns": ["deals.updated_at"]});
    let result = golden(&mut case, free).await;
    assert_eq!(result.score, 1.0, "{result:?}");
    assert_eq!(result.verifier_result_values["golden_snapshot"], 2);
    assert_eq!(result.verifier_result_values["tables"], 2);
    // The first differs in one of three tables: `deals`.
    let partial = golden(&mut case, json!({"partial": true})).await;
    assert!((partial.score - 2.0 / 3.0).abs() < 1e-12, "{partial:?}");
    assert_eq!(partial.verifier_result_values["golden_snapshot"], 1);
    // Another stage is a difference, whatever else is ignored.
    case.worlds(&[], &[("crm.db", &world("new", 7, 1))]);
    let wrong = golden(
        &mut case,
        json!({"ignore_columns": ["updated_at"], "ignore_tables": ["log"]}),
    )
    .await;
    assert_eq!(wrong.score, 0.0, "{wrong:?}");
}
