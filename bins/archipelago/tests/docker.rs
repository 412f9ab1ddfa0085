//! `--sandbox docker`, where an engine and the environment's image are there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::Path;
use std::process::Command;

use formats::diff::WorldDiff;
use formats::grades::Grades;
use formats::run::Summary;
use program::{Call, Ended, archipelago, example, read};

/// The image to test with; `None`, said aloud, where it cannot be had.
fn image() -> Option<String> {
    let image =
        std::env::var("ARCHIPELAGO_TEST_IMAGE").unwrap_or_else(|_| "archipelago-env".to_owned());
    let inspected = Command::new("docker")
        .args(["image", "inspect", &image])
        .output();
    let there = inspected.is_ok_and(|inspected| inspected.status.success());
    testkit::available(
        &format!("a container engine with the image `{image}`"),
        there,
    )
    .then_some(image)
}

/// A call that finds the engine of this machine.
fn call() -> Call {
    match std::env::var_os("DOCKER_HOST") {
        Some(host) => archipelago().env("DOCKER_HOST", host),
        None => archipelago(),
    }
}

fn run(task: &Path, output: &Path, sandbox: &[&str]) -> Ended {
    call()
        .arg("run")
        .arg(task)
        .arg("--output")
        .arg(output)
        .args(["--format", "json"])
        .args(sandbox)
        .end()
}

#[test]
fn a_task_has_the_same_grades_and_diff_as_in_a_process() {
    let Some(image) = image() else {
        return;
    };
    for name in ["simple_task", "edit_files"] {
        let folder = tempfile::tempdir().unwrap();
        let (process, docker) = (folder.path().join("process"), folder.path().join("docker"));
        let ended = run(&example(name), &process, &["--sandbox", "process"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let sandbox = ["--sandbox", "docker", "--image", &image];
        let ended = run(&example(name), &docker, &sandbox);
        assert_eq!(ended.code, 0, "{}", ended.stderr);

        let file = |run: &Path, file: &str| run.join("trials").join(name).join("1").join(file);
        let diff = |run: &Path| read::<WorldDiff>(&file(run, "diff.json"));
        assert_eq!(diff(&process), diff(&docker), "{name}");
        let scores = |run: &Path| {
            let grades: Grades = read(&file(run, "grades.json"));
            let verdicts: Vec<_> = grades
                .verifier_results
                .iter()
                .map(|result| (result.verifier_id.clone(), result.score, result.status))
                .collect();
            (verdicts, grades.scoring_results.final_score)
        };
        assert_eq!(scores(&process), scores(&docker), "{name}");
        let log = std::fs::read_to_string(file(&docker, "environment.log")).unwrap();
        assert!(log.contains("listening on http://0.0.0.0:8080"), "{log}");
    }
}

#[test]
fn eight_trials_run_side_by_side() {
    let Some(image) = image() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        "--sandbox",
        "docker",
        "--image",
        &image,
        "--attempts",
        "8",
        "--concurrency",
        "8",
    ];
    let ended = run(&example("edit_files"), &folder.path().join("run"), &flags);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary: Summary = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary.trials.len(), 8);
    assert_eq!(summary.mean_score, Some(1.0));
}

/// `docker compose` as the machine has it: a plugin, or the program of its own that came before.
fn compose() -> Option<Vec<&'static str>> {
    let spellings = [vec!["docker", "compose"], vec!["docker-compose"]];
    spellings.into_iter().find(|words| {
        let version = Command::new(words[0])
            .args(&words[1..])
            .arg("version")
            .output();
        version.is_ok_and(|version| version.status.success())
    })
}

#[test]
fn the_compose_file_starts_an_environment() {
    if image().is_none() {
        return;
    }
    let compose = compose();
    if !testkit::available("docker compose", compose.is_some()) {
        return;
    }
    let compose = compose.unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../compose.yaml");
    let project = format!("archipelago-test-{}", std::process::id());
    let call = |args: &[&str]| {
        let output = Command::new(compose[0])
            .args(&compose[1..])
            .args(["--file", file, "--project-name", &project])
            .args(args)
            .env("PUBLISH", "127.0.0.1:0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success(), printed, said)
    };
    let (started, _, said) = call(&["up", "--detach", "--no-build"]);
    let (_, address, _) = call(&["port", "environment", "8080"]);
    let healthy = std::iter::repeat_with(|| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let check = [
            "exec",
            "-T",
            "environment",
            "archipelago-env",
            "healthcheck",
        ];
        call(&check).0
    })
    .take(50)
    .any(|healthy| healthy);
    let ended = run(
        &example("simple_task"),
        &tempfile::tempdir().unwrap().path().join("run"),
        &["--sandbox", &format!("http://{address}")],
    );
    let (stopped, _, _) = call(&["down", "--volumes"]);
    assert!(started, "{said}");
    assert!(healthy, "the container does not become healthy");
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert!(stopped);
}

#[test]
fn without_an_engine_the_trial_fails_as_infrastructure() {
    let folder = tempfile::tempdir().unwrap();
    let ended = archipelago()
        .env("DOCKER_HOST", "unix:///no/such/engine")
        .arg("run")
        .arg(example("simple_task"))
        .arg("--output")
        .arg(folder.path().join("run"))
        .args(["--sandbox", "docker"])
        .end();
    assert_eq!(ended.code, 3, "{}\n{}", ended.stdout, ended.stderr);
    let told = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        told.contains("cannot reach the container engine at `unix:///no/such/engine`"),
        "{told}"
    );
}

#[test]
fn without_the_image_the_trial_fails_as_configuration() {
    if image().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sandbox = [
        "--sandbox",
        "docker",
        "--image",
        "archipelago-no-such-image",
    ];
    let ended = run(
        &example("simple_task"),
        &folder.path().join("run"),
        &sandbox,
    );
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    assert!(
        ended
            .stdout
            .contains("no image `archipelago-no-such-image`")
    );
}

#[test]
fn limits_without_docker_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let ended = run(&example("simple_task"), &output, &["--memory", "512m"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("need `--sandbox docker`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_image_is_built_from_the_root_of_the_repository_only() {
    let ended = archipelago().args(["image", "build"]).end();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("--context"), "{}", ended.stderr);
    if let Some(image) = image() {
        let ended = call().args(["image", "list"]).end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout.contains(&image), "{}", ended.stdout);
    }
}
