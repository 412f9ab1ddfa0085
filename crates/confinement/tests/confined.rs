//! What a confined program gets, what it may not, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use confinement::{Confined, Group, Isolation, IsolationRule};

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn confined(folder: &Path) -> Confined<'_> {
    Confined {
        isolation: Isolation::None,
        folder,
        writable: folder,
        readable: &[],
        path: OsStr::new(PATH),
        memory: 1 << 30,
        cpu_seconds: 10,
        open_files: None,
        file_bytes: None,
    }
}

/// What a shell script comes to.
fn run(confined: Confined<'_>, script: &str) -> Output {
    let words = ["/bin/sh", "-c", script].map(OsString::from);
    let mut command = confined.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.output().unwrap()
}

#[test]
fn it_gets_three_variables_and_nothing_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = "env | grep -vE '^(PWD|OLDPWD|SHLVL|_)=' | sort; wc -c";
    let output = run(confined(folder.path()), script);
    let home = folder.path().display();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("HOME={home}\nLANG=C.UTF-8\nPATH={PATH}\n0\n")
    );
}

#[test]
fn limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Confined {
        memory: 300 << 20,
        cpu_seconds: 7,
        open_files: Some(33),
        file_bytes: Some(4096),
        ..confined(folder.path())
    };
    let output = run(
        asked,
        "ulimit -c; ulimit -v; ulimit -t; ulimit -n; ulimit -f",
    );
    let told = String::from_utf8(output.stdout).unwrap();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told, ["0", "307200", "7", "33", "8"]);
    let output = run(asked, "head -c 5000 /dev/zero > large; exit 0");
    assert!(output.status.success());
    let written = folder.path().join("large").metadata().unwrap().len();
    assert_eq!(written, 4096);
    // A limit above the machine's own cannot be set: the program is not run without it.
    let beyond = Confined {
        open_files: Some(u64::MAX),
        ..asked
    };
    let output = run(beyond, "echo ran");
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
}

#[test]
fn what_it_leaves_running_ends_with_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("left").display().to_string();
    let script = format!("sh -c 'sleep 60; :' {mark} & sleep 60");
    let words = ["/bin/sh", "-c", &script].map(OsString::from);
    let mut child = confined(folder.path()).command(&words).spawn().unwrap();
    let until = |there: bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while testkit::runs(&mark) != there {
            assert!(Instant::now() < deadline, "runs: {}", !there);
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    until(true);
    drop(Group::of(Some(child.id())));
    assert!(!child.wait().unwrap().success());
    until(false);
}

#[test]
fn isolated_it_sees_and_writes_what_it_is_given() {
    let works = Isolation::by(IsolationRule::Required);
    if !testkit::available("bubblewrap that may make namespaces", works.is_ok()) {
        return;
    }
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [own, given, other] = &folders;
    for folder in [given, other] {
        std::fs::write(folder.path().join("a.txt"), "words").unwrap();
    }
    let readable = [given.path()];
    let isolated = Confined {
        isolation: works.unwrap(),
        readable: &readable,
        ..confined(own.path())
    };
    let script = format!(
        "cat {given}/a.txt; cat {other}/a.txt; echo x > {given}/b.txt; echo y > made; cat made",
        given = given.path().display(),
        other = other.path().display()
    );
    let output = run(isolated, &script);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "wordsy\n");
    assert!(!given.path().join("b.txt").exists());
    assert!(own.path().join("made").exists());
}
