//! One run as a whole: order, errors, coverage, cancelling, grading again.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use formats::grades::{GradingStatus, VerifierStatus};
use grading::{ErrorKind, Eval, EvalError, NoSettings, Verdict};
use llm_client::Models;
use serde_json::json;
use testkit::openai::{Fault, Turn};
use tokio_util::sync::CancellationToken;

use crate::case::{Case, models, stub, verdict};

/// An eval from outside of the crate: waits, panics or fails as its values say.
struct Odd {
    id: &'static str,
    at_once: Option<usize>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Odd {
    fn new(id: &'static str, at_once: Option<usize>) -> Self {
        Self {
            id,
            at_once,
            running: Arc::default(),
            most: Arc::default(),
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct OddValues {
    #[serde(default)]
    wait_ms: u64,
    #[serde(default)]
    panic: bool,
    #[serde(default)]
    score: f64,
    /// A score that is no number.
    #[serde(default)]
    nan: bool,
}

impl Eval for Odd {
    type Values = OddValues;
    type Config = NoSettings;

    fn id(&self) -> &str {
        self.id
    }

    fn at_once(&self) -> Option<usize> {
        self.at_once
    }

    fn about(&self) -> &'static str {
        "odd behaviour"
    }

    async fn evaluate(
        &self,
        values: &OddValues,
        _: &NoSettings,
        case: &grading::Case,
    ) -> Result<Verdict, EvalError> {
        let running = self.running.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(running, Relaxed);
        tokio::time::sleep(Duration::from_millis(values.wait_ms)).await;
        self.running.fetch_sub(1, Relaxed);
        assert!(!values.panic, "a defect");
        let mut described = formats::Object::new();
        let seen: Vec<f64> = case
            .dependencies
            .iter()
            .map(|result| result.score)
            .collect();
        described.insert("seen".into(), json!(seen));
        let mut verdict = Verdict::new(false, described);
        verdict.score = if values.nan { f64::NAN } else { values.score };
        Ok(verdict)
    }
}

fn odd() -> Case {
    let mut case = Case::new("answer");
    case.registry.register(Odd::new("odd", None));
    case
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_input_and_are_heard_of_as_they_come() {
    let mut case = odd();
    case.verifier("odd", json!({"score": 0.25}))["verifier_dependencies"] = json!(["v3", "v2"]);
    case.verifier("odd", json!({"score": 0.5, "wait_ms": 100}));
    case.verifier("odd", json!({"score": 0.75}));
    let heard = Mutex::new(Vec::new());
    let grades = case
        .grade_by(&Models::new(|_| None), &|result| {
            heard.lock().unwrap().push(result.verifier_id.clone());
        })
        .await;
    assert_eq!(grades.grading_run_status, GradingStatus::Completed);
    let ids: Vec<&str> = grades
        .verifier_results
        .iter()
        .map(|r| r.verifier_id.as_str())
        .collect();
    assert_eq!(ids, ["v1", "v2", "v3"]);
    assert_eq!(*heard.lock().unwrap(), ["v3", "v2", "v1"]);
    // Results of dependencies come in the order in which they are named.
    assert_eq!(
        grades.verifier_results[0].verifier_result_values["seen"],
        json!([0.75, 0.5])
    );
    assert_eq!(grades.scoring_results.final_score, 0.5);
}

#[tokio::test]
async fn an_error_is_one_verifiers_and_takes_no_other_with_it() {
    let mut case = odd();
    case.verifier("odd", json!({"score": 1.0}));
    case.verifier("odd", json!({"panic": true}));
    case.verifier("odd", json!({"nan": true}));
    case.verifier("odd", json!({"score": "much"}));
    case.verifier("no_such_eval", json!({}));
    case.verifier("odd", json!({}))["eval_config_id"] = json!("nowhere");
    case.verifier("odd", json!({"score": 1.0}));
    let grades = case.grade().await;
    assert_eq!(grades.grading_run_status, GradingStatus::Error);
    let kinds: Vec<Option<&str>> = grades
        .verifier_results
        .iter()
        .map(|result| {
            result
                .verifier_result_values
                .get("error_kind")
                .and_then(|k| k.as_str())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            None,
            Some("internal"),
            Some("internal"),
            Some("config"),
            Some("config"),
            Some("config"),
            None
        ]
    );
    assert_eq!(
        grades.verifier_results[4].message,
        "`eval_defn_id`: unknown eval, got \"no_such_eval\""
    );
    let coverage = grades.coverage.unwrap();
    assert_eq!(
        (
            coverage.total,
            coverage.judged,
            coverage.passed,
            coverage.errors
        ),
        (7, 2, 2, 5)
    );
    assert_eq!(grades.scoring_results.final_score, 0.0);
    let error = grades.scoring_results.scoring_method_result_values["error"]
        .as_str()
        .unwrap();
    assert!(
        error.starts_with("no score: 5 of 7 verifiers could not be judged\nverifier #2 (`v2`): "),
        "{error}"
    );
}

#[tokio::test]
async fn a_world_that_cannot_be_read_fails_only_those_that_look_at_it() {
    let mut case = Case::new("The answer.");
    std::fs::write(case.path("final.zip"), b"no archive at all").unwrap();
    case.verifier("pattern_match_check", json!({"pattern": "answer"}));
    case.verifier("file_diff_check", json!({"file_pattern": "*"}));
    case.verifier(
        "pattern_match_check",
        json!({"pattern": "a", "search_target": "files"}),
    );
    let grades = case.grade().await;
    let results = &grades.verifier_results;
    assert_eq!(results[0].score, 1.0);
    for result in &results[1..] {
        assert_eq!(result.status, VerifierStatus::Error);
        assert_eq!(result.verifier_result_values["error_kind"], "helper");
        assert_eq!(
            result.verifier_result_values["error_owner"],
            "infrastructure"
        );
        assert!(result.message.contains("final.zip"), "{}", result.message);
    }
}

#[tokio::test]
async fn plans_that_cannot_work_as_a_whole_end_before_anything_is_asked() {
    let judge = stub([]).await;
    let mut case = Case::new("x");
    case.verifier("output_llm", json!({"criteria": "c"}));
    case.scoring["scoring_defn_id"] = json!("no_such_method");
    let grades = case.grade_with(&judge).await;
    assert_eq!(grades.grading_run_status, GradingStatus::Error);
    assert!(grades.verifier_results.is_empty());
    let error = &grades.scoring_results.scoring_method_result_values["error"];
    assert!(
        error.as_str().unwrap().contains("no_such_method"),
        "{error}"
    );
    assert_eq!(grades.coverage.unwrap().total, 1);

    case.scoring["scoring_defn_id"] = json!("template");
    case.verifier("output_llm", json!({"criteria": "c"}))["verifier_dependencies"] = json!(["v2"]);
    let grades = case.grade_with(&judge).await;
    assert!(grades.verifier_results.is_empty());
    let error = &grades.scoring_results.scoring_method_result_values["error"];
    assert!(
        error.as_str().unwrap().contains("#2 `v2` → #2 `v2`"),
        "{error}"
    );
    assert_eq!(judge.requests().len(), 0);
}

#[tokio::test]
async fn cancelling_keeps_what_is_finished() {
    let mut case = odd();
    case.verifier("odd", json!({"score": 1.0}));
    case.verifier("odd", json!({"wait_ms": 600_000}));
    case.verifier("odd", json!({}))["verifier_dependencies"] = json!(["v2"]);
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let grades = grading::grade(
        &case.registry,
        case.input(),
        &Models::new(|_| None),
        cancel,
        &move |_| token.cancel(),
    )
    .await;
    assert_eq!(grades.grading_run_status, GradingStatus::Cancelled);
    assert_eq!(grades.verifier_results.len(), 1);
    assert_eq!(grades.verifier_results[0].score, 1.0);
    let coverage = grades.coverage.unwrap();
    assert_eq!((coverage.total, coverage.judged), (3, 1));
    let error = &grades.scoring_results.scoring_method_result_values["error"];
    assert_eq!(error, "grading was cancelled after 1 of 3 verifiers");
}

#[tokio::test]
async fn a_verifier_that_takes_too_long_is_an_error() {
    let mut case = odd();
    case.options.verifier_timeout = Duration::from_millis(50);
    case.verifier("odd", json!({"wait_ms": 600_000}));
    let result = case.result().await;
    assert_eq!(result.verifier_result_values["error_kind"], "timeout");
    assert_eq!(
        result.message,
        "not judged within 0.05 s (limit `verifier_timeout`)"
    );
}

/// Pitfall A11: true, false, and garbage for two of four criteria.
#[tokio::test]
async fn a_judge_error_is_not_a_fail_and_is_graded_again_alone() {
    let mut case = Case::new("An answer.");
    for name in ["alpha", "beta", "gamma", "delta"] {
        case.verifier(
            "output_llm",
            json!({"criteria": format!("criterion {name}")}),
        );
    }
    case.options.judge.attempts = 2;
    let judge = stub([
        verdict(true, "yes").when("criterion alpha"),
        verdict(false, "no").when("criterion beta"),
        Turn::says("Garbage!").when("criterion gamma"),
        Turn::says("Garbage!").when("criterion gamma"),
        Turn::says("{\"rationale\": \"cut").when("criterion delta"),
        Turn::says("").when("criterion delta"),
    ])
    .await;
    let grades = case.grade_with(&judge).await;
    let seen: Vec<(f64, VerifierStatus)> = grades
        .verifier_results
        .iter()
        .map(|r| (r.score, r.status))
        .collect();
    assert_eq!(
        seen,
        [
            (1.0, VerifierStatus::Ok),
            (0.0, VerifierStatus::Ok),
            (0.0, VerifierStatus::Error),
            (0.0, VerifierStatus::Error)
        ]
    );
    assert_eq!(grades.grading_run_status, GradingStatus::Error);
    let coverage = grades.coverage.unwrap();
    assert_eq!(
        (
            coverage.total,
            coverage.judged,
            coverage.passed,
            coverage.errors
        ),
        (4, 2, 1, 2)
    );
    let gamma = &grades.verifier_results[2];
    assert_eq!(gamma.verifier_result_values["error_kind"], "judge_output");
    let replies = gamma.verifier_result_values["judge_replies"]
        .as_array()
        .unwrap();
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0]["reply"], "Garbage!");
    let delta = &grades.verifier_results[3].verifier_result_values["judge_replies"];
    assert_eq!(delta[0]["problem"], "it ends inside a JSON object");
    assert_eq!(delta[1]["problem"], "it is empty");
    let usage = grades.judge_usage.unwrap();
    assert_eq!(usage.calls, 6);
    assert!(
        judge
            .requests()
            .iter()
            .all(|request| request.refusal.is_none())
    );

    // Again, errors only: the judge is asked two questions and no more.
    let again = stub([
        verdict(true, "yes").when("criterion gamma"),
        verdict(true, "yes").when("criterion delta"),
    ])
    .await;
    case.options.only = Some(grades.clone());
    let heard = Mutex::new(Vec::new());
    let graded = case
        .grade_by(&models(&again), &|result| {
            heard.lock().unwrap().push(result.verifier_id.clone());
        })
        .await;
    heard.lock().unwrap().sort();
    assert_eq!(*heard.lock().unwrap(), ["v3", "v4"]);
    assert_eq!(again.requests().len(), 2);
    assert_eq!(graded.grading_run_status, GradingStatus::Completed);
    assert_eq!(graded.scoring_results.final_score, 0.75);
    assert_eq!(graded.verifier_results[..2], grades.verifier_results[..2]);
    assert_eq!(graded.judge_usage.unwrap().calls, 8);
}

#[tokio::test]
async fn a_judge_that_cannot_be_reached_is_an_infrastructure_error() {
    let mut case = Case::new("x");
    case.verifier("output_llm", json!({"criteria": "c"}));
    let judge = stub([Turn::faulty(Fault::Drop), Turn::fails(503)]).await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    assert_eq!(result.status, VerifierStatus::Error);
    assert_eq!(
        result.verifier_result_values["error_kind"],
        ErrorKind::JudgeTransport.as_str()
    );
    assert_eq!(
        result.verifier_result_values["error_owner"],
        "infrastructure"
    );
    assert_eq!(judge.requests().len(), 2);
}

#[tokio::test]
async fn without_a_usable_judge_only_its_verifiers_are_errors() {
    let mut case = Case::new("x");
    case.verifier("output_llm", json!({"criteria": "c"}));
    case.verifier("pattern_match_check", json!({"pattern": "x"}));
    let grades = case.grade().await;
    let result = &grades.verifier_results[0];
    assert_eq!(result.verifier_result_values["error_kind"], "judge_auth");
    assert_eq!(
        result.verifier_result_values["error_owner"],
        "configuration"
    );
    assert!(
        result.message.contains("OPENAI_API_KEY"),
        "{}",
        result.message
    );
    assert_eq!(grades.verifier_results[1].score, 1.0);
    case.settings = serde_json::Value::Null;
    let grades = case.grade().await;
    assert_eq!(
        grades.verifier_results[0].verifier_result_values["error_kind"],
        "config"
    );
}

/// A harness grades many trials on spawned tasks.
#[tokio::test]
async fn grading_can_be_spawned() {
    let mut case = Case::new("x");
    case.verifier("template", json!({}));
    let (registry, input) = (case.registry.clone(), case.input());
    let task = tokio::spawn(async move {
        let models = Models::new(|_| None);
        grading::grade(&registry, input, &models, CancellationToken::new(), &|_| {}).await
    });
    assert_eq!(task.await.unwrap().scoring_results.final_score, 1.0);
}

#[tokio::test]
async fn verifiers_at_once_are_limited_in_all_and_by_kind() {
    let mut case = Case::new("x");
    let (any, one) = (Odd::new("any", None), Odd::new("one", Some(1)));
    let (most_any, most_one) = (Arc::clone(&any.most), Arc::clone(&one.most));
    case.registry.register(any).register(one);
    case.options.concurrency = 3;
    // Those of the kind that may only run one by one come first, and keep no other out.
    for _ in 0..4 {
        case.verifier("one", json!({"wait_ms": 400, "score": 1.0}));
    }
    for _ in 0..6 {
        case.verifier("any", json!({"wait_ms": 50, "score": 1.0}));
    }
    // A verifier's time does not run while it waits for its turn.
    case.options.verifier_timeout = Duration::from_millis(1500);
    let heard = Mutex::new(Vec::new());
    let grades = case
        .grade_by(&Models::new(|_| None), &|result| {
            heard.lock().unwrap().push(result.verifier_id.clone());
        })
        .await;
    assert_eq!(grades.scoring_results.final_score, 1.0, "{grades:?}");
    assert_eq!(most_one.load(Relaxed), 1);
    assert!((2..=3).contains(&most_any.load(Relaxed)), "{most_any:?}");
    let heard = heard.lock().unwrap();
    let place = |id: &str| heard.iter().position(|other| other == id).unwrap();
    assert!(place("v10") < place("v3"), "{heard:?}");
}

#[tokio::test]
async fn a_verifier_of_another_version_is_judged_again() {
    let mut case = odd();
    case.verifier("odd", json!({"score": 0.25}));
    case.verifier("odd", json!({"score": 0.5}));
    let grades = case.grade().await;
    case.options.only = Some(grades);
    case.verifiers[0]["verifier_values"]["score"] = json!(1.0);
    case.verifiers[1]["verifier_values"]["score"] = json!(1.0);
    case.verifiers[1]["verifier_version"] = json!(2);
    let grades = case.grade().await;
    let scores: Vec<f64> = grades.verifier_results.iter().map(|r| r.score).collect();
    assert_eq!(scores, [0.25, 1.0]);
    assert_eq!(grades.verifier_results[1].verifier_version, 2);
}

/// §7.7: the average counts negative scores as 0, the results stay what they are.
#[tokio::test]
async fn scoring_leaves_results_as_they_are() {
    let mut case = odd();
    case.verifier("odd", json!({"score": -1.0}));
    case.verifier("odd", json!({"score": 1.0}));
    case.scoring["scoring_defn_id"] = json!("criteria_level_clamped_average");
    let grades = case.grade().await;
    assert_eq!(grades.scoring_results.final_score, 0.5);
    assert_eq!(grades.verifier_results[0].score, -1.0);
}
