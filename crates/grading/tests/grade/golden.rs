//! The reference's own runs: the same `grades.json`, a judge request of the same shape.

use std::path::{Path, PathBuf};

use formats::document;
use formats::grades::Grades;
use formats::trajectory::Trajectory;
use grading::{GradingInput, Registry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::case::{models, stub, verdict};

/// The folder of shared test data; `None` where it is absent.
fn golden() -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let golden = shared.join("golden");
    if golden.is_dir() {
        return Some(golden);
    }
    eprintln!("SKIPPED: no golden files at {}", golden.display());
    None
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    document::read("golden file", path).unwrap()
}

async fn graded(golden: &Path, run: &str, worlds: Option<&Path>) -> (Grades, Value) {
    let task = golden.join("simple_task");
    let reference = golden.join("reference-run");
    let expected: Value = read(&reference.join("grading").join(run).join("grades.json"));
    let original = task.join("original_snapshot.zip");
    let trajectory_of = if run == "diff" { "errors" } else { run };
    let trajectory: Trajectory = read(&reference.join(trajectory_of).join("trajectory.json"));
    let input = GradingInput {
        grading_run_id: expected["grading_run_id"].as_str().unwrap().to_owned(),
        trajectory_id: "traj_golden".to_owned(),
        initial_snapshot: worlds.map_or(original.clone(), |w| w.join("initial_snapshot.zip")),
        final_snapshot: worlds.map_or(original, |w| w.join("final_snapshot.zip")),
        golden_snapshots: Vec::new(),
        trajectory,
        settings: Some(
            serde_json::from_value(
                json!({"llm_judge_model": "openai/fake-judge", "llm_judge_extra_args": null}),
            )
            .unwrap(),
        ),
        verifiers: read(&task.join("verifiers.json")),
        eval_configs: read(&task.join("eval_configs.json")),
        scoring: read(&task.join("scoring_config.json")),
    };
    let judge = stub([verdict(true, "ok")]).await;
    let registry = Registry::builtin();
    let models = models(&judge);
    let validated = grading::validate(&registry, &input, &models).unwrap();
    assert_eq!(validated.warnings, []);
    let grades = grading::grade(&registry, input, &models, CancellationToken::new(), &|_| {}).await;
    let requests = judge.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].refusal, None);
    let ours = serde_json::to_value(&requests[0].body).unwrap();
    let theirs: Value = read(
        &reference
            .join("grading")
            .join(run)
            .join("judge_request.json"),
    );
    compare_requests(&ours, &theirs["body"]);
    assert_contains(&serde_json::to_value(&grades).unwrap(), &expected, "grades");
    (grades, ours)
}

/// Every key and value of `expected` is in `actual`; keys of ours may come on top.
fn assert_contains(actual: &Value, expected: &Value, path: &str) {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            for (key, value) in expected {
                let path = format!("{path}.{key}");
                assert_contains(
                    actual
                        .get(key)
                        .unwrap_or_else(|| panic!("{path} is missing")),
                    value,
                    &path,
                );
            }
        }
        (Value::Array(actual), Value::Array(expected)) => {
            assert_eq!(actual.len(), expected.len(), "{path}");
            for (at, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                assert_contains(actual, expected, &format!("{path}[{at}]"));
            }
        }
        (actual, expected) => assert_eq!(actual, expected, "{path}"),
    }
}

/// The same keys, roles, kinds of content and schema; the words are ours.
fn compare_requests(ours: &Value, theirs: &Value) {
    let keys = |value: &Value| {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(ours), keys(theirs));
    assert_eq!(ours["model"], theirs["model"]);
    let shape = |body: &Value| -> Vec<(Value, bool)> {
        let messages = body["messages"].as_array().unwrap().iter();
        messages
            .map(|m| (m["role"].clone(), m["content"].is_string()))
            .collect()
    };
    assert_eq!(shape(ours), shape(theirs));
    let (our_format, their_format) = (&ours["response_format"], &theirs["response_format"]);
    assert_eq!(our_format["type"], their_format["type"]);
    let (our_schema, their_schema) = (&our_format["json_schema"], &their_format["json_schema"]);
    assert_eq!(our_schema["strict"], their_schema["strict"]);
    for key in ["type", "required", "additionalProperties"] {
        assert_eq!(
            our_schema["schema"][key], their_schema["schema"][key],
            "{key}"
        );
    }
    let properties = |schema: &Value| -> Vec<(String, Value)> {
        let properties = schema["schema"]["properties"].as_object().unwrap().iter();
        properties
            .map(|(name, property)| (name.clone(), property["type"].clone()))
            .collect()
    };
    assert_eq!(properties(our_schema), properties(their_schema));
}

#[tokio::test]
async fn an_unchanged_world() {
    let Some(golden) = golden() else { return };
    for run in ["loop", "errors"] {
        graded(&golden, run, None).await;
    }
}

#[tokio::test]
async fn a_changed_world() {
    let Some(golden) = golden() else { return };
    let worlds = golden.join("reference-run/grading/diff");
    let (grades, request) = graded(&golden, "diff", Some(&worlds)).await;
    // The names and their order are in the reference's grades.json; this is what the judge sees.
    assert_eq!(grades.coverage.unwrap().judged, 1);
    let prompt = request["messages"][1]["content"].as_str().unwrap();
    for path in [
        "blob.bin",
        "report.txt",
        "data/t.csv",
        "notes/a.txt",
        "gone.txt",
    ] {
        assert!(prompt.contains(&format!("path: \"{path}\"")), "{path}");
    }
}
