//! How the judge is asked.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use testkit::openai::Turn;

use crate::case::{Case, stub, verdict};

fn one(criterion: &str) -> Case {
    let mut case = Case::new("The answer is 42.");
    case.verifier("output_llm", json!({"criteria": criterion}));
    case
}

#[tokio::test]
async fn the_request_has_the_reference_shape() {
    let case = one("The answer is 42");
    let judge = stub([verdict(true, "It says so.")]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(grades.scoring_results.final_score, 1.0);
    let requests = judge.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].refusal, None);
    let body = &requests[0].body;
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert_eq!(body["model"], "judge");
    let roles: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["system", "user"]);
    let schema = &body["response_format"]["json_schema"];
    assert_eq!(schema["strict"], true);
    assert_eq!(
        schema["schema"]["required"],
        json!(["rationale", "is_criteria_true"])
    );
    let result = &grades.verifier_results[0].verifier_result_values;
    assert_eq!(result["judge_grade"], "pass");
    assert_eq!(result["grade_rationale"], "It says so.");
    assert_eq!(result["evaluated_artifacts"], "");
    assert_eq!(result["judge_model"], "openai/judge");
    assert_eq!(result["judge_usage"]["calls"], 1);
    assert_eq!(result["judge_prompt"]["version"], "3");
    assert_eq!(result["judge_prompt"]["hash"].as_str().unwrap().len(), 16);
}

#[tokio::test]
async fn extra_arguments_go_along_except_those_of_the_call() {
    let mut case = one("c");
    case.settings["llm_judge_extra_args"] =
        json!({"temperature": 0.0, "seed": 7, "model": "other", "stream": true, "messages": []});
    let judge = stub([verdict(false, "no")]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(
        grades.verifier_results[0].verifier_result_values["judge_grade"],
        "fail"
    );
    let body = &judge.requests()[0].body;
    assert_eq!(body["temperature"], 0.0);
    assert_eq!(body["seed"], 7);
    assert_eq!(body["model"], "judge");
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_ne!(body["stream"], true);
}

#[tokio::test]
async fn an_unreadable_reply_is_sent_back_with_the_reason() {
    let case = one("c");
    let judge = stub([Turn::says("I think it is met."), verdict(true, "met")]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(grades.scoring_results.final_score, 1.0);
    let requests = judge.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[2]["content"], "I think it is met.");
    let correction = messages[3]["content"].as_str().unwrap();
    assert!(
        correction.contains("no JSON object with `rationale` and `is_criteria_true`"),
        "{correction}"
    );
    assert_eq!(grades.judge_usage.unwrap().calls, 2);
}

#[tokio::test]
async fn a_provider_without_schemas_is_asked_without() {
    let case = one("c");
    let refusal = json!({"error": {"message": "Unsupported parameter: 'response_format'", "type": "invalid_request_error", "param": "response_format", "code": "unsupported_parameter"}});
    let judge = stub([Turn::fails_with(400, refusal), verdict(true, "met")]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(
        grades.scoring_results.final_score, 1.0,
        "{:?}",
        grades.verifier_results
    );
    let requests = judge.requests();
    assert!(requests[0].body.get("response_format").is_some());
    assert!(requests[1].body.get("response_format").is_none());
}

#[tokio::test]
async fn calls_in_flight_are_limited() {
    let mut case = Case::new("x");
    for _ in 0..6 {
        case.verifier("output_llm", json!({"criteria": "c"}));
    }
    case.options.judge.slots = std::sync::Arc::new(tokio::sync::Semaphore::new(2));
    let slots = std::sync::Arc::clone(&case.options.judge.slots);
    let turns: Vec<Turn> = (0..6).map(|_| verdict(true, "y").after_ms(30)).collect();
    let judge = stub(turns).await;
    let lowest = AtomicUsize::new(2);
    let watch = async {
        loop {
            lowest.fetch_min(slots.available_permits(), Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let grades = tokio::select! {
        grades = case.grade_with(&judge) => grades,
        () = watch => unreachable!(),
    };
    assert_eq!(grades.scoring_results.final_score, 1.0);
    assert_eq!(lowest.load(Relaxed), 0);
    assert_eq!(slots.available_permits(), 2);
}
