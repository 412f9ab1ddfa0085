//! Evals that ask the judge about the answer and the tool calls.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Turn};

use crate::case::{Case, stub, verdict};

async fn judged(case: &Case, judge: &OpenAiStub) -> VerifierResult {
    let mut grades = case.grade_with(judge).await;
    assert_eq!(grades.verifier_results.len(), 1);
    grades.verifier_results.remove(0)
}

fn says(value: Value) -> Turn {
    Turn::says(value.to_string())
}

#[tokio::test]
async fn golden_response_match_gives_result_and_reason() {
    for (met, result) in [(true, 1), (false, 0)] {
        let mut case = Case::new("\\boxed{42}");
        case.verifier(
            "golden_response_match",
            json!({"golden_response": "42", "problem_context": "6 by 7"}),
        );
        let judge = stub([says(json!({"rationale": "compared", "is_match": met}))]).await;
        let graded = judged(&case, &judge).await;
        assert_eq!(graded.score, f64::from(result));
        assert_eq!(graded.verifier_result_values["result"], result);
        assert_eq!(graded.verifier_result_values["reason"], "compared");
        let body = &judge.requests()[0].body;
        let schema = &body["response_format"]["json_schema"]["schema"];
        assert_eq!(schema["required"], json!(["rationale", "is_match"]));
        let text = body["messages"][1]["content"].as_str().unwrap();
        for part in ["\\boxed{42}", "6 by 7", "None were given."] {
            assert!(text.contains(part), "{text}");
        }
    }
    // Nothing to compare: no call.
    let mut case = Case::new("  ");
    case.verifier("golden_response_match", json!({"golden_response": "42"}));
    let graded = case.result().await;
    assert_eq!(graded.status, VerifierStatus::Ok);
    assert_eq!(graded.verifier_result_values["result"], 0);
    case.verifiers[0]["verifier_values"]["golden_response"] = json!(" ");
    let graded = case.result().await;
    assert_eq!(graded.status, VerifierStatus::Error);
    assert!(
        graded.message.contains("golden_response"),
        "{}",
        graded.message
    );
}

#[tokio::test]
async fn apex_v1_asks_without_a_schema_and_reads_numbers_and_words() {
    for (reply, score) in [
        (r#"Well: {"result": 1, "reason": "it says \(42\)"}"#, 1.0),
        (r#"{"result": "Pass", "reason": "so"}"#, 1.0),
        (r#"{"result": false, "reason": "so"}"#, 0.0),
    ] {
        let mut case = Case::new("42");
        case.verifier(
            "apex_v1_verifier",
            json!({"description": "It is 42", "sources": "s"}),
        );
        let judge = stub([Turn::says(reply)]).await;
        let graded = judged(&case, &judge).await;
        assert_eq!(graded.score, score, "{graded:?}");
        assert_eq!(graded.verifier_result_values["result"], json!(score as u8));
        let body = &judge.requests()[0].body;
        assert!(body.get("response_format").is_none());
        // No task text.
        assert!(!body.to_string().contains("Do the task."));
    }
    let mut case = Case::new("");
    case.verifier("apex_v1_verifier", json!({"description": "It is 42"}));
    assert_eq!(case.result().await.verifier_result_values["result"], 0);
}

#[tokio::test]
async fn deep_research_judges_answer_and_files_by_the_built_in_prompt() {
    let mut case = Case::new("See report.md.");
    case.worlds(
        &[],
        &[("report.md", b"total 42"), ("data.csv", b"a,b\n1,2\n")],
    );
    case.verifier(
        "deep_research",
        json!({"description": "The total is 42", "weight": "Major", "numerical_weight": 3}),
    );
    case.settings["llm_judge_system_prompt"] = json!("Be kind.");
    let judge = stub([verdict(true, "A2 says so")]).await;
    let graded = judged(&case, &judge).await;
    let values = &graded.verifier_result_values;
    assert_eq!(values["judge_grade"], "pass");
    assert_eq!(values["grade_rationale"], "A2 says so");
    assert_eq!(values["evaluated_artifacts"], "data.csv, report.md");
    let body = &judge.requests()[0].body;
    assert!(
        !body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("Be kind.")
    );
    let text = body["messages"][1]["content"].as_str().unwrap();
    assert!(text.contains("See report.md.") && text.contains("total 42"));
}

fn with_calls(case: &mut Case, count: usize, output: &str) {
    let mut messages = vec![json!({"role": "user", "content": "Book it."})];
    for n in 1..=count {
        messages.push(
            json!({"role": "assistant", "content": null, "tool_calls": [{
            "id": format!("c{n}"), "type": "function",
            "function": {"name": "book", "arguments": format!("{{\"seat\": {n}}}")}}]}),
        );
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": output}));
    }
    messages.push(json!({"role": "assistant", "content": "Booked."}));
    case.messages = Value::Array(messages);
}

#[tokio::test]
async fn tool_call_llm_check_shows_calls_and_outputs() {
    let mut case = Case::new("");
    with_calls(&mut case, 2, &format!("confirmed {}", "x".repeat(3000)));
    case.verifier(
        "tool_call_llm_check",
        json!({"criterion": "A seat was booked"}),
    );
    let judge = stub([says(json!({
        "satisfied": true, "reasoning": "call 1", "relevant_evidence": ["confirmed"],
    }))])
    .await;
    let graded = judged(&case, &judge).await;
    let values = &graded.verifier_result_values;
    assert_eq!(values["satisfied"], true);
    assert_eq!(values["judge_grade"], "pass");
    assert_eq!(values["relevant_evidence"], json!(["confirmed"]));
    assert_eq!(values["criteria"], "A seat was booked");
    assert_eq!(values["tool_calls_evaluated"], 2);
    let body = &judge.requests()[0].body;
    let text = body["messages"][1]["content"].as_str().unwrap();
    assert!(
        text.contains("BEGIN call 2") && text.contains("lines left out"),
        "{text}"
    );
    assert!(text.contains("Book it.") && !text.contains("# The conversation"));
    assert!(text.len() < 8_000, "{}", text.len());
}

#[tokio::test]
async fn tool_call_llm_check_without_outputs_and_with_the_conversation() {
    let mut case = Case::new("");
    with_calls(&mut case, 1, "secret output");
    case.verifier(
        "tool_call_llm_check",
        json!({"criteria": "c", "include_tool_outputs": "false", "include_messages": true}),
    );
    let judge = stub([says(
        json!({"satisfied": false, "reasoning": "no", "relevant_evidence": []}),
    )])
    .await;
    let graded = judged(&case, &judge).await;
    assert_eq!(graded.verifier_result_values["judge_grade"], "fail");
    let body = judge.requests()[0].body.to_string();
    assert!(!body.contains("secret output") && body.contains("Booked."));
    // No calls at all: no judge.
    let mut case = Case::new("I did nothing.");
    case.verifier("tool_call_llm_check", json!({"criteria": "c"}));
    let graded = case.result().await;
    assert_eq!((graded.status, graded.score), (VerifierStatus::Ok, 0.0));
    assert_eq!(graded.verifier_result_values["tool_calls_evaluated"], 0);
    case.verifiers[0]["verifier_values"] = json!({});
    let graded = case.result().await;
    assert!(graded.message.contains("`criteria`"), "{}", graded.message);
}
