//! Evals on databases, JSON files and sheets.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;
use testkit::documents::{database, sales_before_and_after};

fn sales() -> Case {
    let case = Case::new("done");
    let (before, after) = sales_before_and_after();
    case.worlds(&[("data/sales.db", &before)], &[("data/sales.db", &after)]);
    case
}

async fn one(case: &mut Case, eval: &str, values: Value) -> VerifierResult {
    case.verifiers.clear();
    case.verifier(eval, values);
    case.result().await
}

#[tokio::test]
async fn sql_validator_compares_a_cell_nothing_or_the_number_of_rows() {
    let mut case = sales();
    for (sql, expected, score) in [
        ("select count(*) from deals", json!("3"), 1.0),
        ("select count(*) from deals", json!(2), 0.0),
        ("select worth from deals where id = 2", json!("25.0"), 1.0),
        ("select name from deals where id = 3", json!("Core"), 1.0),
        ("select name from deals where id = 9", json!("None"), 1.0),
        ("select id, name from deals", json!(3), 1.0),
    ] {
        let values = json!({"sql_query": sql, "expected_result": expected});
        let result = one(&mut case, "sql_validator", values).await;
        assert_eq!(result.status, VerifierStatus::Ok, "{result:?}");
        assert_eq!(result.score, score, "{sql} {expected}: {result:?}");
        assert_eq!(result.verifier_result_values["query_type"], "scalar");
    }
    for db in [
        "filesystem_data_sales",
        "filesystem/data/sales.db",
        "sales.db",
        "main",
        "",
    ] {
        let values = json!({"sql_query": "select 1", "expected_result": "1", "db_alias": db});
        assert_eq!(
            one(&mut case, "sql_validator", values).await.score,
            1.0,
            "{db}"
        );
    }
    for (sql, db, part) in [
        ("select * from absent", "", "no such table"),
        ("select 1", "other.db", "there are filesystem_data_sales"),
        ("delete from deals", "", "readonly"),
        ("attach 'x.db' as x", "", "too many attached"),
    ] {
        let values = json!({"sql_query": sql, "expected_result": "1", "db_alias": db});
        let result = one(&mut case, "sql_validator", values).await;
        assert_eq!(result.status, VerifierStatus::Error, "{sql}");
        assert!(result.message.contains(part), "{}", result.message);
    }
}

#[tokio::test]
async fn databases_of_applications_and_by_their_signature_have_aliases() {
    let database = |n: u32| {
        database(&format!(
            "create table t (n int); insert into t values ({n});"
        ))
    };
    let mut case = Case::new("");
    case.worlds(
        &[],
        &[
            (".apps_data/crm/data.db", &database(1)),
            ("old/store.sqlite3", &database(2)),
        ],
    );
    for (db, n) in [
        (".apps_data_crm_data", 1),
        (".apps_data/crm/data.db", 1),
        ("crm/data.db", 1),
        ("store.sqlite3", 2),
    ] {
        let values = json!({"sql_query": "select n from t", "expected_result": n, "db_alias": db});
        let result = one(&mut case, "sql_validator", values).await;
        assert_eq!(result.score, 1.0, "{db}: {result:?}");
        assert_eq!(result.verifier_result_values["row_count"], 1);
        assert_eq!(result.verifier_result_values["actual_result"], n);
    }
    // Two databases: nothing is guessed.
    let values = json!({"sql_query": "select n from t", "expected_result": 1});
    assert_eq!(
        one(&mut case, "sql_validator", values).await.status,
        VerifierStatus::Error
    );
}

#[tokio::test]
async fn sql_dumps_are_databases_too() {
    let mut case = Case::new("");
    let dump = b"CREATE TABLE `t` (`id` int AUTO_INCREMENT, PRIMARY KEY (`id`)) ENGINE=InnoDB;\nINSERT INTO `t` VALUES (4),(5);";
    case.worlds(&[], &[(".apps_data/erp/dump.sql", dump)]);
    let values = json!({"sql_query": "select sum(id) from t", "expected_result": 9, "db_alias": "apps_data_erp_dump"});
    let result = one(&mut case, "sql_validator", values).await;
    assert_eq!(result.score, 1.0, "{result:?}");
}

#[tokio::test]
async fn sql_field_check_takes_parameters_and_compares_by_type() {
    let mut case = sales();
    for (values, score) in [
        (
            json!({"sql": "select worth from deals where name = :name", "params": {"name": "Bolt"}, "result_type": "decimal", "expected_value": "25"}),
            1.0,
        ),
        (
            json!({"sql": "select name from deals where id = :id", "params": {"id": 3}, "expected_value": " core "}),
            1.0,
        ),
        (
            json!({"sql": "select name from deals where id = :id", "params": {"id": 3}, "expected_value": "core", "case_sensitive": true}),
            0.0,
        ),
        (
            json!({"sql": "select * from deals where worth > 9", "result_type": "row_count", "expected_value": 2}),
            1.0,
        ),
        (
            json!({"sql": "select * from deals where id = 9", "result_type": "exists", "expected_value": false}),
            1.0,
        ),
        (
            json!({"sql": "select worth from deals where id = 2", "snapshot": "initial", "result_type": "decimal", "expected_value": 20}),
            1.0,
        ),
        (
            json!({"sql": "select worth from deals where id = 2", "snapshot": "both", "expected_value": "changed"}),
            1.0,
        ),
        (
            json!({"sql": "select worth from deals where id = 1", "snapshot": "both", "expected_value": "unchanged"}),
            1.0,
        ),
        (
            json!({"sql": "select worth from deals where id = 9", "expected_value": "None"}),
            0.0,
        ),
    ] {
        let result = one(&mut case, "sql_field_check", values.clone()).await;
        assert_eq!(result.score, score, "{values}: {result:?}");
        assert_eq!(result.status, VerifierStatus::Ok);
        assert_eq!(result.verifier_result_values["matches"], score > 0.0);
    }
}

#[tokio::test]
async fn json_field_check_finds_values_by_path() {
    let mut case = Case::new("");
    case.worlds(
        &[(
            "cfg/app.json",
            br#"{"jobs": [{"name": "build", "on": true}]}"#,
        )],
        &[
            (
                "cfg/app.json",
                br#"{"jobs": [{"name": "build", "on": true}, {"name": "Test", "n": 3}]}"#,
            ),
            ("cfg/broken.json", b"{"),
        ],
    );
    for (values, score) in [
        (
            json!({"file": "app.json", "path": "jobs[1].name", "expected_value": "test"}),
            1.0,
        ),
        (
            json!({"file": "cfg/*.json", "path": "/jobs/1/n", "result_type": "integer", "expected_value": "3"}),
            1.0,
        ),
        (
            json!({"file": "app.json", "path": "jobs", "result_type": "row_count", "expected_value": 2}),
            1.0,
        ),
        (
            json!({"file": "app.json", "path": "jobs[0].on", "result_type": "boolean", "expected_value": "yes"}),
            1.0,
        ),
        (
            json!({"file": "app.json", "path": "jobs[5]", "result_type": "exists", "expected_value": false}),
            1.0,
        ),
        (
            json!({"file": "app.json", "path": "jobs", "snapshot": "both", "expected_value": "changed"}),
            1.0,
        ),
        (
            json!({"file": "broken.json", "path": "jobs", "expected_value": "x"}),
            0.0,
        ),
        (
            json!({"file": "none.json", "path": "jobs", "expected_value": "x"}),
            0.0,
        ),
    ] {
        let result = one(&mut case, "json_field_check", values.clone()).await;
        assert_eq!(result.score, score, "{values}: {result:?}");
        assert_eq!(result.status, VerifierStatus::Ok);
    }
}

#[tokio::test]
async fn spreadsheet_verifier_reads_csv_cells() {
    let mut case = Case::new("");
    case.worlds(&[], &[("t.csv", b"name,total\nAcme,\"1,250\"\nBolt,007\n")]);
    for (values, score) in [
        (
            json!({"cell_reference": "B2", "check_type": "value_equals_number", "expected_value": 1250}),
            1.0,
        ),
        (
            json!({"cell_reference": "b3", "check_type": "value_exact_match", "expected_value": "7"}),
            1.0,
        ),
        (
            json!({"cell_reference": "A1:B1", "check_type": "value_not_empty"}),
            1.0,
        ),
        (
            json!({"cell_reference": "A2:A4", "check_type": "value_not_empty"}),
            0.0,
        ),
        (
            json!({"cell_reference": "Z9", "check_type": "value_is_empty"}),
            1.0,
        ),
        (
            json!({"cell_reference": "Sheet1!A1", "check_type": "value_not_empty"}),
            0.0,
        ),
        (
            json!({"check_type": "value_regex", "expected_value": "^NAME$"}),
            1.0,
        ),
        (
            json!({"file_pattern": "*.xlsx", "check_type": "value_not_empty"}),
            0.0,
        ),
    ] {
        let result = one(&mut case, "spreadsheet_verifier", values.clone()).await;
        assert_eq!(result.score, score, "{values}: {result:?}");
        assert_eq!(result.status, VerifierStatus::Ok);
        assert_eq!(result.message, result.verifier_result_values["reason"]);
    }
    let values = json!({"cell_reference": "A2:A4", "check_type": "value_not_empty"});
    let result = one(
        &mut case,
        "spreadsheet_verifier_difficulty_weighted",
        values,
    )
    .await;
    let described = &result.verifier_result_values;
    assert_eq!(described["value_passed_count"], 2);
    assert_eq!(described["value_total_count"], 3);
    assert_eq!(described["value_checks"][2]["cell_reference"], "A4");
    for check in ["", "formatting_bold", "value_nonsense"] {
        let result = one(
            &mut case,
            "spreadsheet_verifier",
            json!({"check_type": check}),
        )
        .await;
        assert_eq!(result.status, VerifierStatus::Error, "{check}");
    }
}
