//! Verifiers that are left out, errors that are not the end, and time that is up.

use std::time::Duration;

use formats::grades::{GradingStatus, VerifierStatus};
use grading::OnVerifierError;
use serde_json::{Value, json};

use crate::case::{Case, stub, verdict};

#[tokio::test]
async fn without_a_transcript_only_files_are_judged() {
    let mut case = Case::new("");
    case.worlds(&[], &[("a.txt", b"42")]);
    case.verifier("file_diff_check", json!({"file_pattern": "a.txt"}));
    case.verifier("pattern_match_check", json!({"pattern": "42"}));
    case.verifier(
        "pattern_match_check",
        json!({"pattern": "42", "search_target": "files"}),
    );
    case.verifier("tool_call_check", json!({"tool_name": "x"}));
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": "Final Answer Only (No Files)"}),
    );
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": "txt"}),
    );
    case.verifier("file_diff_check", json!({"file_pattern": "b.txt"}))["verifier_dependencies"] =
        json!(["v4"]);
    case.options.skip_trajectory_verifiers = true;
    let judge = stub([verdict(true, "yes")]).await;
    let grades = case.grade_with(&judge).await;
    let skipped: Vec<&str> = grades
        .verifier_results
        .iter()
        .filter(|result| result.verifier_result_values.get("skipped") == Some(&Value::Bool(true)))
        .map(|result| result.verifier_id.as_str())
        .collect();
    assert_eq!(skipped, ["v2", "v4", "v5", "v7"]);
    // 1, 3 and 6 passed; the others have no part in the mean.
    assert_eq!(grades.scoring_results.final_score, 1.0);
    assert_eq!(grades.grading_run_status, GradingStatus::Completed);
    let coverage = grades.coverage.unwrap();
    assert_eq!(
        (coverage.total, coverage.judged, coverage.skipped),
        (7, 3, 4)
    );
    let reason = grades.verifier_results[6].verifier_result_values["reason"]
        .as_str()
        .unwrap();
    assert!(reason.contains("depends on `v4`"), "{reason}");
}

#[tokio::test]
async fn an_error_may_count_as_zero_or_not_at_all() {
    for (on_error, status, score) in [
        (OnVerifierError::FailRun, GradingStatus::Error, 0.0),
        (OnVerifierError::ScoreAsZero, GradingStatus::Completed, 0.5),
        (OnVerifierError::Exclude, GradingStatus::Completed, 1.0),
    ] {
        let mut case = Case::new("42");
        case.verifier("pattern_match_check", json!({"pattern": "42"}));
        case.verifier("pattern_match_check", json!({"pattern": "("}));
        case.options.on_verifier_error = on_error;
        let grades = case.grade().await;
        assert_eq!(grades.grading_run_status, status, "{on_error:?}");
        assert_eq!(grades.scoring_results.final_score, score, "{on_error:?}");
        // The result stays what it is.
        assert_eq!(grades.verifier_results[1].status, VerifierStatus::Error);
        assert_eq!(grades.coverage.unwrap().errors, 1);
        if status == GradingStatus::Completed {
            let values = &grades.scoring_results.scoring_method_result_values;
            assert_eq!(values["verifier_errors"], 1);
            assert_eq!(values["on_verifier_error"], on_error.as_str());
        }
    }
}

#[tokio::test]
async fn dependencies_may_have_to_pass() {
    for (only, skipped) in [(false, 0), (true, 2)] {
        let mut case = Case::new("42");
        case.verifier("pattern_match_check", json!({"pattern": "43"}));
        case.verifier("pattern_match_check", json!({"pattern": "42"}))["verifier_dependencies"] =
            json!(["v1"]);
        case.verifier("pattern_match_check", json!({"pattern": "42"}))["verifier_dependencies"] =
            json!(["v2"]);
        case.verifier("pattern_match_check", json!({"pattern": "42"}));
        case.options.only_after_passed = only;
        let grades = case.grade().await;
        assert_eq!(grades.coverage.unwrap().skipped, skipped);
        let expected = if only { 0.5 } else { 0.75 };
        assert_eq!(grades.scoring_results.final_score, expected);
    }
}

#[tokio::test]
async fn what_is_not_judged_in_time_is_an_error() {
    let mut case = Case::new("42");
    case.verifier("pattern_match_check", json!({"pattern": "42"}));
    case.verifier("output_llm", json!({"criteria": "c"}));
    case.verifier("pattern_match_check", json!({"pattern": "42"}))["verifier_dependencies"] =
        json!(["v2"]);
    case.options.total_timeout = Some(Duration::from_secs(2));
    let judge = stub([verdict(true, "late").after_ms(60_000)]).await;
    let grades = case.grade_with(&judge).await;
    let kinds: Vec<Option<&str>> = grades
        .verifier_results
        .iter()
        .map(|r| {
            r.verifier_result_values
                .get("error_kind")
                .and_then(Value::as_str)
        })
        .collect();
    assert_eq!(kinds, [None, Some("timeout"), Some("timeout")]);
    assert_eq!(grades.grading_run_status, GradingStatus::Error);
}

#[tokio::test]
async fn what_is_not_known_is_left_out_without_a_transcript() {
    let mut case = Case::new("");
    case.verifier("template", json!({}))["eval_config_id"] = json!("nowhere");
    case.verifier("no_such_eval", json!({}));
    case.verifier("template", json!({}))["verifier_dependencies"] = json!(["v2"]);
    case.verifier("template", json!({}));
    case.options.skip_trajectory_verifiers = true;
    let grades = case.grade().await;
    let reasons: Vec<&str> = grades
        .verifier_results
        .iter()
        .filter_map(|result| result.verifier_result_values.get("reason")?.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "its eval config is not known",
            "its eval `no_such_eval` is not known",
            "it depends on `v2`, which is left out"
        ]
    );
    for result in &grades.verifier_results[..3] {
        assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
        assert!(!result.message.is_empty());
    }
    assert_eq!(grades.scoring_results.final_score, 1.0);
}

/// §3.9: nothing is scored, what is not known is an error, and tool calls are looked for.
#[tokio::test]
async fn a_state_that_is_right_is_judged_without_a_trajectory() {
    let mut case = Case::new("The answer.");
    case.worlds(&[], &[("a.txt", b"42")]);
    case.verifier("file_diff_check", json!({"file_pattern": "a.txt"}));
    case.verifier("pattern_match_check", json!({"pattern": "answer"}));
    case.verifier("tool_call_check", json!({"tool_name": "x"}));
    case.verifier("template", json!({}))["eval_config_id"] = json!("nowhere");
    case.verifier("file_diff_check", json!({"file_pattern": "b.txt"}));
    let results = grading::check_golden_state(
        &case.registry,
        case.input(),
        &llm_client::Models::new(|_| None),
        case.options.clone(),
        tokio_util::sync::CancellationToken::new(),
        &|_| {},
    )
    .await;
    let seen: Vec<(&str, f64, VerifierStatus, bool)> = results
        .iter()
        .map(|r| (r.verifier_id.as_str(), r.score, r.status, r.skipped()))
        .collect();
    assert_eq!(
        seen,
        [
            ("v1", 1.0, VerifierStatus::Ok, false),
            ("v2", 0.0, VerifierStatus::Ok, true),
            ("v3", 0.0, VerifierStatus::Ok, false),
            ("v4", 0.0, VerifierStatus::Error, false),
            ("v5", 0.0, VerifierStatus::Ok, false),
        ]
    );
}
