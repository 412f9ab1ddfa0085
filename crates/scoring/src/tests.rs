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

/// A verifier with the worth of several custom fields.
fn with_fields(score: f64, weight: f64, fields: Value) -> Entry {
    Entry(score, true, json!({ "numerical_weight": weight }), fields)
}

#[test]
fn every_gate_of_a_verifier_counts_and_critical_values_multiply() {
    // Base 9/10; the failed verifier stands behind both default gates: the lower cap, 0.4, holds.
    // Two failed critical values: 0.4 · 0.8 · 0.8 = 0.256.
    let both = json!({
        "a": "Gate: Missing Scope", "b": "Gate: Ethical / Safety Violation", "c": 7,
    });
    let critical = |score| with_fields(score, 0.0, json!({ "x": "Gate: Critical Value" }));
    let entries = [
        tagged(1.0, 9.0, ""),
        with_fields(0.0, 1.0, both),
        critical(0.0),
        critical(0.49),
        critical(0.5),
    ];
    let values = check(GATES, &json!({}), &entries, 0.256);
    value(&values, "base_score", 0.9);
    value(&values, "score_before_critical_value", 0.4);
    value(&values, "critical_value_multiplier_applied", 0.64);
    assert_eq!(values["critical_value_total"], 3);
    assert_eq!(values["critical_value_failed"], 2);
    assert_eq!(values["triggered_gates"].as_array().unwrap().len(), 2);
    assert_eq!(values["skipped_zero_weight"], 3);
    // A map of one's own takes the place of the default one; an empty one switches gates off.
    let own =
        json!({ "gate_caps": { "Gate: Missing Scope": 0.7 }, "critical_value_field_values": [] });
    check(GATES, &own, &entries, 0.7);
    let off = json!({ "gate_caps": {}, "critical_value_field_values": [] });
    let values = check(GATES, &off, &entries, 0.9);
    assert_eq!(values["triggered_caps"], json!([]));
}

#[test]
fn the_floor_is_for_less_than_the_threshold_and_caps_stand_floor_first() {
    // One of four experts passes: 0.25 is not below 0.25.
    let expert = |score| tagged(score, 0.0, "Expert Assessment");
    let mut entries = vec![tagged(1.0, 1.0, ""), expert(0.5)];
    entries.extend((0..3).map(|_| expert(0.0)));
    let values = check(GATES, &json!({}), &entries, 1.0);
    assert_eq!(values["expert_assessment_floor_triggered"], false);
    // Two of five below a threshold of 0.5: floor 0.2, then the gate's 0.5; the least counts.
    entries.push(expert(0.9));
    entries.push(tagged(0.0, 0.0, "Gate: Missing Scope"));
    let config = json!({
        "expert_assessment_pass_rate_threshold": 0.5, "expert_assessment_floor_cap": "0.2",
    });
    let values = check(GATES, &config, &entries, 0.2);
    value(&values, "expert_assessment_pass_rate", 0.4);
    assert_eq!(values["triggered_caps"], json!([0.2, 0.5]));
    // A higher score to pass makes experts fail: 1 of 5.
    let strict = json!({ "pass_score_threshold": 0.9, "gate_caps": {} });
    let values = check(GATES, &strict, &entries, 0.3);
    value(&values, "expert_assessment_pass_rate", 0.2);
}

#[test]
fn negative_weights_subtract_within_bounds() {
    let id = "deep_research_weighted_average";
    let weighted = |score: f64, weight: f64| with(score, json!({ "numerical_weight": weight }));
    // 1·2 − 1·5 = −3, kept from 0; only bad criteria: nothing to divide by.
    check(
        id,
        &json!({}),
        &[weighted(1.0, 2.0), weighted(1.0, -5.0)],
        0.0,
    );
    check(id, &json!({}), &[weighted(0.0, -5.0)], 0.0);
    // A negative score on a negative weight adds: (1·2 + 1·1)/2, kept below 1.
    check(
        id,
        &json!({}),
        &[weighted(1.0, 2.0), weighted(-1.0, -1.0)],
        1.0,
    );
}

#[test]
fn points_by_criterion_are_described() {
    let id = "ace_criterion_score";
    let entries = [
        with(0.989, json!({ "hurdle_tag": "Not" })),
        with(-0.1, json!({})),
        task(1.0),
        with(0.99, json!({ "hurdle_tag": "Hurdle" })),
        // No part of the task: neither counted nor a hurdle.
        Entry(0.0, false, json!({ "hurdle_tag": "Hurdle" }), Value::Null),
    ];
    // 0 − 1 + 1 + 1 = 1 of 4.
    let values = check(id, &json!({}), &entries, 0.25);
    let points: Vec<&Value> = values["criteria_details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["ace_score"])
        .collect();
    assert_eq!(points, [0, -1, 1, 1]);
    assert_eq!(values["criteria_details"][3]["hurdle_tag"], "Hurdle");
    assert_eq!(values["criteria_details"][2]["hurdle_tag"], "Not");
    for (key, count) in [
        ("pass_count", 2),
        ("fail_response_count", 1),
        ("fail_source_count", 1),
        ("hurdle_count", 1),
        ("hurdle_pass_count", 1),
        ("total_count", 4),
    ] {
        assert_eq!(values[key], count, "{key}");
    }
}

#[test]
fn difficulties_have_defaults_that_settings_change() {
    let of = |score, difficulty: Value| with(score, json!({ "difficulty": difficulty }));
    let id = "difficulty_weighted_average";
    let entries = [of(1.0, json!("Low")), of(0.0, json!(7))];
    // 1 / (1 + 3), then with High as what is meant by none: 1 / (1 + 5).
    check(id, &json!({ "medium_weight": null }), &entries, 0.25);
    check(
        id,
        &json!({ "default_difficulty": " high " }),
        &entries,
        1.0 / 6.0,
    );
    check(id, &json!({ "default_difficulty": "odd" }), &entries, 0.25);
    // 2 / (2 + 3); all weights 0.
    check(id, &json!({ "low_weight": "2" }), &entries, 0.4);
    let nothing = json!({ "low_weight": 0, "medium_weight": 0 });
    let values = check(id, &nothing, &entries, 0.0);
    assert_eq!(values["skipped_zero_weight"], 2);
    // A negative score does not make the average negative.
    check(id, &json!({}), &[of(-1.0, json!("High"))], 0.0);
}

#[test]
fn penalties_may_be_kept_from_0_to_1() {
    let entries = [task(-1.0), universal(-1000.0)];
    let clamp = json!({ "clamp_final": "true" });
    check(UNWEIGHTED, &json!({}), &entries, -1.2);
    check(UNWEIGHTED, &clamp, &entries, 0.0);
    // 4 − 0.2·2 = 3.6 of 4, without a penalty; the clamp changes nothing.
    let id = "task_score_and_universal_penalty_weighted_sum";
    for config in [json!({}), clamp] {
        check(id, &config, &[task(1.0), task(-2.0)], 0.9);
    }
    // With other factors: (1·3 + 0.5·1)/(3 + 1) − 0.5·(5/10).
    let config = json!({
        "task_primary_objective_scaling_factor": 3, "task_non_primary_objective_scaling_factor": 1,
        "universal_penalty_cap": 0.5, "universal_total_negative_points": 10,
    });
    let other = with(0.5, json!({ "is_primary_objective": false }));
    check(id, &config, &[task(1.0), other, universal(-5.0)], 0.625);
}

#[test]
fn passed_verifiers_are_counted_by_target() {
    let entries = [task(1.0), task(0.99), universal(0.98), task(-1.0)];
    let values = check("auxiliary_pass_rate", &json!({}), &entries, 0.5);
    assert_eq!(values["passed_count"], 2);
    assert_eq!(values["failed_count"], 2);
    value(&values, "final_score_percentage", 50.0);
    let lower = json!({ "pass_threshold": 0.5, "evaluation_target": "target_agent" });
    check("auxiliary_pass_rate", &lower, &entries, 0.75);
    let nobody = json!({ "evaluation_target": "virtual_coworker_agent" });
    for id in ["auxiliary_pass_rate", "all_pass"] {
        let error = run(id, &nobody, &entries).unwrap_err();
        assert!(error.contains("no verifier counts"), "{error}");
    }
    check("all_pass", &json!({}), &entries, 0.0);
    check("all_pass", &json!({}), &entries[..2], 1.0);
    check("all_pass", &json!({ "pass_threshold": -1 }), &entries, 1.0);
}

#[test]
fn the_refusal_names_every_verifier_and_cuts_long_messages() {
    let verifier = |id: &str, index: i64| -> Verifier {
        serde_json::from_value(json!({
            "verifier_id": id, "world_id": null, "task_id": "t", "eval_config_id": "e",
            "verifier_values": {}, "verifier_index": index,
        }))
        .unwrap()
    };
    let error = |id: &str, message: String| VerifierResult {
        verifier_id: id.to_owned(),
        verifier_version: 1,
        score: 0.0,
        verifier_result_values: Object::new(),
        status: VerifierStatus::Error,
        message,
    };
    let verifiers = [verifier("late", 9), verifier("early", 3)];
    let results = [
        error("late", "é".repeat(2_001)),
        error("early", String::new()),
        error("stranger", "x".repeat(2_000)),
    ];
    let method = all()
        .into_iter()
        .find(|method| method.id() == "template")
        .unwrap();
    let text = score(
        method.as_ref(),
        &Object::new(),
        &verifiers,
        &results,
        OnVerifierError::FailRun,
    )
    .unwrap_err();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "no score: 3 of 3 verifiers could not be judged");
    assert_eq!(
        lines[1],
        format!("verifier #2 (`late`): {}… (cut)", "é".repeat(2_000))
    );
    assert_eq!(lines[2], "verifier #1 (`early`): ?");
    assert_eq!(
        lines[3],
        format!("verifier #? (`stranger`): {}", "x".repeat(2_000))
    );
}
