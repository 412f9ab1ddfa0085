//! Evals that run programs, and those that compare or count files.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;

async fn one(case: &mut Case, eval: &str, values: Value) -> VerifierResult {
    case.verifiers.clear();
    case.verifier(eval, values);
    case.result().await
}

fn shell(script: &str) -> Value {
    json!({"command": ["/bin/sh", "-c", script], "input": {"n": 7}})
}

#[tokio::test]
async fn a_program_gets_the_files_and_prints_a_verdict() {
    let mut case = Case::new("forty-two");
    case.worlds(
        &[("a.txt", b"old")],
        &[("a.txt", b"new"), (".apps_data/x/b.txt", b"app")],
    );
    let script = r#"
        test "$(cat initial/filesystem/a.txt)" = old || exit 3
        test "$(cat final/filesystem/a.txt)" = new || exit 4
        test "$(cat final/.apps_data/x/b.txt)" = app || exit 5
        test "$(cat answer.txt)" = forty-two || exit 6
        grep -q '"n":7' && echo noise
        echo '{"score": 0.25, "message": "a quarter", "values": {"found": 1}}'
        echo
    "#;
    let result = one(&mut case, "command", shell(script)).await;
    assert_eq!(result.status, VerifierStatus::Ok, "{result:?}");
    assert_eq!((result.score, result.message.as_str()), (0.25, "a quarter"));
    assert_eq!(result.verifier_result_values["found"], 1);
}

#[tokio::test]
async fn a_program_that_fails_is_an_error_not_a_fail() {
    let mut case = Case::new("");
    for (script, part) in [
        ("echo oops >&2; exit 3", "exit status: 3"),
        ("echo no verdict", "no JSON object"),
        (r#"echo '{"score": 9}'"#, "must be a number from -1 to 1"),
        ("true", "no JSON object"),
    ] {
        let result = one(&mut case, "command", shell(script)).await;
        assert_eq!(result.status, VerifierStatus::Error, "{script}");
        assert!(result.message.contains(part), "{}", result.message);
        assert_eq!(result.verifier_result_values["error_kind"], "sandbox");
    }
    let result = one(&mut case, "command", shell("echo oops >&2; exit 3")).await;
    assert_eq!(result.verifier_result_values["stderr"], "oops\n");
}

#[tokio::test]
async fn a_program_has_no_secrets_and_little_memory() {
    let mut case = Case::new("");
    let script = r#"
        count=$(env | grep -c -v -E '^(PATH|HOME|LANG|PWD|SHLVL|_|OLDPWD)=')
        echo "{\"passed\": $( [ "$count" = 0 ] && echo true || echo false ), \"values\": {\"limit\": $(ulimit -v)}}"
    "#;
    let mut values = shell(script);
    values["memory_mib"] = json!(64);
    let result = one(&mut case, "command", values).await;
    assert_eq!(result.score, 1.0, "{result:?}");
    assert_eq!(result.verifier_result_values["limit"], 64 * 1024);
}

/// Whether a process runs whose command line has `word`.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .any(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line)
                .split('\0')
                .any(|argument| argument == word)
        })
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
    for (number, rule) in [
        (1, eval::IsolationRule::Off),
        (2, eval::IsolationRule::WherePossible),
    ] {
        let mut case = Case::new("");
        case.isolation = rule;
        // A length of sleep that nobody else has; the child would outlive a shell that alone is killed.
        let length = format!("{}.{number}", 100_000_000 + u64::from(std::process::id()));
        let mut values = shell(&format!("sleep {length} & sleep 600"));
        values["timeout_seconds"] = json!(3);
        let running = async {
            while !runs(&length) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let started = tokio::time::timeout(std::time::Duration::from_secs(60), running);
        let (result, started) = tokio::join!(one(&mut case, "command", values), started);
        started.unwrap();
        assert_eq!(result.verifier_result_values["error_kind"], "timeout");
        for _ in 0..200 {
            if !runs(&length) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(!runs(&length), "`sleep {length}` is still alive");
    }
}

#[tokio::test]
async fn a_program_may_lie_in_the_task_folder() {
    let mut case = Case::new("");
    let values = json!({"command": ["/bin/sh", "{task}/check.sh"]});
    let result = one(&mut case, "command", values.clone()).await;
    assert!(
        result.message.contains("folder of the task"),
        "{}",
        result.message
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("check.sh"), r#"echo '{"passed": true}'"#).unwrap();
    case.task_folder = Some(folder.path().to_owned());
    assert_eq!(one(&mut case, "command", values).await.score, 1.0);
}

/// Whether tests of Python code can run here.
fn has_pytest(path: &std::ffi::OsStr) -> bool {
    let found = std::process::Command::new("python3")
        .args(["-c", "import pytest"])
        .env("PATH", path)
        .stderr(std::process::Stdio::null())
        .status();
    let found = found.is_ok_and(|status| status.success());
    testkit::available("a python3 with pytest", found)
}

#[tokio::test]
async fn python_tests_run_on_the_files() {
    let mut case = Case::new("");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !has_pytest(&path) {
        return;
    }
    case.program_path = path;
    case.worlds(&[], &[("out.txt", b"42")]);
    for (code, score) in [
        (
            "def test_out():\n    assert open('out.txt').read() == '42'\n",
            Some(1.0),
        ),
        (
            "def test_out():\n    assert open('out.txt').read() == '43'\n",
            Some(0.0),
        ),
        // The agent did not leave the file.
        ("def test_out():\n    open('missing.txt')\n", Some(0.0)),
        (
            "data = open('missing.txt').read()\ndef test_out():\n    pass\n",
            Some(0.0),
        ),
        // The author's mistake.
        ("def test_out(:\n", None),
        ("import no_such_module_of_the_author\n", None),
        ("", None),
    ] {
        let result = one(&mut case, "code_execution", json!({"unit_test_code": code})).await;
        match score {
            Some(score) => {
                assert_eq!(result.status, VerifierStatus::Ok, "{code}: {result:?}");
                assert_eq!(result.score, score, "{code}");
            }
            None => assert_eq!(result.status, VerifierStatus::Error, "{code}"),
        }
    }
}

#[tokio::test]
async fn without_pytest_the_tests_are_an_error() {
    let mut case = Case::new("");
    case.program_path = "/nowhere".into();
    let values = json!({"unit_test_code": "def test_x():\n    pass\n"});
    let result = one(&mut case, "code_execution", values).await;
    assert_eq!(result.status, VerifierStatus::Error);
    assert_eq!(result.verifier_result_values["error_kind"], "sandbox");
    // Code that the agent did not give is its fail, without any program.
    let values =
        json!({"unit_test_code": "def test_x():\n    pass\n", "solution_output_key": "code"});
    let result = one(&mut case, "code_execution", values).await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
}

/// A PDF of empty pages, written by hand.
fn pdf(pages: usize) -> Vec<u8> {
    let kids: Vec<String> = (0..pages).map(|n| format!("{} 0 R", n + 3)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {pages} >>",
            kids.join(" ")
        ),
    ];
    objects.extend(
        (0..pages).map(|_| "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 10 10] >>".to_owned()),
    );
    let mut text = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        offsets.push(text.len());
        text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = text.len();
    text.push_str(&format!(
        "xref\n0 {}\n0000000000 65535 f \n",
        objects.len() + 1
    ));
    for offset in offsets {
        text.push_str(&format!("{offset:010} 00000 n \n"));
    }
    text.push_str(&format!(
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    ));
    text.into_bytes()
}

#[tokio::test]
async fn pages_are_counted_for_each_file_or_together() {
    let mut case = Case::new("I wrote out/b.pdf.");
    let (two, three) = (pdf(2), pdf(3));
    case.worlds(
        &[],
        &[
            ("out/a.pdf", &two),
            ("out/b.pdf", &three),
            ("x.txt", b"x"),
            ("bad.pdf.zip", b"x"),
        ],
    );
    for (values, score) in [
        (json!({"min_count": 2, "max_count": "3"}), 1.0),
        (json!({"max_count": 2}), 0.0),
        (
            json!({"min_count": 5, "max_count": 5, "count_mode": "total"}),
            1.0,
        ),
        (json!({"file_name": "a.pdf", "max_count": 2}), 1.0),
        (json!({"file_name": "{{trajectory}}", "min_count": 3}), 1.0),
        (
            json!({"file_pattern": "filesystem/*.pdf", "min_count": 2}),
            1.0,
        ),
        (json!({"file_pattern": "*.txt", "min_count": 1}), 0.0),
        (json!({"file_pattern": "*.pptx", "min_count": 1}), 0.0),
    ] {
        let result = one(&mut case, "page_count_check", values.clone()).await;
        assert_eq!(result.status, VerifierStatus::Ok, "{result:?}");
        assert_eq!(result.score, score, "{values}: {result:?}");
    }
    let values = json!({"min_count": 5, "max_count": 5, "count_mode": "total"});
    let described = one(&mut case, "page_count_check", values)
        .await
        .verifier_result_values;
    assert_eq!(described["total_count"], 5);
    assert_eq!(described["unit"], "pages");
    assert_eq!(described["counts_by_unit"], json!({"pages": 5}));
    assert_eq!(
        described["files_checked"][0],
        json!({"file": "filesystem/out/a.pdf", "count": 2, "unit": "pages"})
    );
    let result = one(&mut case, "page_count_check", json!({})).await;
    assert_eq!(result.status, VerifierStatus::Error);
    let result = one(
        &mut case,
        "page_count_check",
        json!({"min_count": 3, "max_count": 2}),
    )
    .await;
    assert_eq!(result.status, VerifierStatus::Error);
}

#[tokio::test]
async fn the_letter_of_the_answer_counts() {
    let mut case = Case::new("So the answer is (C).");
    for (right, score) in [("C", 1.0), ("c", 1.0), ("B", 0.0)] {
        let values = json!({"mcq_correct_answer": right});
        let result = one(&mut case, "mcq_exact_match", values).await;
        assert_eq!(result.score, score);
        assert_eq!(result.verifier_result_values["extracted_answer"], "C");
    }
    let result = one(
        &mut case,
        "mcq_exact_match",
        json!({"mcq_correct_answer": "Z"}),
    )
    .await;
    assert_eq!(result.status, VerifierStatus::Error);
}

#[tokio::test]
async fn the_best_of_several_correct_end_states_counts() {
    let mut case = Case::new("");
    case.worlds(
        &[],
        &[
            ("out/a.txt", b"made at 2024-01-02T03:04:05Z"),
            ("b.txt", b"other"),
            ("c.txt", b"extra"),
        ],
    );
    let result = one(&mut case, "golden_file_match", json!({})).await;
    assert_eq!(
        result.status,
        VerifierStatus::Error,
        "there is nothing to compare with"
    );
    case.golden(&[("z.txt", b"none of it")]);
    case.golden(&[
        ("a.txt", b"made at 2025-11-12T13:14:15Z"),
        ("b.txt", b"wanted"),
    ]);
    let result = one(&mut case, "golden_file_match", json!({})).await;
    assert_eq!(result.score, 0.5, "{result:?}");
    let values = &result.verifier_result_values;
    assert_eq!(values["golden_snapshot"], 2);
    assert_eq!(values["missing_or_different"], json!(["b.txt"]));
    let result = one(
        &mut case,
        "golden_file_match",
        json!({"file_pattern": "a.*"}),
    )
    .await;
    assert_eq!(result.score, 1.0);
}

/// Whether programs are isolated on this machine.
fn isolated(result: &VerifierResult) -> bool {
    match result.verifier_result_values["isolation"].as_str().unwrap() {
        "bubblewrap" => true,
        "process_group_and_limits" => false,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_program_is_kept_from_the_machine_where_that_is_possible() {
    let mut case = Case::new("");
    let outside = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        r#"seen=false; [ -e {0} ] && seen=true
        wrote=false; (echo x >> {0}) 2>/dev/null && wrote=true
        echo x > mine && echo "{{\"passed\": true, \"values\": {{\"seen\": $seen, \"wrote\": $wrote, \"links\": $(ls /sys/class/net | wc -l)}}}}""#,
        outside.path().display()
    );
    let result = one(&mut case, "command", shell(&script)).await;
    assert_eq!(result.status, VerifierStatus::Ok, "{result:?}");
    let values = &result.verifier_result_values;
    let kept = isolated(&result);
    assert_eq!(values["seen"], !kept, "{result:?}");
    if kept {
        // What it wrote to went away with its own temporary folder.
        assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    }
    case.isolation = eval::IsolationRule::Off;
    let open = one(&mut case, "command", shell(&script)).await;
    assert!(!isolated(&open));
    assert_eq!(open.verifier_result_values["seen"], true);
    case.isolation = eval::IsolationRule::Required;
    let required = one(&mut case, "command", shell(&script)).await;
    if kept {
        assert!(isolated(&required));
    } else {
        assert_eq!(required.verifier_result_values["error_kind"], "sandbox");
    }
}

#[tokio::test]
async fn memory_and_time_of_a_program_end() {
    let mut case = Case::new("");
    let mut greedy =
        shell(r#"x=$(head -c 300000000 /dev/zero | tr '\0' a) && echo '{"passed": true}'"#);
    greedy["memory_mib"] = json!(64);
    let result = one(&mut case, "command", greedy).await;
    assert_eq!(
        result.verifier_result_values["error_kind"], "sandbox",
        "{result:?}"
    );
    let mut endless = shell("while :; do :; done");
    endless["timeout_seconds"] = json!(1);
    let result = one(&mut case, "command", endless).await;
    assert_eq!(
        result.verifier_result_values["error_kind"], "timeout",
        "{result:?}"
    );
}

async fn check(case: &mut Case, code: &str) -> VerifierResult {
    one(case, "llm_code_verifier", json!({"code": code})).await
}

#[tokio::test]
async fn a_function_of_the_author_looks_at_the_files() {
    let mut case = Case::new("forty-two");
    let crm = testkit::documents::database("create table t (n int); insert into t values (7);");
    case.worlds(
        &[],
        &[
            ("a/b.json", b"{\"n\": 1}"),
            ("c.txt", b"text"),
            (".apps_data/crm/data.db", &crm),
        ],
    );
    let code = r#"
import csv, json
from collections import Counter

def check(ctx):
    n = ctx.sqlite_connect(".apps_data/crm/data.db").execute("select n from t").fetchone()[0]
    right = [
        ctx.read_json("a/b.json")["n"] == 1,
        ctx.read_text("filesystem/c.txt") == "text",
        ctx.list_files("*.txt") == ["c.txt"],
        not ctx.exists("../../etc/passwd"),
        ctx.final_answer == "forty-two",
        ctx.trajectory[1]["content"] == "Do the task.",
        ctx.trajectory_status == "completed",
        n == 7,
    ]
    print("noise")
    return {"passed": all(right), "details": str(right), "metrics": {"n": n}}
"#;
    let result = check(&mut case, code).await;
    assert_eq!(
        (result.status, result.score),
        (VerifierStatus::Ok, 1.0),
        "{result:?}"
    );
    assert_eq!(result.verifier_result_values["metrics"], json!({"n": 7}));
    let stdout = result.verifier_result_values["stdout"].as_str().unwrap();
    assert!(stdout.contains("noise"));
    // What is not there is the agent's fail.
    let result = check(
        &mut case,
        "def check(ctx):\n    return {'passed': ctx.read_text('none.txt') == ''}",
    )
    .await;
    assert_eq!(
        (result.status, result.score),
        (VerifierStatus::Ok, 0.0),
        "{result:?}"
    );
    let details = result.verifier_result_values["details"].as_str().unwrap();
    assert!(details.contains("none.txt"), "{details}");
}

#[tokio::test]
async fn code_that_is_not_allowed_or_gives_no_verdict_is_an_error() {
    let mut case = Case::new("");
    for (code, kind, part) in [
        (
            "import os\ndef check(ctx): pass",
            "config",
            "import of `os`",
        ),
        (
            "from urllib import request\ndef check(ctx): pass",
            "config",
            "urllib",
        ),
        (
            "def check(ctx):\n    return ctx.__class__",
            "config",
            "__class__",
        ),
        (
            "def check(ctx):\n    return open('/etc/passwd')",
            "config",
            "`open`",
        ),
        ("def other(ctx): pass", "config", "no function `check`"),
        ("def check(ctx", "config", "cannot be parsed"),
        ("def check(ctx):\n    return True", "config", "not a dict"),
        (
            "def check(ctx):\n    while True: pass",
            "timeout",
            "timeout_s",
        ),
    ] {
        case.verifiers.clear();
        case.verifier("llm_code_verifier", json!({"code": code, "timeout_s": 2}));
        let result = case.result().await;
        assert_eq!(result.status, VerifierStatus::Error, "{code}: {result:?}");
        assert_eq!(
            result.verifier_result_values["error_kind"], kind,
            "{code}: {result:?}"
        );
        assert!(result.message.contains(part), "{code}: {}", result.message);
    }
    case.configs[0]["eval_config_values"] = json!({"max_code_length_chars": 10});
    let result = check(&mut case, "def check(ctx): return {}").await;
    assert!(
        result.message.contains("limit `max_code_length_chars`"),
        "{}",
        result.message
    );
}

#[tokio::test]
async fn a_program_with_too_many_processes_is_ended_with_all_of_them() {
    for (number, rule) in [
        (3, eval::IsolationRule::Off),
        (4, eval::IsolationRule::WherePossible),
    ] {
        let mut case = Case::new("");
        case.isolation = rule;
        let length = format!("{}.{number}", 200_000_000 + u64::from(std::process::id()));
        let mut values = shell(&format!(
            "n=0; while [ $n -lt 40 ]; do sleep {length} & n=$((n+1)); done; wait"
        ));
        values["processes"] = json!(20);
        values["timeout_seconds"] = json!(60);
        let result = one(&mut case, "command", values).await;
        assert_eq!(result.status, VerifierStatus::Error, "{result:?}");
        assert_eq!(result.verifier_result_values["error_kind"], "sandbox");
        assert!(
            result.message.ends_with("(limit `processes`: 20)"),
            "{}",
            result.message
        );
        for _ in 0..200 {
            if !runs(&length) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(!runs(&length), "`sleep {length}` is still alive");
        // A few are fine.
        let few = json!({
            "command": ["/bin/sh", "-c", "for n in 1 2 3 4 5; do sleep 0.3 & done; wait; echo '{\"passed\": true}'"],
            "processes": 20,
        });
        assert_eq!(one(&mut case, "command", few).await.score, 1.0);
    }
}

#[tokio::test]
async fn a_function_of_the_author_has_few_processes() {
    let mut case = Case::new("");
    let code = "import time\nfrom concurrent.futures import ProcessPoolExecutor\n\
        def check(ctx):\n    with ProcessPoolExecutor(36) as pool:\n        \
        for _ in range(36): pool.submit(time.sleep, 20)\n    return {'passed': True}\n";
    case.verifier("llm_code_verifier", json!({"code": code, "timeout_s": 15}));
    case.configs[0]["eval_config_values"] =
        json!({"allowed_imports": ["time", "concurrent.futures"]});
    let result = case.result().await;
    assert_eq!(result.status, VerifierStatus::Error, "{result:?}");
    assert!(
        result.message.ends_with("(limit `processes`: 32)"),
        "{}",
        result.message
    );
}
