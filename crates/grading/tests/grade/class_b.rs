//! Evals of the second wave that ask a judge.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};
use testkit::openai::Turn;

use crate::case::{Case, stub, verdict};

async fn judged(case: &Case, turns: Vec<Turn>) -> (VerifierResult, Vec<Value>) {
    let judge = stub(turns).await;
    let mut grades = case.grade_with(&judge).await;
    let bodies = judge.requests().iter().map(|r| r.body.clone()).collect();
    (grades.verifier_results.remove(0), bodies)
}

fn user(body: &Value) -> &str {
    body["messages"][1]["content"].as_str().unwrap()
}

#[tokio::test]
async fn criterion_output_verifier_shows_the_authors_reasons() {
    let mut case = Case::new("It is 42.");
    case.worlds(
        &[("brief.txt", b"the brief")],
        &[("brief.txt", b"the brief"), ("a.md", b"# 42")],
    );
    case.verifier(
        "criterion_output_verifier",
        json!({
            "description": "States the total", "rationale": "because the board asks",
            "type": "Critical", "tags": ["Reasoning"], "sources": [{"name": "brief.txt", "transformations": ["source"]}],
        }),
    );
    let (result, bodies) = judged(&case, vec![verdict(true, "yes")]).await;
    assert_eq!(result.score, 1.0, "{result:?}");
    let values = &result.verifier_result_values;
    assert_eq!(
        (&values["result"], &values["reason"]),
        (&json!(1), &json!("yes"))
    );
    assert_eq!(values["type"], "Critical");
    assert_eq!(values["tags"], json!(["Reasoning"]));
    assert_eq!(values["evaluated_artifacts"], "a.md");
    for part in ["because the board asks", "the brief", "# 42", "It is 42."] {
        assert!(user(&bodies[0]).contains(part), "{part}");
    }
}

/// What was said later is told to the judge of an output, and not to those of a criterion of its own (§5.6, §6.4.1).
#[tokio::test]
async fn the_task_is_the_first_message_or_the_whole_conversation() {
    for (eval, values, later) in [
        (
            "criterion_output_verifier",
            json!({"description": "States the total"}),
            false,
        ),
        (
            "deep_research",
            json!({"description": "States the total"}),
            false,
        ),
        ("output_llm", json!({"criteria": "States the total"}), true),
    ] {
        let mut case = Case::new("It is 42.");
        case.messages = json!([
            {"role": "user", "content": "Add the numbers."},
            {"role": "assistant", "content": "Which ones?"},
            {"role": "user", "content": "Those of May."},
            {"role": "assistant", "content": "It is 42."},
        ]);
        case.verifier(eval, values);
        let (result, bodies) = judged(&case, vec![verdict(true, "yes")]).await;
        assert_eq!(result.score, 1.0, "{eval}: {result:?}");
        let asked = user(&bodies[0]);
        assert!(asked.contains("Add the numbers."), "{eval}: {asked}");
        assert_eq!(asked.contains("Those of May."), later, "{eval}: {asked}");
    }
}

#[tokio::test]
async fn multi_representation_shows_the_source_where_it_is_asked_for() {
    let notebook = json!({
        "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["hello"]}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    })
    .to_string();
    for (transformations, shown, hidden) in [
        (json!(["source"]), "nbformat_minor", "no such text"),
        (json!(["docx_to_text"]), "hello", "nbformat_minor"),
    ] {
        let mut case = Case::new("done");
        let files: &[(&str, &[u8])] = &[("a.ipynb", notebook.as_bytes())];
        case.worlds(files, files);
        case.verifier(
            "output_llm_multi_representation",
            json!({
                "criteria": "c",
                "artifacts_to_reference": [{"name": "a.ipynb", "transformations": transformations}],
            }),
        );
        let (result, bodies) = judged(&case, vec![verdict(false, "no")]).await;
        assert_eq!(
            result.verifier_result_values["judge_grade"], "fail",
            "{result:?}"
        );
        let text = user(&bodies[0]);
        assert!(text.contains(shown) && !text.contains(hidden), "{text}");
    }
}

#[tokio::test]
async fn response_tool_verifier_judges_all_that_was_said_and_handed_out() {
    let mut case = Case::new("last");
    case.messages = json!([
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "first data:text/plain;base64,aGlkZGVu"},
        {"role": "tool", "content": "a tool's words", "tool_call_id": "x"},
        {"role": "assistant", "content": "last"},
    ]);
    case.trajectory = json!({"output": {"tool_artifacts": {"text_responses": ["chart of sales"]}}});
    case.verifier(
        "response_tool_verifier",
        json!({"criteria": "is polite", "criteria_explanation": "says please", "negative_criteria": "is rude"}),
    );
    // Not met, and the fault is not there either.
    let (result, bodies) = judged(
        &case,
        vec![verdict(false, "no"), verdict(false, "not rude")],
    )
    .await;
    assert_eq!(
        (result.status, result.score),
        (VerifierStatus::Ok, 0.0),
        "{result:?}"
    );
    assert_eq!(result.verifier_result_values["negative_grade"], "fail");
    assert_eq!(
        result.verifier_result_values["evaluated_artifacts"],
        "tool_output_1"
    );
    for part in [
        "first hidden",
        "last",
        "chart of sales",
        "says please",
        "Do it.",
    ] {
        assert!(user(&bodies[0]).contains(part), "{part}");
    }
    assert!(!user(&bodies[0]).contains("a tool's words"));
    assert!(user(&bodies[1]).contains("is rude"));
    // The fault is there.
    let (result, _) = judged(&case, vec![verdict(false, "no"), verdict(true, "rude")]).await;
    assert_eq!(result.score, -1.0);
    assert_eq!(result.verifier_result_values["negative_grade"], "pass");
    // Met: nobody asks for the fault.
    let (result, bodies) = judged(&case, vec![verdict(true, "yes")]).await;
    assert_eq!((result.score, bodies.len()), (1.0, 1));
}

fn short(correct: &str, alias: bool) -> Turn {
    Turn::says(
        json!({
            "is_alias_claim": alias, "reasoning": "compared",
            "extracted_final_answer": "Ada Lovelace", "correct": correct,
        })
        .to_string(),
    )
}

#[tokio::test]
async fn short_answers_are_compared_with_the_tasks_answer() {
    let mut case = Case::new("It was Ada Lovelace.");
    case.verifier("browsecomp_judge_2", json!({}));
    case.settings["llm_judge_extra_args"] = json!({"temperature": 1.0, "seed": 7});
    let missing = case.result().await;
    assert_eq!(missing.verifier_result_values["error_kind"], "config");
    assert!(
        missing.message.contains("expected_answer"),
        "{}",
        missing.message
    );

    case.trajectory = json!({"task_custom_fields": {"expected_answer": "Ada\nLovelace"}});
    for (turn, score, correct) in [
        (short("yes", false), 1.0, "yes"),
        (short("no", false), 0.0, "no"),
        // Nobody has verified that the two names mean the same.
        (short("yes", true), 0.0, "no"),
    ] {
        let (result, bodies) = judged(&case, vec![turn]).await;
        assert_eq!(result.score, score, "{result:?}");
        let values = &result.verifier_result_values;
        assert_eq!(values["correct"], correct);
        assert_eq!(values["extracted_final_answer"], "Ada Lovelace");
        assert_eq!(values["grader_model"], "openai/judge");
        assert!(user(&bodies[0]).contains("Ada; Lovelace"));
        // Its own arguments, not those of the settings.
        assert_eq!(bodies[0]["temperature"], 0.2);
        assert!(bodies[0].get("seed").is_none());
    }
    // A word that is neither is not scored.
    case.configs[0]["eval_config_values"] = json!({"judge_max_attempts": 2});
    let (result, bodies) = judged(&case, vec![short("maybe", false), short("maybe", false)]).await;
    assert_eq!(result.verifier_result_values["error_kind"], "judge_output");
    assert_eq!(bodies.len(), 2);

    case.messages = json!([{"role": "user", "content": "Who?"}]);
    let result = case.result().await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
    assert_eq!(
        result.verifier_result_values["extracted_final_answer"],
        "None"
    );
}

#[tokio::test]
async fn the_share_of_successful_calls_is_the_score() {
    let mut case = Case::new("done");
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "fs_read", "arguments": "{}"}});
    case.messages = json!([
        {"role": "user", "content": "Read."},
        {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b"), call("c")]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "error: none"},
        {"role": "tool", "tool_call_id": "c", "content": "three"},
    ]);
    case.verifier(
        "posttraining_tool_call_check",
        json!({"prompt_template": "Be strict about {task_prompt} and {tool_calls_formatted}."}),
    );
    let one = |number: u32, decision: &str| {
        json!({
            "call_number": number, "tool_name": "fs_read", "arguments": "", "output_summary": "",
            "rationale": "r", "decision": decision,
        })
    };
    let reply = |list: Value| {
        Turn::says(
            json!({"evaluations": list, "overall_decision": "fail", "summary": "s"}).to_string(),
        )
    };
    let incomplete = reply(json!([one(1, "pass")]));
    let complete = reply(json!([one(1, "pass"), one(2, "fail"), one(3, "pass")]));
    let (result, bodies) = judged(&case, vec![incomplete, complete]).await;
    assert!((result.score - 2.0 / 3.0).abs() < 1e-12, "{result:?}");
    assert_eq!(result.verifier_result_values["judge_grade"], "fail");
    assert_eq!(bodies.len(), 2, "the incomplete reply was sent back");
    let text = user(&bodies[0]);
    assert!(
        text.contains("error: none") && text.contains("Be strict about (the section `task` above)")
    );

    case.messages = json!([{"role": "assistant", "content": "no tools"}]);
    let result = case.result().await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
}

#[tokio::test]
async fn a_file_is_compared_with_a_reference_file_by_allowed_scores() {
    for eval in [
        "golden_file_llm",
        "jupiter_excel_content",
        "jupiter_pptx_content",
    ] {
        let mut case = Case::new("done");
        case.worlds(&[], &[("out.csv", b"total,41\n")]);
        case.golden(&[("right.csv", b"total,42\n")]);
        let values = json!({
            "agent_result_path": "out.csv", "golden_answer_path": "right.csv", "criteria": "the total",
        });
        case.verifier(eval, values);
        let says = |score: Value| {
            Turn::says(
                json!({"summary": "near", "key_failures": ["B1"], "score": score}).to_string(),
            )
        };
        let (result, bodies) = judged(&case, vec![says(json!(0.5)), says(json!(0.67))]).await;
        assert_eq!(result.score, 0.67, "{result:?}");
        assert_eq!(result.verifier_result_values["key_failures"], json!(["B1"]));
        assert_eq!(bodies.len(), 2, "0.5 is none of the scores");
        assert!(user(&bodies[0]).contains("41") && user(&bodies[0]).contains("42"));

        case.worlds(&[], &[]);
        let result = case.result().await;
        assert_eq!(
            (result.status, result.score),
            (VerifierStatus::Ok, 0.0),
            "{result:?}"
        );
        case.goldens.clear();
        let result = case.result().await;
        assert_eq!(result.verifier_result_values["error_kind"], "config");
    }
}

#[tokio::test]
async fn formatting_is_graded_by_a_word() {
    let mut case = Case::new("done");
    case.worlds(&[], &[("a.txt", b"x")]);
    case.verifier(
        "jupiter_excel_formatting",
        json!({"criteria": "headers are bold"}),
    );
    let result = case.result().await;
    assert_eq!(result.score, 0.0, "no workbook was made: {result:?}");
    assert_eq!(result.verifier_result_values["grade"], "FAIL");
    assert_eq!(
        result.verifier_result_values["criteria"],
        "headers are bold"
    );
}
