//! The grader as scripts of the reference use it: flags, files, exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A folder with all input files: one file was created, and the answer is `42`.
struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new(verifiers: &Value) -> Self {
        let case = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        case.zip("before.zip", &[("filesystem/a.txt", "one\n")]);
        case.zip(
            "after.zip",
            &[("filesystem/a.txt", "one\n"), ("filesystem/b.txt", "two\n")],
        );
        case.write(
            "trajectory.json",
            &json!({
                "messages": [
                    {"role": "user", "content": "What is six times seven?"},
                    {"role": "assistant", "content": "42"}
                ],
                "output": null, "status": "completed", "time_elapsed": 1.5, "usage": null,
                "final_answer": null
            }),
        );
        case.write("verifiers.json", verifiers);
        case.write(
            "evals.json",
            &json!([
                {"eval_config_id": "pattern", "eval_config_name": "Pattern", "eval_defn_id": "pattern_match_check", "eval_config_values": {}},
                {"eval_config_id": "judged", "eval_config_name": "Judged", "eval_defn_id": "output_llm", "eval_config_values": {}}
            ]),
        );
        case.write(
            "settings.json",
            &json!({"llm_judge_model": "scripted/judge.json"}),
        );
        case.write(
            "judge.json",
            &json!({"rules": [{"when": {"any_message_contains": "The answer is 42"},
                "reply": {"json": {"rationale": "It says 42.", "is_criteria_true": true}}}]}),
        );
        case.write(
            "scoring.json",
            &json!({"scoring_config_id": "s", "scoring_config_name": "Average",
                "scoring_defn_id": "template", "scoring_config_values": {}}),
        );
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.path(name), content.to_string()).unwrap();
    }

    fn zip(&self, name: &str, files: &[(&str, &str)]) {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(self.path(name)).unwrap());
        for (path, text) in files {
            zip.start_file(*path, zip::write::SimpleFileOptions::default())
                .unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
    }

    fn grade(&self, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_archipelago-grader"))
            .env_clear()
            .current_dir(self.folder.path())
            .args(["--grading-run-id", "gr_1", "--trajectory-id", "t_1"])
            .args([
                "--initial-snapshot",
                "before.zip",
                "--final-snapshot",
                "after.zip",
            ])
            .args([
                "--trajectory",
                "trajectory.json",
                "--grading-settings",
                "settings.json",
            ])
            .args([
                "--verifiers",
                "verifiers.json",
                "--eval-configs",
                "evals.json",
            ])
            .args(["--scoring-config", "scoring.json"])
            .args(more)
            .output()
            .unwrap()
    }

    fn grades(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path("out/grades.json")).unwrap())
            .unwrap()
    }
}

fn verifier(id: &str, config: &str, values: Value) -> Value {
    json!({
        "verifier_id": id, "verifier_version": 3, "world_id": null, "task_id": "t",
        "eval_config_id": config, "verifier_values": values, "verifier_index": 0,
        "verifier_dependencies": null
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn answers_42() -> Value {
    json!({"pattern": "^42$", "search_target": "final_answer"})
}

#[test]
fn grades_have_the_references_keys_in_the_verifiers_order() {
    let case = Case::new(&json!([
        verifier("judged", "judged", json!({"criteria": "The answer is 42"})),
        verifier("pattern", "pattern", answers_42()),
        verifier(
            "wrong",
            "pattern",
            json!({"pattern": "43", "search_target": "final_answer"})
        ),
    ]));
    let done = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let grades = case.grades();
    let keys: Vec<&String> = grades.as_object().unwrap().keys().take(4).collect();
    assert_eq!(
        keys,
        [
            "grading_run_id",
            "grading_run_status",
            "verifier_results",
            "scoring_results"
        ]
    );
    assert_eq!(grades["grading_run_id"], "gr_1");
    assert_eq!(grades["grading_run_status"], "completed");
    let results: Vec<(&str, f64)> = grades["verifier_results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            assert_eq!(result["verifier_version"], 3);
            (
                result["verifier_id"].as_str().unwrap(),
                result["score"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(results, [("judged", 1.0), ("pattern", 1.0), ("wrong", 0.0)]);
    let score = grades["scoring_results"]["final_score"].as_f64().unwrap();
    assert!((score - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(
        grades["verifier_results"][0]["verifier_result_values"]["grade_rationale"],
        "It says 42."
    );
}

#[test]
fn everything_is_checked_before_the_judge_is_asked() {
    let case = Case::new(&json!([
        verifier("a", "nowhere", json!({})),
        verifier("a", "pattern", answers_42()),
    ]));
    case.write(
        "settings.json",
        &json!({"llm_judge_model": "openai/gpt-4.1"}),
    );
    case.write(
        "scoring.json",
        &json!({"scoring_config_id": "s", "scoring_config_name": "s", "scoring_defn_id": "guess",
            "scoring_config_values": {}}),
    );
    let done = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    for part in ["nowhere", "guess", "`a`"] {
        assert!(
            stderr(&done).contains(part),
            "no {part:?} in {}",
            stderr(&done)
        );
    }
    assert!(!case.path("out").exists(), "something was written");
    let done = case.grade(&["--reference-exit-codes"]);
    assert_eq!(done.status.code(), Some(1));
}

/// Documents are to be shown as pictures, and `PATH` leads to no program that draws them.
#[test]
fn without_the_programs_that_a_verifier_needs_nobody_is_asked() {
    let values = json!({"criteria": "It is tidy", "enable_visual_grading": true});
    let case = Case::new(&json!([verifier("v2", "seen", values)]));
    case.write(
        "evals.json",
        &json!([
            {"eval_config_id": "judged", "eval_config_name": "Judged", "eval_defn_id": "output_llm", "eval_config_values": {}},
            {"eval_config_id": "seen", "eval_config_name": "Seen", "eval_defn_id": "output_llm_multi_representation", "eval_config_values": {}}
        ]),
    );
    let output = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for program in ["`soffice` (LibreOffice)", "`pdftoppm` (poppler-utils)"] {
        let told = format!("verifier `v2`, `enable_visual_grading`: needs {program}");
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    }
    assert!(!case.path("out").exists(), "something was written");
}

#[test]
fn a_judge_without_credentials_is_told_with_its_variable() {
    let case = Case::new(&json!([verifier(
        "j",
        "judged",
        json!({"criteria": "The answer is 42"})
    )]));
    case.write(
        "settings.json",
        &json!({"llm_judge_model": "openai/gpt-4.1"}),
    );
    let done = case.grade(&[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        stderr(&done).contains("OPENAI_API_KEY"),
        "{}",
        stderr(&done)
    );
}

#[test]
fn missing_and_malformed_files_are_named() {
    let case = Case::new(&json!([]));
    std::fs::remove_file(case.path("after.zip")).unwrap();
    let done = case.grade(&[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        stderr(&done).contains("`--final-snapshot` `after.zip`"),
        "{}",
        stderr(&done)
    );

    let case = Case::new(&json!([]));
    std::fs::write(case.path("evals.json"), "[{]").unwrap();
    let done = case.grade(&[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        stderr(&done).contains("eval configurations `evals.json`, line 1, column 3"),
        "{}",
        stderr(&done)
    );
}

/// Pitfall A11: what the judge does not answer is an error, not a fail; the others keep theirs, and
/// `--only-errors` judges just it.
#[test]
fn an_error_is_no_fail_and_is_graded_again_alone() {
    let case = Case::new(&json!([
        verifier("pattern", "pattern", answers_42()),
        verifier("judged", "judged", json!({"criteria": "The answer is 43"})),
    ]));
    let done = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let grades = case.grades();
    assert_eq!(grades["grading_run_status"], "error");
    assert_eq!(grades["verifier_results"][0]["score"], 1.0);
    assert_eq!(grades["verifier_results"][1]["status"], "error");
    assert_eq!(grades["coverage"]["errors"], 1);
    assert_ne!(
        grades["scoring_results"]["scoring_method_result_values"]["error"],
        ""
    );

    let again = case.grade(&["--output", "out/grades.json", "--reference-exit-codes"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    case.write(
        "judge.json",
        &json!({"rules": [{"when": {"any_message_contains": "The answer is 43"},
            "reply": {"json": {"rationale": "It says 42.", "is_criteria_true": false}}}]}),
    );
    // The one that was judged is not judged again: its eval could not even be found.
    let again = case.grade(&["--output", "out/grades.json", "--only-errors"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(!stderr(&again).contains("pattern:"), "{}", stderr(&again));
    let grades = case.grades();
    assert_eq!(grades["verifier_results"][1]["score"], 0.0);
    assert_eq!(grades["scoring_results"]["final_score"], 0.5);
}

/// All forms of a snapshot are the same to the grader.
#[test]
fn a_folder_and_an_archive_give_the_same_grades() {
    let verifiers = json!([verifier(
        "j",
        "judged",
        json!({"criteria": "The answer is 42"})
    )]);
    let case = Case::new(&verifiers);
    let first = case.grade(&[]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let folder = case.path("after/filesystem");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "one\n").unwrap();
    std::fs::write(folder.join("b.txt"), "two\n").unwrap();
    std::fs::remove_file(case.path("after.zip")).unwrap();
    std::fs::rename(case.path("after"), case.path("after.zip")).unwrap();
    let second = case.grade(&[]);
    let strip = |output: &Output| -> Value {
        let mut grades: Value = serde_json::from_slice(&output.stdout).unwrap();
        // Token counts differ where a random delimiter does.
        grades.as_object_mut().unwrap().remove("judge_usage");
        grades
    };
    assert_eq!(strip(&first), strip(&second));
}

#[test]
fn a_recorded_judge_is_played_though_its_prompts_are_marked_anew() {
    let case = Case::new(&json!([verifier(
        "judged",
        "judged",
        json!({"criteria": "The answer is 42"})
    )]));
    let done = case.grade(&["--record", "tape", "--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let recorded = case.grades();
    case.write("settings.json", &json!({"llm_judge_model": "replay/tape"}));
    case.write("judge.json", &json!([]));
    let done = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let played = case.grades();
    assert_eq!(
        played["verifier_results"][0]["score"],
        recorded["verifier_results"][0]["score"]
    );
    assert_eq!(played["verifier_results"][0]["score"], 1.0);

    // Another criterion was not asked about.
    case.write(
        "verifiers.json",
        &json!([verifier(
            "judged",
            "judged",
            json!({"criteria": "The answer is 43"})
        )]),
    );
    let done = case.grade(&["--output", "out/grades.json"]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let message = case.grades()["verifier_results"][0]["message"].to_string();
    assert!(
        message.contains("43") && message.contains("nearest"),
        "{message}"
    );
}

#[test]
fn a_score_below_the_wanted_one_fails_and_text_is_for_people() {
    let case = Case::new(&json!([
        verifier("good", "pattern", answers_42()),
        verifier("bad", "pattern", json!({"pattern": "43"})),
    ]));
    for (least, code) in [("0.5", 0), ("0.51", 1), ("-1", 0)] {
        let done = case.grade(&["--fail-below", least, "--output", "out/grades.json"]);
        assert_eq!(done.status.code(), Some(code), "{least}: {}", stderr(&done));
        // The grades are those of a grading that worked.
        assert_eq!(case.grades()["grading_run_status"], "completed");
        assert!(done.stdout.is_empty());
    }
    let done = case.grade(&["--fail-below", "0.51", "--reference-exit-codes"]);
    assert_eq!(done.status.code(), Some(0));
    let done = case.grade(&["--fail-below", "much"]);
    assert_eq!(done.status.code(), Some(2));

    let done = case.grade(&["--format", "text"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "good  score 1",
            "bad  score 0",
            "2 of 2 verifiers judged, 1 passed, 0 errors, 0 left out",
            "score 0.5"
        ]
    );
}

#[test]
fn problems_are_told_with_file_and_line() {
    let case = Case::new(&json!([]));
    std::fs::write(
        case.path("verifiers.json"),
        "[\n  {\"verifier_id\": \"a\", \"world_id\": null, \"task_id\": \"t\", \"verifier_index\": 0,\n   \"eval_config_id\": \"pattern\",\n   \"verifier_values\": {\n     \"patern\": 1,\n     \"pattern\": \"(\"}}\n]",
    )
    .unwrap();
    let done = case.grade(&[]);
    assert_eq!(done.status.code(), Some(2));
    let text = stderr(&done);
    assert!(
        text.contains("`verifiers.json`, line 6: verifier `a`, `pattern`: must be a regular"),
        "{text}"
    );
}
