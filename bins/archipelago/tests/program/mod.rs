//! Running the program as a user does, with a time limit and a look at what it leaves behind.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

/// Longest time that one call may take; far above what any of them needs.
const LIMIT: Duration = Duration::from_secs(120);

/// A call of `archipelago`.
pub(crate) struct Call {
    command: Command,
    mark: String,
    folder: tempfile::TempDir,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A call of the program, with no credentials in its environment and a folder of its own for
/// temporary files.
pub(crate) fn archipelago() -> Call {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago"));
    // The temporary folder is named in FILESYSTEM_ROOT and in the arguments of what is started.
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Call {
        mark: folder.path().display().to_string(),
        command,
        folder,
    }
}

impl Call {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts the call and leaves it running.
    pub(crate) fn start(mut self) -> Running {
        let child = self.command.spawn().unwrap();
        Running {
            child,
            mark: self.mark,
            folder: self.folder,
        }
    }

    /// Runs the call to its end and checks that nothing of it is left.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }
}

/// A call that runs.
pub(crate) struct Running {
    child: Child,
    mark: String,
    folder: tempfile::TempDir,
}

impl Running {
    /// Sends `signal`, such as `INT`.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([format!("-{signal}"), self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// The first line on stderr with `text` in it.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            let read = std::io::Read::read(stderr, &mut byte).unwrap();
            assert!(read == 1, "the program ended without saying `{text}`");
            if byte[0] != b'\n' {
                line.push(byte[0]);
                continue;
            }
            let whole = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
            if whole.contains(text) {
                return whole;
            }
        }
    }

    /// Waits for the end and checks that no process and no temporary folder is left.
    pub(crate) fn end(mut self) -> Ended {
        let mut stdout = self.child.stdout.take().unwrap();
        let mut stderr = self.child.stderr.take().unwrap();
        let out = std::thread::spawn(move || text(&mut stdout));
        let err = std::thread::spawn(move || text(&mut stderr));
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > LIMIT => {
                    let _ = self.child.kill();
                    panic!("the program runs for more than {LIMIT:?}");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let ended = Ended {
            code: status.code().unwrap_or(-1),
            stdout: out.join().unwrap(),
            stderr: err.join().unwrap(),
        };
        let left = wait_for_no_process(&self.mark);
        assert!(left.is_empty(), "left behind: {left:?}\n{}", ended.stderr);
        let files: Vec<PathBuf> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("runs"))
            .collect();
        assert!(files.is_empty(), "left behind: {files:?}\n{}", ended.stderr);
        ended
    }
}

fn text(from: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The processes whose environment names `mark`, after a moment to end.
pub(crate) fn wait_for_no_process(mark: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = processes(mark);
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn processes(mark: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            path.file_name()?.to_str()?.parse::<u32>().ok()?;
            let environment = std::fs::read(path.join("environ")).ok()?;
            let command = std::fs::read(path.join("cmdline")).ok()?;
            let names = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(mark);
            (names(&environment) && !command.is_empty()).then(|| {
                format!(
                    "{} {}",
                    path.display(),
                    String::from_utf8_lossy(&command).replace('\0', " ")
                )
            })
        })
        .collect()
}

/// The folder of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

/// Copies the files of the folder `from` to the folder `to`, which may have to be made.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A copy of an example in `folder`, for the model `model` with a medium effort.
pub(crate) fn example_for(model: &str, name: &str, folder: &Path) -> PathBuf {
    let task = folder.join(name);
    copy_files(&example(name), &task);
    let orchestrator =
        serde_json::json!({"model": model, "extra_args": {"reasoning_effort": "medium"}});
    let path = task.join("orchestrator_config.json");
    std::fs::write(path, orchestrator.to_string()).unwrap();
    task
}

/// What the hint of `archipelago stub` sets, a region for AWS, and a project for Google Cloud.
pub(crate) fn variables_of_stub(hint: &str) -> impl Fn(&str) -> Option<String> + use<> {
    let (_, hint) = hint.split_once("use it with ").unwrap();
    let (base, key) = hint.trim().split_once(" and any ").unwrap();
    let (variable, base) = base.split_once('=').unwrap();
    let (variable, base, key) = (variable.to_owned(), base.to_owned(), key.to_owned());
    move |name| match name {
        "AWS_REGION" => Some("us-east-1".to_owned()),
        "VERTEXAI_PROJECT" => Some("mine".to_owned()),
        name if name == variable => Some(base.clone()),
        name if name == key => Some("any".to_owned()),
        _ => None,
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The document at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The documents at `path`, one per line.
pub(crate) fn lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{path:?}: {error}"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
