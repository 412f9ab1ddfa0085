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

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
    let mut case = Case::new("");
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    // The child would outlive a shell that alone is killed.
    let script = format!("sleep 600 & echo $! > {}; sleep 600", mark.display());
    let mut values = shell(&script);
    values["timeout_seconds"] = json!(2);
    let result = one(&mut case, "command", values).await;
    assert_eq!(result.verifier_result_values["error_kind"], "timeout");
    let pid = std::fs::read_to_string(&mark).unwrap().trim().to_owned();
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    for _ in 0..100 {
        if gone() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("process {pid} is still alive");
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
    case.options.task_folder = Some(folder.path().to_owned());
    assert_eq!(one(&mut case, "command", values).await.score, 1.0);
}

/// Whether tests of Python code can run here.
fn has_pytest(path: &std::ffi::OsStr) -> bool {
    let found = std::process::Command::new("python3")
        .args(["-c", "import pytest"])
        .env("PATH", path)
        .stderr(std::process::Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return true;
    }
    let required = std::env::var("ARCHIPELAGO_REQUIRE").is_ok_and(|value| value == "all");
    assert!(!required, "python3 with pytest is needed");
    eprintln!("SKIPPED: no python3 with pytest");
    false
}

#[tokio::test]
async fn python_tests_run_on_the_files() {
    let mut case = Case::new("");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !has_pytest(&path) {
        return;
    }
    case.options.program_path = path;
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
    case.options.program_path = "/nowhere".into();
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
