//! The evals that need no judge, on real worlds. Expected values are worked out by hand from the
//! rules of `spec/grading.md` §6.3.

use formats::grades::VerifierStatus;
use serde_json::{Value, json};

use crate::case::Case;

#[tokio::test]
async fn template_passes() {
    let mut case = Case::new("");
    case.verifier("template", json!({"anything": 1}));
    let result = case.result().await;
    assert_eq!(result.score, 1.0);
    assert!(result.verifier_result_values.is_empty());
    assert_eq!(result.message, "");
}

fn edited() -> Case {
    let case = Case::new("The total is 42.\nDone.");
    case.worlds(
        &[
            ("keep.txt", b"same"),
            ("notes/plan.md", b"one\ntwo\n"),
            ("old/gone.txt", b"bye"),
            ("same_size.dat", b"\0aaa"),
            (".hidden/secret.txt", b"a"),
        ],
        &[
            ("keep.txt", b"same"),
            ("notes/plan.md", b"one\nthree\n"),
            ("reports/2025/Q1.CSV", b"a,b\n1,2\n"),
            ("reports/q2.txt", b"alpha beta gamma"),
            ("same_size.dat", b"\0bbb"),
            (".hidden/secret.txt", b"b"),
            (".apps_data/mail/box.json", b"{\"sent\": 1}"),
        ],
    );
    case
}

async fn file_diff(values: Value) -> (bool, String) {
    let mut case = edited();
    case.verifier("file_diff_check", values);
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Ok, "{}", result.message);
    let values = &result.verifier_result_values;
    assert_eq!(values["passed"], result.score == 1.0);
    assert!(!values["rationale"].as_str().unwrap().is_empty());
    let artifacts = values["evaluated_artifacts"].as_str().unwrap().to_owned();
    (result.score == 1.0, artifacts)
}

#[tokio::test]
async fn file_diff_check_finds_changes_by_pattern_and_kind() {
    for (values, expected) in [
        // Without wildcards: part of the path, in any case; created and modified by default.
        (json!({"file_pattern": " q1.csv "}), "reports/2025/Q1.CSV"),
        (
            json!({"file_pattern": "report"}),
            "reports/2025/Q1.CSV, reports/q2.txt",
        ),
        (json!({"file_pattern": "gone.txt"}), ""),
        (
            json!({"file_pattern": "gone.txt", "change_types": [" Deleted "]}),
            "old/gone.txt",
        ),
        (
            json!({"file_pattern": "plan.md", "change_types": ["created"]}),
            "",
        ),
        (
            json!({"file_pattern": "plan.md", "change_types": null}),
            "notes/plan.md",
        ),
        // With wildcards: from the right, within components, case counts.
        (json!({"file_pattern": "*.csv"}), ""),
        (json!({"file_pattern": "reports/*"}), "reports/q2.txt"),
        (
            json!({"file_pattern": "reports/**/*"}),
            "reports/2025/Q1.CSV, reports/q2.txt",
        ),
        // Same length, other content: a change all the same.
        (json!({"file_pattern": "*.dat"}), "same_size.dat"),
        // Unchanged and hidden files do not exist here; application data does.
        (json!({"file_pattern": "keep.txt"}), ""),
        (json!({"file_pattern": "secret.txt"}), ""),
        (
            json!({"file_pattern": ".apps_data/mail/*.json"}),
            ".apps_data/mail/box.json",
        ),
    ] {
        let (passed, artifacts) = file_diff(values.clone()).await;
        assert_eq!(artifacts, expected, "{values}");
        assert_eq!(passed, !expected.is_empty(), "{values}");
    }
}

#[tokio::test]
async fn an_unusable_pattern_is_an_error_of_the_verifier() {
    let mut case = edited();
    case.verifier("file_diff_check", json!({"file_pattern": "../*.txt"}));
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Error);
    assert_eq!(
        result.message,
        "`file_pattern`: must not contain `..`, got \"../*.txt\""
    );
    assert_eq!(result.verifier_result_values["error_kind"], "config");
}

async fn pattern(values: Value) -> (f64, String, String) {
    let mut case = edited();
    case.verifier("pattern_match_check", values);
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Ok, "{}", result.message);
    let text = |key: &str| {
        result.verifier_result_values[key]
            .as_str()
            .unwrap()
            .to_owned()
    };
    (result.score, text("evaluated_artifacts"), text("rationale"))
}

#[tokio::test]
async fn pattern_match_check_searches_the_answer() {
    for (values, expected) in [
        (json!({"pattern": "TOTAL is \\d+"}), 1.0),
        (json!({"pattern": "TOTAL", "case_sensitive": true}), 0.0),
        // Single-line mode: the dot stops at line breaks, anchors are the ends of the text.
        (json!({"pattern": "42.*Done"}), 0.0),
        (json!({"pattern": "^Done"}), 0.0),
        (json!({"pattern": "(?m)^Done"}), 1.0),
        (json!({"pattern": "(?s)42.*Done"}), 1.0),
        // Look-around and back-references.
        (json!({"pattern": "(?<=is )42(?!\\d)"}), 1.0),
        (json!({"pattern": "(t)o\\1al"}), 1.0),
    ] {
        let (score, artifacts, _) = pattern(values.clone()).await;
        assert_eq!(score, expected, "{values}");
        assert_eq!(artifacts, "final_answer");
    }
}

#[tokio::test]
async fn pattern_match_check_searches_all_files_of_the_final_world() {
    let files = |pattern: &str, file_pattern: &str| json!({"pattern": pattern, "search_target": "files", "file_pattern": file_pattern});
    for (values, expected) in [
        (files("beta", ""), "filesystem/reports/q2.txt"),
        // Unchanged files are searched too.
        (
            files("same|beta", "*.txt"),
            "filesystem/keep.txt, filesystem/reports/q2.txt",
        ),
        (files("three", "plan.md"), "filesystem/notes/plan.md"),
        (files("three", "PLAN.md"), ""),
        (files("1\\t2", "*.CSV"), "filesystem/reports/2025/Q1.CSV"),
        (
            files("sent", ".apps_data/mail/*"),
            ".apps_data/mail/box.json",
        ),
        (files("bye", "*"), ""),
    ] {
        let (score, artifacts, rationale) = pattern(values.clone()).await;
        assert_eq!(artifacts, expected, "{values}");
        assert_eq!(score, f64::from(u8::from(!expected.is_empty())), "{values}");
        assert!(!rationale.is_empty());
    }
    let (_, _, rationale) = pattern(files("x", "*.nothing")).await;
    assert_eq!(rationale, "no file of the final world matches `*.nothing`");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_searched_as_empty_and_named() {
    let mut case = Case::new("");
    case.worlds(&[], &[("bad.docx", b"no package"), ("good.txt", b"42")]);
    for (file_pattern, score) in [("*", 1.0), ("*.docx", 0.0)] {
        case.verifiers.clear();
        case.verifier(
            "pattern_match_check",
            json!({"pattern": "42", "search_target": "files", "file_pattern": file_pattern}),
        );
        let result = case.result().await;
        assert_eq!((result.status, result.score), (VerifierStatus::Ok, score));
        let rationale = result.verifier_result_values["rationale"].as_str().unwrap();
        assert!(
            rationale.contains("`filesystem/bad.docx` was read as empty: "),
            "{rationale}"
        );
    }
}

#[tokio::test]
async fn a_pattern_that_runs_away_is_stopped() {
    let mut case = Case::new(&format!("{}!", "a".repeat(60)));
    case.verifier(
        "pattern_match_check",
        json!({"pattern": "^(a|aa|(?=b)c)+$"}),
    );
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Error);
    assert!(
        result.message.contains("1000000 steps"),
        "{}",
        result.message
    );
}

async fn length(values: Value) -> (f64, Value) {
    let mut case = edited();
    case.verifier("content_length_check", values);
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Ok, "{}", result.message);
    (result.score, Value::Object(result.verifier_result_values))
}

#[tokio::test]
async fn content_length_check_measures_the_answer() {
    // "The total is 42.\nDone." has 5 words, 22 characters, 2 sentences, 2 lines.
    let answer = "Final Answer (agent's text response)";
    for (metric, actual) in [
        ("Word Count", 5),
        ("Character Count", 22),
        ("Character Count (no spaces)", 18),
        ("Sentence Count", 2),
        ("Paragraph Count", 1),
        ("Line Count", 2),
    ] {
        let (score, values) = length(json!({
            "content_source": answer, "metric_type": metric,
            "comparison_type": "Exactly", "expected_value": actual,
        }))
        .await;
        assert_eq!(score, 1.0, "{metric}: {values}");
        assert_eq!(values["actual_value"], actual);
        assert_eq!(values["evaluated_artifacts"], "final_answer");
    }
    for (comparison, bounds, expected) in [
        (
            "Between (inclusive)",
            json!({"min_value": 5, "max_value": "5"}),
            1.0,
        ),
        ("At least", json!({"min_value": 6}), 0.0),
        ("Greater than", json!({"min_value": 5}), 0.0),
        ("At most", json!({"max_value": 5}), 1.0),
        ("Less than", json!({"max_value": 5}), 0.0),
        ("Exactly", json!({"expected_value": 7, "tolerance": 2}), 1.0),
        ("Exactly", json!({"expected_value": 8, "tolerance": 2}), 0.0),
    ] {
        let mut values = json!({"content_source": answer, "comparison_type": comparison});
        values
            .as_object_mut()
            .unwrap()
            .extend(bounds.as_object().unwrap().clone());
        let (score, described) = length(values).await;
        assert_eq!(score, expected, "{comparison} {bounds}: {described}");
        assert_eq!(described["comparison_type"], comparison);
    }
}

#[tokio::test]
async fn content_length_check_aggregates_over_files() {
    // Created and modified files with text: box.json (2 words: sent, 1), notes/plan.md (2),
    // Q1.CSV (4), q2.txt (3); same_size.dat is binary and counts 0. Deleted files do not count.
    let bounds = |mode: &str, target: &str| {
        json!({
            "aggregation_mode": mode, "target_file": target, "metric_type": "Word Count",
            "comparison_type": "Between (inclusive)", "min_value": 3, "max_value": 4,
        })
    };
    for (mode, target, score, actual) in [
        ("sum", "REPORTS", 0.0, json!(7)),
        ("max", "reports", 1.0, json!(4)),
        ("min", "reports", 1.0, json!(3)),
        ("avg", "reports", 1.0, json!(3.5)),
        ("per_artifact_all_must_pass", "reports", 1.0, json!(3)),
        ("per_artifact_all_must_pass", "", 0.0, json!(0)),
        ("per_artifact_any_can_pass", "", 1.0, json!(4)),
        ("sum", "", 0.0, json!(11)),
    ] {
        let (actual_score, values) = length(bounds(mode, target)).await;
        assert_eq!(values["actual_value"], actual, "{mode} {target}");
        assert_eq!(actual_score, score, "{mode} {target}: {values}");
    }
    let (_, values) = length(bounds("sum", "reports")).await;
    assert_eq!(values["per_source_values"], json!([4, 3]));
    assert_eq!(values["per_source_passes"], json!([true, true]));
    assert_eq!(
        values["evaluated_artifacts"],
        "reports/2025/Q1.CSV, reports/q2.txt"
    );
    let (score, values) = length(bounds("sum", "gone")).await;
    assert_eq!(score, 0.0);
    assert_eq!(
        values,
        json!({
            "passed": false, "actual_value": 0, "metric_type": "Word Count",
            "comparison_type": "Between (inclusive)", "aggregation_mode": "sum",
            "evaluated_artifacts": "",
        })
    );
}

#[tokio::test]
async fn settings_of_content_length_check_that_cannot_work_are_errors() {
    for (values, message) in [
        (
            json!({"min_value": 1}),
            "`comparison_type`: the comparison needs `min_value` and `max_value`",
        ),
        (
            json!({"min_value": 3, "max_value": 2}),
            "`min_value`: must not be above `max_value` (2), got 3.0",
        ),
        (
            json!({"metric_type": "Feet", "min_value": 1, "max_value": 2}),
            "`metric_type`: unknown variant `Feet`, expected one of",
        ),
        (
            json!({"comparison_type": "At most", "max_value": "many"}),
            "`max_value`: must be a number, got \"many\"",
        ),
    ] {
        let mut case = edited();
        case.verifier("content_length_check", values);
        let result = case.result().await;
        assert_eq!(result.status, VerifierStatus::Error);
        assert!(result.message.starts_with(message), "{}", result.message);
    }
}

fn with_calls() -> Case {
    let mut case = Case::new("");
    let call = |id: &str, name: &str, arguments: Value| {
        json!({"id": id, "type": "function",
               "function": {"name": name, "arguments": arguments.to_string()}})
    };
    case.messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [
            call("a", "search", json!({"query": "blue whale", "limit": 5})),
            call("b", "search", json!({"query": "red fox", "limit": 5.0})),
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "Error: no such index"},
        {"role": "tool", "tool_call_id": "b", "content": "3 hits"},
        {"role": "assistant", "content": null, "tool_calls": [
            call("c", "bash", json!({"command": "mcp_cli --method=execute --tool=send_mail --params='{\"to\": \"ann\"}'"})),
        ]},
        {"role": "tool", "tool_call_id": "c", "content": "sent"},
        {"role": "assistant", "content": "done"},
    ]);
    case
}

async fn tool_call(values: Value) -> (f64, Value, String) {
    let mut case = with_calls();
    case.verifier("tool_call_check", values);
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Ok, "{}", result.message);
    assert!(!result.message.is_empty());
    (
        result.score,
        Value::Object(result.verifier_result_values),
        result.message,
    )
}

#[tokio::test]
async fn tool_call_check_looks_at_names_arguments_and_outputs() {
    for (values, expected) in [
        (json!({"tool_name": "search"}), 1.0),
        (json!({"tool_name": "Search"}), 0.0),
        (json!({"tool_name": ["nothing", "search"]}), 1.0),
        (
            json!({"tool_name": "search", "expected_args": {"query": "red fox"}}),
            1.0,
        ),
        (
            json!({"tool_name": "search", "expected_args": {"query": "fox"}}),
            0.0,
        ),
        (
            json!({"tool_name": "search", "expected_args": {"query": "fox"}, "expected_args_contains": true}),
            1.0,
        ),
        (
            json!({"tool_name": "search", "expected_args": {"query": "^b.*e$"}, "expected_args_regex": true}),
            1.0,
        ),
        // As JSON text; 5 is 5.0.
        (
            json!({"tool_name": "search", "expected_args": "{\"limit\": 5}", "match_any": false}),
            1.0,
        ),
        (
            json!({"tool_name": "search", "expected_args": {"query": "red fox"}, "match_any": "false"}),
            0.0,
        ),
        (json!({"tool_name": "search", "check_success": true}), 1.0),
        (
            json!({"tool_name": "search", "check_success": true, "match_any": false}),
            0.0,
        ),
        (
            json!({"tool_name": "search", "check_success": true, "expected_args": {"query": "blue whale"}}),
            0.0,
        ),
        // Through the gateway's command line.
        (
            json!({"tool_name": "send_mail", "expected_args": {"to": "ann"}, "check_success": true}),
            1.0,
        ),
        (json!({"tool_name": "delete_all"}), 0.0),
        (
            json!({"tool_name": "delete_all", "expect_absent": true}),
            1.0,
        ),
        (json!({"tool_name": "search", "expect_absent": true}), 0.0),
        (
            json!({"tool_name": "search", "expect_absent": true, "expected_args": {"query": "cat"}}),
            1.0,
        ),
    ] {
        let (score, described, _) = tool_call(values.clone()).await;
        assert_eq!(score, expected, "{values}: {described}");
    }
}

#[tokio::test]
async fn tool_call_check_tells_what_it_saw() {
    let (_, values, message) = tool_call(json!({
        "tool_name": ["search", "find"], "expected_args": {"query": "red fox"},
        "check_success": true,
    }))
    .await;
    assert_eq!(values["tool_name"], "find, search");
    assert_eq!(values["found"], true);
    assert_eq!(values["total_matching_calls"], 2);
    assert_eq!(values["passed_calls"], 1);
    assert_eq!(values["failed_calls"], 1);
    assert_eq!(values["expected_args_string_match_mode"], "exact");
    let results = values["check_results"].as_array().unwrap();
    assert_eq!(results[0]["call_number"], 1);
    assert_eq!(results[0]["args_matched"], false);
    assert_eq!(results[0]["success_check_passed"], false);
    assert_eq!(results[1]["passed"], true);
    assert_eq!(message, "1 of 2 calls of find, search fit");

    let (_, values, _) = tool_call(json!({"tool_name": "search"})).await;
    assert_eq!(values["check_results"][0]["args_matched"], Value::Null);
    assert_eq!(
        values["check_results"][0]["success_check_passed"],
        Value::Null
    );

    let (_, values, _) = tool_call(json!({"tool_name": "x"})).await;
    assert_eq!(values["found"], false);
    assert_eq!(values["total_tool_calls"], 4);
    assert_eq!(
        values["tools_called"],
        json!(["bash", "search", "send_mail"])
    );

    let (_, values, _) = tool_call(json!({"tool_name": "search", "expect_absent": true})).await;
    assert_eq!(values["violating_calls"], 2);
    assert_eq!(values["violating_call_numbers"], json!([1, 2]));
    assert_eq!(values["found"], true);
}

#[tokio::test]
async fn a_trajectory_without_calls_fails_presence_and_passes_absence() {
    for (absent, expected) in [(false, 0.0), (true, 1.0)] {
        let mut case = Case::new("x");
        case.verifier(
            "tool_call_check",
            json!({"tool_name": "x", "expect_absent": absent}),
        );
        let result = case.result().await;
        assert_eq!(result.score, expected);
        assert_eq!(result.verifier_result_values["found"], false);
    }
    let mut case = Case::new("x");
    case.verifier("tool_call_check", json!({"tool_name": " "}));
    let result = case.result().await;
    assert_eq!(result.message, "`tool_name`: must name at least one tool");
    assert_eq!(result.verifier_result_values["error"], result.message);
}
