//! Votes, panels, abstentions, the cache, the budget, negative criteria.

use formats::grades::VerifierStatus;
use serde_json::{Value, json};
use testkit::openai::Turn;

use crate::case::{Case, models, stub, verdict};

fn one() -> Case {
    let mut case = Case::new("The answer is 42.");
    case.verifier("output_llm", json!({"criteria": "The answer is 42"}));
    case
}

fn abstention() -> Turn {
    Turn::says(json!({"rationale": "it was cut", "is_criteria_true": null}).to_string())
}

#[tokio::test]
async fn the_majority_of_the_votes_decides_and_the_split_is_kept() {
    let mut case = one();
    case.settings["llm_judge_votes"] = json!(3);
    let judge = stub([verdict(true, "a"), verdict(false, "b"), verdict(true, "c")]).await;
    let grades = case.grade_with(&judge).await;
    assert_eq!(grades.scoring_results.final_score, 1.0);
    let values = &grades.verifier_results[0].verifier_result_values;
    assert_eq!(
        values["judge_split"],
        json!({"met": 2, "not_met": 1, "cannot_assess": 0, "errors": 0})
    );
    assert_eq!(values["judge_votes"].as_array().unwrap().len(), 3);
    let agreement = grades.judge_agreement.unwrap();
    assert_eq!(
        (agreement.verifiers, agreement.split, agreement.votes),
        (1, 1, 3)
    );
    assert!((agreement.agreement - 1.0 / 3.0).abs() < 1e-12);
    assert!((agreement.flip_rate - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(grades.judge_usage.unwrap().calls, 3);
}

#[tokio::test]
async fn a_single_vote_leaves_results_as_they_were() {
    let judge = stub([verdict(true, "a")]).await;
    let grades = one().grade_with(&judge).await;
    let values = &grades.verifier_results[0].verifier_result_values;
    assert!(!values.contains_key("judge_votes") && !values.contains_key("judge_split"));
    assert_eq!(grades.judge_agreement, None);
}

#[tokio::test]
async fn a_panel_votes_with_each_model_and_its_own_arguments() {
    let mut case = one();
    case.settings["llm_judge_extra_args"] = json!({"seed": 1});
    case.settings["llm_judge_panel"] = json!([
        {"model": "openai/second"},
        {"model": "openai/third", "extra_args": {"seed": 3}},
    ]);
    let judge = stub([verdict(true, "a"), verdict(true, "b"), verdict(false, "c")]).await;
    let grades = case.grade_with(&judge).await;
    let values = &grades.verifier_results[0].verifier_result_values;
    assert_eq!(
        values["judge_model"],
        "openai/judge, openai/second, openai/third"
    );
    let mut asked: Vec<(String, Value)> = judge
        .requests()
        .iter()
        .map(|r| {
            (
                r.body["model"].as_str().unwrap().to_owned(),
                r.body["seed"].clone(),
            )
        })
        .collect();
    asked.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        asked,
        [
            ("judge".to_owned(), json!(1)),
            ("second".to_owned(), json!(1)),
            ("third".to_owned(), json!(3)),
        ]
    );
}

#[tokio::test]
async fn a_judge_that_cannot_tell_gives_neither_pass_nor_fail() {
    let mut case = one();
    case.settings["llm_judge_cannot_assess"] = json!(true);
    let judge = stub([abstention()]).await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    assert_eq!(result.status, VerifierStatus::Error);
    let values = &result.verifier_result_values;
    assert_eq!(values["judge_grade"], "cannot_assess");
    assert_eq!(values["error_kind"], "cannot_assess");
    assert_eq!(values["grade_rationale"], "it was cut");
    let shape = &judge.requests()[0].body["response_format"]["json_schema"]["schema"];
    assert_eq!(
        shape["properties"]["is_criteria_true"]["type"],
        json!(["boolean", "null"])
    );
}

#[tokio::test]
async fn to_abstain_is_not_offered_by_default_nor_with_another_prompt() {
    for (key, value) in [
        ("llm_judge_cannot_assess", json!(null)),
        ("llm_judge_system_prompt", json!("You are a judge.")),
    ] {
        let mut case = one();
        case.settings["llm_judge_cannot_assess"] = json!(true);
        case.settings[key] = value;
        let judge = stub([abstention(), verdict(true, "now")]).await;
        let grades = case.grade_with(&judge).await;
        assert_eq!(grades.scoring_results.final_score, 1.0, "{key}");
        let requests = judge.requests();
        let shape = &requests[0].body["response_format"]["json_schema"]["schema"];
        assert_eq!(shape["properties"]["is_criteria_true"]["type"], "boolean");
        let system = requests[0].body["messages"][0]["content"].as_str().unwrap();
        assert!(!system.contains("cannot assess"), "{system}");
        assert_eq!(requests.len(), 2);
    }
}

#[tokio::test]
async fn lost_votes_do_not_count_as_votes_against() {
    let mut case = one();
    case.settings["llm_judge_votes"] = json!(3);
    // Two votes decide whatever the third would have said.
    let judge = stub([verdict(false, "a"), verdict(false, "b"), Turn::fails(400)]).await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
    assert_eq!(result.verifier_result_values["judge_split"]["errors"], 1);
    // One to one with a lost vote is no verdict.
    let judge = stub([verdict(true, "a"), verdict(false, "b"), Turn::fails(400)]).await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    assert_eq!(result.status, VerifierStatus::Error);
    assert_eq!(
        result.verifier_result_values["error_kind"],
        "judge_transport"
    );
}

#[tokio::test]
async fn an_answer_is_cached_by_the_whole_question() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = one();
    case.options.judge.cache = Some(folder.path().to_owned());
    let judge = stub([
        Turn::says("not yet a verdict"),
        verdict(true, "first"),
        verdict(false, "other"),
    ])
    .await;
    let first = case.grade_with(&judge).await;
    assert_eq!(first.judge_usage.unwrap().calls, 2);
    // The markers have another code now, and nobody is asked.
    let again = case.grade_with(&judge).await;
    let usage = again.judge_usage.unwrap();
    assert_eq!((usage.calls, usage.cached_answers), (0, 1));
    let values = &again.verifier_results[0].verifier_result_values;
    assert_eq!(values["grade_rationale"], "first");
    assert_eq!(values["judge_usage"]["cached_answers"], 1);
    // Another answer of the agent is another question.
    let mut other = Case::new("The answer is 43.");
    other.verifier("output_llm", json!({"criteria": "The answer is 42"}));
    other.options.judge.cache = Some(folder.path().to_owned());
    let grades = other.grade_with(&judge).await;
    assert_eq!(grades.scoring_results.final_score, 0.0);
    assert_eq!(judge.requests().len(), 3);
    // Nothing but answers lies in the folder: no keys, no half-written files.
    let files: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .flat_map(|inner| std::fs::read_dir(inner.unwrap().path()).unwrap())
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|text| !text.contains(judge.key())));
}

#[tokio::test]
async fn votes_are_cached_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = one();
    case.settings["llm_judge_votes"] = json!(3);
    case.options.judge.cache = Some(folder.path().to_owned());
    let judge = stub([verdict(true, "a"), verdict(false, "b"), verdict(true, "c")]).await;
    case.grade_with(&judge).await;
    let again = case.grade_with(&judge).await;
    let values = &again.verifier_results[0].verifier_result_values;
    assert_eq!(values["judge_split"]["not_met"], 1);
    assert_eq!(again.judge_usage.unwrap().cached_answers, 3);
}

#[tokio::test]
async fn rates_of_the_settings_price_the_calls() {
    let mut case = one();
    case.settings["llm_judge_model_rates"] =
        json!({"input_cost_per_token": 0.001, "output_cost_per_token": 0.01});
    let judge = stub([verdict(true, "a").usage(100, 5)]).await;
    let grades = case.grade_with(&judge).await;
    let usage = grades.judge_usage.unwrap();
    // 100 · 0.001 + 5 · 0.01
    assert!((usage.cost_usd - 0.15).abs() < 1e-9, "{usage:?}");
    assert_eq!(usage.unpriced_calls, 0);
}

#[tokio::test]
async fn judging_ends_where_the_money_does() {
    let mut case = one();
    case.verifier("output_llm", json!({"criteria": "another"}));
    case.options.concurrency = 1;
    case.options.judge.max_usd = Some(0.1);
    case.settings["llm_judge_model_rates"] = json!({"input": 0.001, "output": 0.01});
    let judge = stub([verdict(true, "a").usage(100, 5)]).await;
    let grades = case.grade_with(&judge).await;
    let errors: Vec<&str> = grades
        .verifier_results
        .iter()
        .filter(|result| result.status == VerifierStatus::Error)
        .map(|result| {
            result.verifier_result_values["error_kind"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(errors, ["budget"]);
    assert_eq!(judge.requests().len(), 1);
}

#[tokio::test]
async fn a_violated_negative_criterion_costs_a_point() {
    let values = json!({"criteria": "The answer is 42", "negative_criteria": "The answer is 13"});
    for (turns, score, negative) in [
        (
            vec![verdict(false, "no"), verdict(true, "it is 13")],
            -1.0,
            Some("pass"),
        ),
        (
            vec![verdict(false, "no"), verdict(false, "it is not")],
            0.0,
            Some("fail"),
        ),
        (vec![verdict(true, "yes")], 1.0, None),
    ] {
        let mut case = Case::new("The answer is 13.");
        case.verifier("output_llm", values.clone());
        case.settings["llm_judge_negative_criteria"] = json!(true);
        let calls = turns.len();
        let judge = stub(turns).await;
        let grades = case.grade_with(&judge).await;
        let result = &grades.verifier_results[0];
        assert_eq!(result.score, score);
        let grade = result.verifier_result_values.get("negative_grade");
        assert_eq!(grade.and_then(Value::as_str), negative);
        assert_eq!(judge.requests().len(), calls);
    }
    // Off by default: one call.
    let mut case = Case::new("The answer is 13.");
    case.verifier("output_llm", values);
    let judge = stub([verdict(false, "no")]).await;
    assert_eq!(case.grade_with(&judge).await.verifier_results[0].score, 0.0);
}

#[tokio::test]
async fn plans_of_votes_that_cannot_work_are_refused() {
    let judge = stub([]).await;
    for (key, value, part) in [
        ("llm_judge_votes", json!(0), "must be from 1 to 25"),
        (
            "llm_judge_panel",
            json!([{"model": "nobody"}]),
            "`llm_judge_panel`",
        ),
        (
            "llm_judge_model_rates",
            json!({"input": 1}),
            "output_cost_per_token",
        ),
    ] {
        let mut case = one();
        case.settings[key] = value;
        let input = case.input();
        let problems = grading::validate(&case.registry, &input, &models(&judge)).unwrap_err();
        assert!(problems[0].to_string().contains(part), "{problems:?}");
    }
    let mut case = one();
    case.settings["llm_judge_votes"] = json!(2);
    case.settings["llm_judge_extra_args"] = json!({"temperature": 0});
    let input = case.input();
    let warnings = grading::validate(&case.registry, &input, &models(&judge))
        .unwrap()
        .warnings;
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        texts[0].contains("can be a tie") && texts[1].contains("temperature 0"),
        "{texts:?}"
    );
}
