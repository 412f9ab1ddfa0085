use formats::task::Verifier;
use serde_json::{Value, json};

use super::*;

/// A verifier: score, whether it belongs to the task, values, custom fields.
struct Entry(f64, bool, Value, Value);

fn task(score: f64) -> Entry {
    Entry(score, true, json!({}), Value::Null)
}

fn universal(score: f64) -> Entry {
    Entry(score, false, json!({}), Value::Null)
}

fn with(score: f64, values: Value) -> Entry {
    Entry(score, true, values, Value::Null)
}

fn tagged(score: f64, weight: f64, tag: &str) -> Entry {
    let values = json!({ "numerical_weight": weight });
    Entry(score, true, values, json!({ "kind": tag }))
}

fn run(id: &str, config: &Value, entries: &[Entry]) -> Result<ScoringResults, String> {
    let method = all().into_iter().find(|method| method.id() == id).unwrap();
    let mut verifiers = Vec::new();
    let mut results = Vec::new();
    for (at, Entry(score, is_task, values, custom)) in entries.iter().enumerate() {
        let verifier: Verifier = serde_json::from_value(json!({
            "verifier_id": format!("v{at}"), "world_id": null,
            "task_id": is_task.then_some("t"), "eval_config_id": "e",
            "verifier_values": values, "verifier_custom_field_values": custom,
            "verifier_index": at,
        }))
        .unwrap();
        results.push(VerifierResult {
            verifier_id: verifier.verifier_id.clone(),
            verifier_version: 1,
            score: *score,
            verifier_result_values: Object::new(),
            status: VerifierStatus::Ok,
            message: String::new(),
        });
        verifiers.push(verifier);
    }
    let config = config.as_object().unwrap().clone();
    let on_error = OnVerifierError::FailRun;
    score(method.as_ref(), &config, &verifiers, &results, on_error)
}

#[track_caller]
fn check(id: &str, config: &Value, entries: &[Entry], expected: f64) -> Object {
    let scored = run(id, config, entries).unwrap();
    assert!(
        (scored.final_score - expected).abs() < 1e-9,
        "{} instead of {expected}",
        scored.final_score
    );
    scored.scoring_method_result_values
}

#[track_caller]
fn value(values: &Object, key: &str, expected: f64) {
    let actual = values[key].as_f64().unwrap();
    assert!((actual - expected).abs() < 1e-9, "{key}: {actual}");
}

// The numbers are the worked examples of spec/grading.md §7.

#[test]
fn template_is_the_plain_average() {
    let values = check(
        "template",
        &json!({}),
        &[task(1.0), task(0.0), universal(1.0), task(-1.0)],
        0.25,
    );
    assert!(values.is_empty());
    check("template", &json!({}), &[], 0.0);
}

const UNWEIGHTED: &str = "task_score_unweighted_and_universal_penalty";

#[test]
fn universal_criteria_cost_a_bounded_penalty() {
    let entries = [
        task(1.0),
        task(0.0),
        task(1.0),
        universal(-30.0),
        universal(1.0),
    ];
    let values = check(UNWEIGHTED, &json!({}), &entries, 2.0 / 3.0 - 0.06);
    value(&values, "task_score", 2.0 / 3.0);
    value(&values, "universal_penalty", 0.3);
    value(&values, "capped_penalty", 0.06);
    assert_eq!(values["task_verifier_count"], 3);
    assert_eq!(values["universal_verifier_count"], 2);
}

#[test]
fn the_unweighted_score_has_no_floor_and_no_task_means_full_marks() {
    check(
        UNWEIGHTED,
        &json!({}),
        &[task(-1.0), universal(-1000.0)],
        -1.2,
    );
    check(UNWEIGHTED, &json!({}), &[universal(0.0)], 1.0);
    let null_means_default = json!({ "universal_penalty_cap": null });
    check(UNWEIGHTED, &null_means_default, &[universal(-1000.0)], 0.8);
    let off = json!({ "universal_total_negative_points": 0 });
    check(UNWEIGHTED, &off, &[universal(-1000.0)], 1.0);
}

#[test]
fn primary_objectives_count_more() {
    let other = |score| with(score, json!({ "is_primary_objective": false }));
    let id = "task_score_and_universal_penalty_weighted_sum";
    let entries = [
        task(1.0),
        other(0.0),
        other(1.0),
        other(-1.0),
        universal(-50.0),
    ];
    let values = check(id, &json!({}), &entries, 0.625);
    value(&values, "cumulative_score", 5.8);
    value(&values, "max_possible_score", 8.0);
    value(&values, "capped_penalty", 0.1);
    check(id, &json!({}), &[universal(0.0)], 0.0);
    // The text "false" is false; null and empty text mean not primary.
    for word in [json!("false"), Value::Null, json!("")] {
        let entry = with(1.0, json!({ "is_primary_objective": word }));
        let values = check(id, &json!({}), &[entry], 1.0);
        value(&values, "max_possible_score", 2.0);
    }
}

#[test]
fn weights_come_from_the_first_usable_number() {
    let id = "deep_research_weighted_average";
    let weighted = |score: f64, weight: f64| with(score, json!({ "numerical_weight": weight }));
    let entries = [
        weighted(1.0, 8.0),
        weighted(0.5, 4.0),
        weighted(1.0, -3.0),
        weighted(1.0, 0.0),
    ];
    let values = check(id, &json!({}), &entries, 7.0 / 12.0);
    value(&values, "weighted_sum", 7.0);
    value(&values, "total_weights", 12.0);
    assert_eq!(values["verifier_count"], 3);
    assert_eq!(values["skipped_zero_weight"], 1);
    check(id, &json!({}), &[], 0.0);
    let config = json!({ "weight_custom_field_id": "w", "weight_verifier_value_id": "points" });
    let entries = [
        Entry(
            1.0,
            true,
            json!({ "points": 9, "numerical_weight": 9 }),
            json!({ "w": "3" }),
        ),
        Entry(
            0.0,
            true,
            json!({ "points": 1, "numerical_weight": 9 }),
            json!({ "w": "" }),
        ),
        Entry(0.0, true, json!({ "points": "high" }), Value::Null),
    ];
    check(id, &config, &entries, 3.0 / 5.0);
}

const GATES: &str = "deep_research_weighted_average_with_gates";

#[test]
fn gates_cap_and_critical_values_multiply() {
    let entries = [
        tagged(1.0, 6.0, ""),
        tagged(1.0, 2.0, ""),
        tagged(0.0, 1.0, "Gate: Missing Scope"),
        tagged(0.0, 1.0, "Gate: Critical Value"),
    ];
    let values = check(GATES, &json!({}), &entries, 0.4);
    value(&values, "base_score", 0.8);
    value(&values, "score_before_critical_value", 0.5);
    value(&values, "critical_value_multiplier_applied", 0.8);
    assert_eq!(values["triggered_caps"], json!([0.5]));
    assert_eq!(values["expert_assessment_pass_rate"], Value::Null);
    assert_eq!(
        values["failed_critical_values"],
        json!([{ "verifier_id": "v3", "field_value": "Gate: Critical Value", "score": 0.0 }])
    );
}

#[test]
fn too_few_passed_experts_cap_the_score() {
    // Base 0.7: 7 of 10 points; one of five experts passes, 0.2 < 0.25.
    let expert = |score| tagged(score, 0.0, "Expert Assessment");
    let mut entries = vec![tagged(1.0, 7.0, ""), tagged(0.0, 3.0, ""), expert(1.0)];
    entries.extend((0..4).map(|_| expert(0.0)));
    let values = check(GATES, &json!({}), &entries, 0.3);
    value(&values, "base_score", 0.7);
    value(&values, "expert_assessment_pass_rate", 0.2);
    assert_eq!(values["expert_assessment_floor_triggered"], true);
    check(
        GATES,
        &json!({ "expert_assessment_values": [] }),
        &entries,
        0.7,
    );
    let bad = [with(1.0, json!({ "numerical_weight": "" }))];
    let error = run(GATES, &json!({}), &bad).unwrap_err();
    assert!(
        error.contains("`v0`") && error.contains("number"),
        "{error}"
    );
}

#[test]
fn only_scores_of_nearly_one_count_as_met() {
    let id = "apex_v1_grade_score";
    let entries = [task(1.0), task(0.99), task(0.98), universal(1.0)];
    let values = check(id, &json!({}), &entries, 2.0 / 3.0);
    assert_eq!(values["passed_count"], 2);
    assert_eq!(values["failed_count"], 1);
    assert_eq!(values["total_count"], 3);
    value(&values, "grade_score_percentage", 200.0 / 3.0);
    check(id, &json!({}), &[universal(1.0), universal(0.0)], 0.5);
    check(id, &json!({}), &[], 0.0);
}

#[test]
fn negative_scores_are_clamped_one_by_one() {
    let entries = [task(1.0), task(-1.0), task(0.0), task(0.5)];
    let values = check(
        "criteria_level_clamped_average",
        &json!({}),
        &entries,
        0.375,
    );
    value(&values, "original_average", 0.125);
    assert_eq!(values["positive_count"], 2);
    assert_eq!(values["zero_count"], 2);
    assert_eq!(values["negative_count"], 1);
}

#[test]
fn a_missed_hurdle_costs_everything() {
    let id = "ace_criterion_score";
    let hurdle = |score| with(score, json!({ "hurdle_tag": "Hurdle" }));
    let values = check(
        id,
        &json!({}),
        &[hurdle(1.0), task(0.0), task(-1.0), task(1.0)],
        0.25,
    );
    assert_eq!(values["total_score"], 1);
    assert_eq!(values["fail_source_count"], 1);
    assert_eq!(values["hurdle_all_pass"], true);
    let values = check(id, &json!({}), &[hurdle(0.0), task(1.0)], 0.0);
    assert_eq!(values["total_hurdle_score"], 0);
    check(id, &json!({}), &[task(-1.0)], 0.0);
}

#[test]
fn difficulty_sets_the_weight() {
    let of = |score, difficulty: Value| with(score, json!({ "difficulty": difficulty }));
    let id = "difficulty_weighted_average";
    let entries = [
        of(1.0, json!("High")),
        of(0.0, json!(" low ")),
        task(1.0),
        of(1.0, json!("Extreme")),
    ];
    let values = check(id, &json!({}), &entries, 11.0 / 12.0);
    assert_eq!(values["medium_count"], 2);
    assert_eq!(values["verifier_count"], 4);
    let values = check(
        id,
        &json!({ "low_weight": 0, "high_weight": "x" }),
        &entries,
        1.0,
    );
    assert_eq!(values["skipped_zero_weight"], 1);
}

#[test]
fn settings_that_cannot_be_read_are_told() {
    let error = run(UNWEIGHTED, &json!({ "universal_penalty_cap": "much" }), &[]).unwrap_err();
    assert_eq!(
        error,
        "`universal_penalty_cap`: must be a number, got \"much\""
    );
}
