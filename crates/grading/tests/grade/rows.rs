//! Rows of databases, SQL dumps and JSON files: shown to judges, looked at by tools.

use formats::grades::VerifierStatus;
use serde_json::{Value, json};
use testkit::openai::Turn;

use crate::case::{Case, stub};
use testkit::documents::database;

fn deals(rows: impl Iterator<Item = (u32, String)>) -> Vec<u8> {
    let values: Vec<String> = rows.map(|(id, name)| format!("({id}, '{name}')")).collect();
    let values = values.join(", ");
    database(&format!(
        "create table deals (id integer primary key, name text);
         create table notes (id integer primary key, text text);
         insert into deals values {values};"
    ))
}

/// Ten deals before; 160 more after, of which the judge is shown 100.
fn many() -> Case {
    let case = Case::new("done");
    let before = deals((1..=10).map(|id| (id, format!("old {id}"))));
    let after = deals((1..=170).map(|id| {
        let name = if id <= 10 { "old" } else { "new" };
        (id, format!("{name} {id}"))
    }));
    case.worlds(
        &[(".apps_data/crm/data.db", &before)],
        &[(".apps_data/crm/data.db", &after)],
    );
    case
}

fn submit(result: Value) -> Turn {
    Turn::calls(
        "submit_verdict",
        json!({"result": result, "reason": "seen"}),
    )
}

/// What a tool answered, as JSON, by the position of the message.
fn answers(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap())
        .collect()
}

#[tokio::test]
async fn a_judge_looks_at_rows_by_tools_and_submits_a_verdict() {
    for eval in ["db_diff_llm_tools", "db_diff_llm_difficulty_weighted"] {
        let mut case = many();
        case.verifier(eval, json!({"criteria": "170 was added"}));
        let judge = stub([
            Turn::calls("inspect_table", json!({"table_name": "deals"}))
                .and_calls("inspect_table", json!({"table_name": "users"})),
            Turn::calls(
                "get_rows",
                json!({"table_name": "deals", "change_type": "added", "offset": 159, "limit": 5}),
            ),
            Turn::calls(
                "search_rows",
                json!({"table_name": "deals", "change_type": "added", "contains": "NEW 17"}),
            ),
            Turn::calls(
                "run_sql",
                json!({"database": ".apps_data/crm/data.db", "version": "before", "sql": "select count(*) from deals"}),
            )
            .and_calls(
                "run_sql",
                json!({"database": ".apps_data/crm/data.db", "version": "after", "sql": "delete from deals"}),
            ),
            submit(json!(1)),
        ])
        .await;
        let grades = case.grade_with(&judge).await;
        let result = &grades.verifier_results[0];
        assert_eq!(result.score, 1.0, "{result:?}");
        let values = &result.verifier_result_values;
        assert_eq!(values["judge_grade"], "pass");
        assert_eq!(values["grade_rationale"], "seen");
        assert_eq!(values["judge_usage"]["calls"], 5);
        let summary = values["db_diff_summary"].as_str().unwrap();
        assert!(summary.contains("+160 -0 ~0"), "{summary}");
        assert!(!summary.contains("new 11"), "{summary}");
        let requests = judge.requests();
        let tools = requests[0].body["tools"].as_array().unwrap().len();
        assert_eq!(tools, 5);
        let answers = answers(&requests[4].body);
        assert_eq!(answers[0]["rows_added_count"], 160);
        assert_eq!(answers[0]["columns"], json!(["id", "name"]));
        assert_eq!(
            answers[1]["available_tables_with_changes"],
            json!(["deals"])
        );
        assert_eq!(
            answers[2]["rows"],
            json!([{"id": 170, "name": "new 170"}]),
            "rows beyond the hundred that are shown"
        );
        assert_eq!(answers[2]["total"], 160);
        assert_eq!(answers[3]["returned"], 2, "17 and 170: {}", answers[3]);
        assert_eq!(answers[3]["searched_complete_data"], true);
        assert_eq!(answers[4]["rows"], json!([[10]]));
        assert!(answers[5]["error"].as_str().unwrap().contains("readonly"));
    }
}

#[tokio::test]
async fn a_judge_that_never_submits_gives_an_error_and_no_fail() {
    let mut case = many();
    case.verifier("db_diff_llm_tools", json!({"criteria": "c"}));
    case.options.judge.attempts = 2;
    let judge = stub([Turn::says("I think it is fine."), submit(json!("perhaps"))]).await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    assert_eq!(result.status, VerifierStatus::Error, "{result:?}");
    assert_eq!(result.verifier_result_values["error_kind"], "judge_output");
    let replies = result.verifier_result_values["judge_replies"].as_array();
    assert_eq!(replies.map(Vec::len), Some(2));
    // The first reply was sent back with what is wrong with it.
    let body = judge.requests()[1].body.to_string();
    assert!(body.contains("submit_verdict") && body.contains("cannot be used"));
}

#[tokio::test]
async fn a_verdict_as_text_counts_and_conversations_are_cached_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = many();
    case.options.judge.cache = Some(folder.path().to_owned());
    case.verifier("db_diff_llm_tools", json!({"criteria": "c"}));
    let judge = stub([
        Turn::calls("inspect_table", json!({"table_name": "deals"})),
        Turn::says(r#"[{"result": 0, "reason": "no"}]"#),
    ])
    .await;
    let first = case.grade_with(&judge).await;
    assert_eq!(first.verifier_results[0].score, 0.0);
    let again = case.grade_with(&judge).await;
    let values = &again.verifier_results[0].verifier_result_values;
    assert_eq!(values["judge_usage"]["calls"], 0);
    assert_eq!(values["judge_usage"]["cached_answers"], 2);
    assert_eq!(judge.requests().len(), 2);
}

/// What the judge is shown of changed rows.
async fn shown(case: &mut Case, config: Value) -> String {
    case.verifiers.clear();
    case.verifier("db_diff_llm", json!({"criteria": "c"}));
    case.configs[0]["eval_config_values"] = config;
    let judge = stub([Turn::says(r#"{"result": 1, "reason": "r"}"#)]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(
        grades.verifier_results[0].status,
        VerifierStatus::Ok,
        "{:?}",
        grades.verifier_results[0]
    );
    let summary = &grades.verifier_results[0].verifier_result_values["db_diff_summary"];
    summary.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn dumps_and_json_files_are_compared_by_rows_where_the_settings_say_so() {
    let mut case = Case::new("done");
    let (old, new) = (
        database("create table t (id integer primary key); insert into t values (1);"),
        database("create table t (id integer primary key); insert into t values (2);"),
    );
    let dump = |stage: &str| {
        format!(
            "CREATE TABLE public.deals (id int, stage text);\nCOPY public.deals (id, stage) FROM stdin;\n1\tnew\n2\t{stage}\n\\.\n"
        )
    };
    let users = |name: &str| {
        json!({"users": [{"sku": "a", "name": name}, {"sku": "b", "name": "Bo"}]}).to_string()
    };
    case.worlds(
        &[
            ("a.db", &old),
            ("db/erp_dump.sql", dump("new").as_bytes()),
            ("users.json", users("Al").as_bytes()),
            ("package.json", b"{\"version\": 1}"),
        ],
        &[
            ("a.db", &new),
            ("db/erp_dump.sql", dump("won").as_bytes()),
            ("users.json", users("Alan").as_bytes()),
            ("package.json", b"{\"version\": 2}"),
        ],
    );
    // The default: all kinds.
    let all = shown(&mut case, json!({"json_id_field": "sku"})).await;
    for line in [
        r#"~ {"id":2,"stage":"new"} -> {"id":2,"stage":"won"}"#,
        r#"~ {"sku":"a","name":"Al"} -> {"sku":"a","name":"Alan"}"#,
        r#"+ {"id":2}"#,
    ] {
        assert!(all.contains(line), "{line} in {all}");
    }
    assert!(!all.contains("package.json"), "{all}");
    // Without the field a row of another name is another row.
    let by_name = shown(&mut case, json!({})).await;
    assert!(
        by_name.contains(r#"+ {"sku":"a","name":"Alan"}"#)
            && by_name.contains(r#"- {"sku":"a","name":"Al"}"#),
        "{by_name}"
    );
    // The first kind alone.
    let first = shown(&mut case, json!({"diff_all_types": "false"})).await;
    assert!(
        first.contains(r#"+ {"id":2}"#) && !first.contains("users"),
        "{first}"
    );
    // Without databases the dump is the first kind.
    case.worlds(
        &[
            ("erp_dump.sql", dump("new").as_bytes()),
            ("users.json", users("Al").as_bytes()),
        ],
        &[
            ("erp_dump.sql", dump("won").as_bytes()),
            ("users.json", users("B").as_bytes()),
        ],
    );
    let dumps = shown(&mut case, json!({"diff_all_types": false})).await;
    assert!(dumps.contains("won") && !dumps.contains("users"), "{dumps}");
}

#[tokio::test]
async fn a_database_target_can_be_one_database() {
    let (old, new) = (
        deals([(1, "a".to_owned())].into_iter()),
        deals([(1, "b".to_owned())].into_iter()),
    );
    let mut case = Case::new("done");
    case.worlds(
        &[("x/one.db", &old), ("x/two.db", &old)],
        &[("x/one.db", &new), ("x/two.db", &new)],
    );
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": "Database Files (.db)", "expected_output_files": ["One.db"]}),
    );
    let judge = stub([submit(json!(1))]).await;
    let grades = case.grade_with(&judge).await;
    let summary = &grades.verifier_results[0].verifier_result_values["db_diff_summary"];
    let summary = summary.as_str().unwrap();
    assert!(
        summary.contains("one.db") && !summary.contains("two.db"),
        "{summary}"
    );
}
