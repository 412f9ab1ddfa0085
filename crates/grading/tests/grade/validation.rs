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
    assert_eq!(registry.scoring_ids().count(), 9);
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
