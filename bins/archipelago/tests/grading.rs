//! Grading from the command line: calibration, settings of evals, states that are right, limits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::Path;

use formats::grades::Grades;
use program::{archipelago, example, read};
use serde_json::{Value, json};

#[test]
fn the_example_of_calibration_is_measured() {
    let labels = example("calibration").join("labels.json");
    let ended = archipelago()
        .arg("calibrate")
        .arg(&labels)
        .args(["--format", "json"])
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let calibration = &found["calibration"];
    let cases: Vec<Value> = read(&labels);
    assert_eq!(found["cases"].as_array().unwrap().len(), cases.len());
    let count = |key: &str| calibration[key].as_u64().unwrap();
    let counts = [
        "true_positives",
        "false_positives",
        "false_negatives",
        "true_negatives",
    ]
    .map(count);
    assert_eq!(counts, [4, 1, 0, 3]);
    // Observed 7/8; by chance (4·5 + 4·3)/64 = 1/2; kappa (7/8 − 1/2)/(1/2) = 3/4; error
    // √(7/8·1/8/8)/(1/2) = 0.233854, times 1.96 = 0.458344.
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-6;
    assert!(near(&calibration["kappa"], 0.75), "{calibration}");
    assert!(
        near(&calibration["kappa_interval"][0], 0.291_655),
        "{calibration}"
    );
    assert_eq!(calibration["flip_rate"], 0.0);

    let text = archipelago().arg("calibrate").arg(&labels).end();
    assert_eq!(text.code, 0, "{}", text.stderr);
    for part in ["Cohen's kappa", "95 %", "flip rate"] {
        assert!(text.stdout.contains(part), "{}", text.stdout);
    }
    let missing = archipelago().args(["calibrate", "none.json"]).end();
    assert_eq!(missing.code, 2, "{}", missing.stderr);
}

#[test]
fn every_eval_and_scoring_method_has_a_schema() {
    let names = archipelago().arg("schema").end().stdout;
    let count = |kind: &str| names.lines().filter(|name| name.starts_with(kind)).count();
    assert!(
        count("eval/") > 40 && count("eval/") == count("eval-config/"),
        "{names}"
    );
    assert_eq!(count("scoring/"), 11);
    for (name, key) in [
        ("eval/sql_field_check", "params"),
        ("eval/pptx_style_verifier", "pptx_style_criteria"),
        ("eval-config/output_llm", "scattergunning_guard"),
        ("scoring/difficulty_weighted_average", "high_weight"),
    ] {
        let ended = archipelago().args(["schema", name]).end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(schema["properties"][key].is_object(), "{name}: {schema}");
    }
}

fn write(folder: &Path, name: &str, value: &Value) {
    std::fs::write(folder.join(name), value.to_string()).unwrap();
}

/// A task whose agent says a word and changes nothing.
fn task(folder: &Path, verifiers: &Value, configs: &Value) {
    write(
        folder,
        "initial_messages.json",
        &json!([{"role": "user", "content": "Say yes."}]),
    );
    write(
        folder,
        "orchestrator_config.json",
        &json!({"model": "scripted/script.json"}),
    );
    write(
        folder,
        "script.json",
        &json!({"turns": [{"content": "yes"}]}),
    );
    write(
        folder,
        "agent_config.json",
        &json!({"agent_config_id": "loop_agent", "agent_name": "a", "agent_config_values": {}}),
    );
    write(folder, "verifiers.json", verifiers);
    write(folder, "eval_configs.json", configs);
}

fn verifier(id: &str, eval: &str, values: &Value) -> Value {
    json!({
        "verifier_id": id, "world_id": null, "task_id": "t", "eval_config_id": eval,
        "verifier_values": values, "verifier_index": 0,
    })
}

fn config(eval: &str) -> Value {
    json!({
        "eval_config_id": eval, "eval_config_name": eval, "eval_defn_id": eval,
        "eval_config_values": {},
    })
}

#[test]
fn verifiers_are_tried_on_a_state_that_is_right() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("task");
    std::fs::create_dir_all(folder.join("right/filesystem")).unwrap();
    std::fs::write(folder.join("right/filesystem/report.md"), "total: 42\n").unwrap();
    let configs = json!([
        config("pattern_match_check"),
        config("file_diff_check"),
        config("mcq_exact_match"),
        config("tool_call_check"),
    ]);
    let found = verifier(
        "found",
        "pattern_match_check",
        &json!({"pattern": "42", "search_target": "files", "file_pattern": "*.md"}),
    );
    let made = verifier("made", "file_diff_check", &json!({"file_pattern": "*.md"}));
    let letter = verifier(
        "letter",
        "mcq_exact_match",
        &json!({"mcq_correct_answer": "B"}),
    );
    task(&folder, &json!([found, made, letter]), &configs);
    let try_it = || {
        archipelago()
            .arg("validate")
            .arg(&folder)
            .arg("--golden-snapshot")
            .arg(folder.join("right"))
            .end()
    };
    let ended = try_it();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    for line in ["found: score 1", "made: score 1", "letter: left out"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    // A check that fails on the right state is wrong; one on tool calls is not left out.
    let called = verifier(
        "called",
        "tool_call_check",
        &json!({"tool_name": "fs_write"}),
    );
    let wrong = verifier(
        "wrong",
        "file_diff_check",
        &json!({"file_pattern": "*.txt"}),
    );
    task(&folder, &json!([made, called, wrong]), &configs);
    let ended = try_it();
    assert_eq!(ended.code, 1, "{}\n{}", ended.stdout, ended.stderr);
    for line in ["called: score 0", "wrong: score 0"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
}

#[test]
fn limits_and_choices_of_grading_are_flags_of_run_and_grade() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("task");
    // A golden snapshot that lies in the task is compared with.
    std::fs::create_dir_all(folder.join("golden_snapshot/filesystem")).unwrap();
    std::fs::write(folder.join("golden_snapshot/filesystem/a.txt"), "x").unwrap();
    let verifiers = json!([
        verifier("good", "template", &json!({})),
        verifier(
            "bad",
            "command",
            &json!({"command": ["/bin/sh", "-c", "exit 3"]})
        ),
        verifier(
            "golden",
            "golden_file_match",
            &json!({"file_pattern": "*.txt"})
        ),
        verifier("judged", "output_llm", &json!({"criteria": "says yes"})),
    ]);
    let configs = json!([
        config("template"),
        config("command"),
        config("golden_file_match"),
        config("output_llm"),
    ]);
    task(&folder, &verifiers, &configs);
    write(
        &folder,
        "grading_settings.json",
        &json!({"llm_judge_model": "scripted/judge.json"}),
    );
    let rule = json!({"when": {"any_message_contains": "says yes"}, "reply": {"json": {"rationale": "r", "is_criteria_true": true}}});
    write(&folder, "judge.json", &json!({"rules": [rule]}));
    let run = home.path().join("run");
    let cache = home.path().join("cache");
    let ended = archipelago()
        .arg("run")
        .arg(&folder)
        .arg("--output")
        .arg(&run)
        .args(["--on-verifier-error", "exclude", "--judge-votes", "3"])
        .arg("--judge-cache")
        .arg(&cache)
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let path = run.join("trials/task/1/grades.json");
    let grades: Grades = read(&path);
    let of = |id: &str| {
        let mut results = grades.verifier_results.iter();
        results.find(|result| result.verifier_id == id).unwrap()
    };
    assert_eq!(of("judged").verifier_result_values["judge_split"]["met"], 3);
    assert_eq!(of("golden").score, 0.0);
    // The mean of 1, 0 and 1: the program that failed has no part in it.
    let score = grades.scoring_results.final_score;
    assert!((score - 2.0 / 3.0).abs() < 1e-9, "{grades:?}");
    let values = &grades.scoring_results.scoring_method_result_values;
    assert_eq!(values["verifier_errors"], 1);
    assert!(cache.is_dir());

    let again = archipelago()
        .arg("grade")
        .arg(&run)
        .args(["--on-verifier-error", "score_as_zero", "--judge-votes", "3"])
        .arg("--judge-cache")
        .arg(&cache)
        .end();
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
    let grades: Grades = read(&path);
    assert!(
        (grades.scoring_results.final_score - 0.5).abs() < 1e-9,
        "{grades:?}"
    );
    let line = "task/1  score 0.5  (3 of 4 verifiers judged)";
    assert!(again.stdout.contains(line), "{}", again.stdout);
    // The judge was not asked again.
    assert_eq!(grades.judge_usage.unwrap().cached_answers, 3);

    // By default an error leaves no score, and the exit code says so.
    let ended = archipelago()
        .arg("grade")
        .arg(&run)
        .args(["--only", "errors"])
        .end();
    assert_eq!(ended.code, 1, "{}\n{}", ended.stdout, ended.stderr);
    let line = "task/1  no score: 3 of 4 verifiers judged, errors: 1";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);

    for wrong in [
        ["--on-verifier-error", "sometimes"],
        ["--judge-panel", "nobody/nothing"],
        ["--verifier-isolation", "maybe"],
        ["--judge-votes", "0"],
    ] {
        let ended = archipelago().arg("grade").arg(&run).args(wrong).end();
        assert_eq!(ended.code, 2, "{wrong:?}: {}", ended.stderr);
    }
}

#[test]
fn validate_tells_the_file_and_the_line() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("task");
    std::fs::create_dir(&folder).unwrap();
    let configs = json!([config("pattern_match_check"), config("template")]);
    task(&folder, &json!([]), &configs);
    std::fs::write(
        folder.join("verifiers.json"),
        r#"[
  {
    "verifier_id": "first", "world_id": null, "task_id": "t", "verifier_index": 0,
    "eval_config_id": "pattern_match_check",
    "verifier_values": {
      "patern": "x",
      "pattern": "("
    }
  },
  {
    "verifier_id": "second", "world_id": null, "task_id": "t", "verifier_index": 1,
    "eval_config_id": "nowhere",
    "verifier_values": {}
  }
]
"#,
    )
    .unwrap();
    std::fs::write(
        folder.join("scoring_config.json"),
        "{\"scoring_config_id\": \"s\", \"scoring_config_name\": \"s\",\n \"scoring_config_values\": {\n  \"a\": 1\n },\n \"scoring_defn_id\": \"guess\"}",
    )
    .unwrap();
    let ended = archipelago().arg("validate").arg(&folder).end();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let at = |file: &str, line: u32, what: &str| {
        format!(
            "error: `{}`, line {line}: {what}",
            folder.join(file).display()
        )
    };
    for part in [
        at("verifiers.json", 7, "verifier `first`, `pattern`: must be"),
        at(
            "verifiers.json",
            12,
            "verifier `second`, `eval_config_id`: no",
        ),
        at(
            "scoring_config.json",
            5,
            "scoring config, `scoring_defn_id`: ",
        ),
    ] {
        assert!(ended.stderr.contains(&part), "{part}\n{}", ended.stderr);
    }
    // What is only a warning has its line too.
    task(
        &folder,
        &json!([verifier("v", "template", &json!({"odd": 1}))]),
        &configs,
    );
    std::fs::remove_file(folder.join("scoring_config.json")).unwrap();
    let ended = archipelago().arg("validate").arg(&folder).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let warning = format!(
        "warning: `{}`, line 1: verifier `v`, `odd`: unknown key",
        folder.join("verifiers.json").display()
    );
    assert!(ended.stderr.contains(&warning), "{}", ended.stderr);
}

#[test]
fn a_cancelled_grading_keeps_the_former_grades() {
    let home = tempfile::tempdir().unwrap();
    let verifiers = json!([
        verifier("quick", "template", &json!({})),
        verifier("program", "command", &json!({"command": ["checker"]})),
    ]);
    let configs = json!([config("template"), config("command")]);
    // A program that only the user's own PATH has.
    let programs = home.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let write_checker = |script: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = programs.join("checker");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write_checker("echo '{\"passed\": true}'");
    let mut path = programs.clone().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut call = archipelago().env("PATH", &path).arg("run");
    for name in ["one", "two"] {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        task(&folder, &verifiers, &configs);
        call = call.arg(folder);
    }
    let run = home.path().join("run");
    let ended = call.arg("--output").arg(&run).end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let grades = |name: &str| {
        std::fs::read_to_string(run.join(format!("trials/{name}/1/grades.json"))).unwrap()
    };
    let before = [grades("one"), grades("two")];
    let score = |text: &str| {
        serde_json::from_str::<Grades>(text)
            .unwrap()
            .scoring_results
    };
    assert_eq!(score(&before[0]).final_score, 1.0, "{}", before[0]);

    write_checker("exec sleep 600");
    let mut running = archipelago()
        .env("PATH", &path)
        .arg("grade")
        .arg(&run)
        .start();
    running.line_with("one/1  quick: score 1");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!([grades("one"), grades("two")], before);
    let summary: Value = read(&run.join("summary.json"));
    assert_eq!(summary["mean_score"], 1.0, "{summary}");
}

/// After a change of the scoring, a score is computed again from what the judge said before.
#[test]
fn a_change_of_the_scoring_needs_no_judge() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("task");
    std::fs::create_dir(&folder).unwrap();
    let mut judged = verifier("judged", "output_llm", &json!({"criteria": "says yes"}));
    judged["verifier_values"]["is_primary_objective"] = json!(false);
    let verifiers = json!([
        judged,
        verifier("missing", "pattern_match_check", &json!({"pattern": "no"})),
    ]);
    task(
        &folder,
        &verifiers,
        &json!([config("output_llm"), config("pattern_match_check")]),
    );
    write(
        &folder,
        "grading_settings.json",
        &json!({"llm_judge_model": "scripted/judge.json"}),
    );
    let verdict = json!({"rationale": "r", "is_criteria_true": true});
    write(
        &folder,
        "judge.json",
        &json!({"turns": [{"json": verdict}]}),
    );
    let run = home.path().join("run");
    let ended = archipelago()
        .arg("run")
        .arg(&folder)
        .arg("--output")
        .arg(&run)
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let grades = || -> Grades { read(&run.join("trials/task/1/grades.json")) };
    assert_eq!(grades().scoring_results.final_score, 0.5);
    // 1·2 of 2 + 4 points; a judge that is asked has nothing to say.
    write(
        &folder,
        "scoring_config.json",
        &json!({
            "scoring_config_id": "s", "scoring_config_name": "s", "scoring_config_values": {},
            "scoring_defn_id": "task_score_and_universal_penalty_weighted_sum",
        }),
    );
    let nothing =
        json!({"when": {"any_message_contains": "never said"}, "reply": {"content": "x"}});
    write(&folder, "judge.json", &json!({"rules": [nothing]}));
    let ended = archipelago()
        .arg("grade")
        .arg(&run)
        .args(["--only", "errors"])
        .end();
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let score = grades().scoring_results.final_score;
    assert!((score - 2.0 / 6.0).abs() < 1e-9, "{score}");
    assert_eq!(grades().judge_usage.unwrap().calls, 1);
    let summary: Value = read(&run.join("summary.json"));
    assert!((summary["mean_score"].as_f64().unwrap() - 2.0 / 6.0).abs() < 1e-9);
}

#[test]
fn a_judge_of_the_models_own_family_is_warned_of() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("task");
    std::fs::create_dir(&folder).unwrap();
    let judged = verifier("judged", "output_llm", &json!({"criteria": "says yes"}));
    task(&folder, &json!([judged]), &json!([config("output_llm")]));
    let stderr = |model: &str, judge: &str| {
        write(
            &folder,
            "orchestrator_config.json",
            &json!({"model": model}),
        );
        write(
            &folder,
            "grading_settings.json",
            &json!({"llm_judge_model": judge}),
        );
        let ended = archipelago()
            .env("ANTHROPIC_API_KEY", "k")
            .env("OPENROUTER_API_KEY", "k")
            .env("OPENAI_API_KEY", "k")
            .arg("validate")
            .arg(&folder)
            .end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stderr
    };
    let warned = stderr(
        "anthropic/claude-sonnet-5",
        "openrouter/anthropic/claude-opus-5",
    );
    assert!(
        warned.contains("are both Claude: judges favour"),
        "{warned}"
    );
    let other = stderr("anthropic/claude-sonnet-5", "openai/gpt-5");
    assert!(!other.contains("judges favour"), "{other}");
}
