//! What is said about a plan before anything is run.

use grading::{Severity, validate};
use llm_client::Models;
use serde_json::json;

use crate::case::Case;

fn problems(case: &Case) -> Vec<String> {
    let models = Models::new(|name| (name == "OPENAI_API_KEY").then(|| "sk-test".to_owned()));
    match validate(&case.registry, &case.input(), &models) {
        Ok(validated) => {
            assert!(
                validated
                    .warnings
                    .iter()
                    .all(|w| w.severity == Severity::Warning)
            );
            validated
                .warnings
                .iter()
                .map(|w| format!("warning: {w}"))
                .collect()
        }
        Err(problems) => problems
            .iter()
            .map(|p| match p.severity {
                Severity::Error => format!("error: {p}"),
                Severity::Warning => format!("warning: {p}"),
            })
            .collect(),
    }
}

#[test]
fn a_good_plan_has_no_problems() {
    let mut case = Case::new("");
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "is_primary_objective": true, "tags": ["Statement"]}),
    );
    case.verifier("file_diff_check", json!({"file_pattern": "*.md"}));
    assert_eq!(problems(&case), Vec::<String>::new());
    let validated = validate(
        &case.registry,
        &case.input(),
        &Models::new(|name| (name == "OPENAI_API_KEY").then(|| "k".into())),
    )
    .unwrap();
    assert!(validated.uses_judge);
}

#[test]
fn every_problem_is_told_with_place_rule_and_value() {
    let mut case = Case::new("");
    case.verifier(
        "pattern_match_check",
        json!({"pattern": "(", "patern": "x"}),
    );
    case.verifier("output_llm", json!({}));
    case.verifier("nonsense", json!({}));
    case.verifier("template", json!({}))["eval_config_id"] = json!("ec_lost");
    case.verifier("template", json!({}))["verifier_dependencies"] = json!(["v9"]);
    case.verifier(
        "file_diff_check",
        json!({"file_pattern": "*.md", "change_types": ["renamed"]}),
    );
    case.scoring["scoring_defn_id"] = json!("average");
    case.settings["llm_judge_model"] = json!("gpt-5");
    let text = problems(&case).join("\n");
    for part in [
        "error: verifier `v1`, `pattern`: must be a regular expression (",
        "warning: verifier `v1`, `patern`: unknown key, got \"x\"",
        "error: verifier `v2`: missing field `criteria`",
        "error: eval config `nonsense`, `eval_defn_id`: unknown eval; known are `apex",
        "error: verifier `v4`, `eval_config_id`: no eval config has this id; there are `pattern_match_check`, `output_llm`, `nonsense`",
        "error: verifier `v5`, `verifier_dependencies`: depends on a verifier that is not in the list, got \"v9\"",
        "error: verifier `v6`, `change_types`: must be of `created`, `modified`, `deleted`, got \"renamed\"",
        "error: scoring config, `scoring_defn_id`: unknown scoring method; known are `ace_criterion_score`, ",
    ] {
        let part = part.replace(
            "known are `apex",
            "known are `apex_v1_verifier`, `basic_llm_judge`",
        );
        assert!(text.contains(&part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn the_judge_must_be_usable_where_one_is_needed() {
    let mut case = Case::new("");
    case.settings["llm_judge_model"] = json!("gpt-5");
    case.verifier("template", json!({}));
    assert_eq!(problems(&case), Vec::<String>::new());
    case.verifier("output_llm", json!({"criteria": "c"}));
    let text = problems(&case).join("\n");
    assert!(
        text.starts_with(
            "error: grading settings, `llm_judge_model`: model `gpt-5` names no provider"
        ),
        "{text}"
    );
    case.settings = serde_json::Value::Null;
    assert_eq!(
        problems(&case),
        [
            "error: grading settings, `llm_judge_model`: a verifier asks the judge, and no judge is set"
        ]
    );
}

#[test]
fn surprises_are_warned_of() {
    let mut case = Case::new("");
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "expected_file_type": "Poems", "negative_criteria": "bad"}),
    )["task_id"] = json!(null);
    case.scoring["scoring_defn_id"] = json!("task_score_unweighted_and_universal_penalty");
    case.scoring["scoring_config_values"] = json!({"cap": 1});
    let text = problems(&case).join("\n");
    for part in [
        "warning: verifier `v1`, `expected_file_type`: unknown file type; everything is judged, got \"Poems\"",
        "warning: verifier `v1`, `negative_criteria`: is judged only if the grading settings say",
        "warning: scoring config, `cap`: unknown key",
        "warning: scoring config, `scoring_defn_id`: no verifier has a `task_id`",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn every_entry_of_the_registry_has_schemas_and_a_sentence() {
    let registry = grading::Registry::builtin();
    assert_eq!(registry.scoring_ids().count(), 11);
    for entry in registry
        .evals()
        .into_iter()
        .chain(registry.scoring_methods())
    {
        assert!(!entry.about.is_empty(), "{}", entry.id);
        assert_eq!(
            entry.settings.get("type").unwrap(),
            "object",
            "{}",
            entry.id
        );
    }
}

#[test]
fn former_and_short_ids_are_known_and_the_first_of_equal_configs_counts() {
    let mut case = Case::new("");
    case.verifier(
        "code_runner_verifier",
        json!({"code": "def check(ctx): return {'passed': True}"}),
    );
    case.verifier("template", json!({}));
    for (alias, id) in [
        ("mean", "template"),
        ("weighted", "deep_research_weighted_average"),
        ("pass_rate", "apex_v1_grade_score"),
    ] {
        assert!(case.registry.scoring_ids().any(|known| known == id));
        case.scoring["scoring_defn_id"] = json!(alias);
        assert_eq!(problems(&case), Vec::<String>::new(), "{alias}");
    }
    case.configs.push(json!({
        "eval_config_id": "template", "eval_config_name": "again",
        "eval_defn_id": "no_such_eval", "eval_config_values": {},
    }));
    let text = problems(&case).join("\n");
    assert!(
        text.contains(
            "warning: eval config `template`, `eval_config_id`: stands twice; the first one counts"
        ),
        "{text}"
    );
    assert!(!text.contains("verifier `v2`"), "{text}");
}

#[test]
fn negative_criteria_that_are_judged_in_any_case_are_not_warned_of() {
    let mut case = Case::new("");
    case.verifier(
        "response_tool_verifier",
        json!({"criteria": "c", "negative_criteria": "bad"}),
    );
    assert_eq!(problems(&case), Vec::<String>::new());
    case.verifier(
        "output_llm",
        json!({"criteria": "c", "negative_criteria": "bad"}),
    );
    let text = problems(&case).join("\n");
    assert!(
        text.starts_with("warning: verifier `v2`, `negative_criteria`: "),
        "{text}"
    );
}

/// The minimal working input set of `spec/grading.md`, appendix B.
#[tokio::test]
async fn the_minimal_input_set_works() {
    let mut case = Case::new("The total is in model.xlsx.");
    case.worlds(&[], &[("notes.md", b"nothing")]);
    case.verifiers = serde_json::from_value(json!([
        {"verifier_id": "v1", "world_id": null, "task_id": "t1", "eval_config_id": "ec_llm",
         "verifier_index": 0,
         "verifier_values": {"criteria": "The workbook states a 2024 total of 41,250",
                             "is_primary_objective": true,
                             "expected_file_type": "Spreadsheets (.xlsx, .xls, .xlsm, .ods)"}},
        {"verifier_id": "v2", "world_id": null, "task_id": "t1", "eval_config_id": "ec_file",
         "verifier_index": 1,
         "verifier_values": {"file_pattern": "*.xlsx", "change_types": ["created"]}},
    ]))
    .unwrap();
    case.configs = serde_json::from_value(json!([
        {"eval_config_id": "ec_llm", "eval_config_name": "LLM", "eval_defn_id": "output_llm",
         "eval_config_values": {}},
        {"eval_config_id": "ec_file", "eval_config_name": "File",
         "eval_defn_id": "file_diff_check", "eval_config_values": {}},
    ]))
    .unwrap();
    case.scoring = json!({
        "scoring_config_id": "sc", "scoring_config_name": "Mean",
        "scoring_defn_id": "task_score_unweighted_and_universal_penalty",
        "scoring_config_values": {},
    });
    case.settings =
        json!({"llm_judge_model": "openai/judge", "llm_judge_extra_args": {"temperature": 0}});
    assert_eq!(problems(&case), Vec::<String>::new());
    // No workbook: neither verifier needs a judge to see that.
    let grades = case.grade().await;
    let scores: Vec<f64> = grades.verifier_results.iter().map(|r| r.score).collect();
    assert_eq!(scores, [0.0, 0.0]);
    let values = &grades.scoring_results.scoring_method_result_values;
    assert_eq!(values["task_verifier_count"], 2);
    assert_eq!(grades.scoring_results.final_score, 0.0);
}
