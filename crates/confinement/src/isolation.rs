//! How far a program is kept from the machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Group;

/// The program that makes namespaces without being root.
const BUBBLEWRAP: &str = "bwrap";

/// Folders that hold what belongs to people and other programs; they are empty inside.
const HIDDEN: [&str; 5] = ["/home", "/root", "/tmp", "/var/tmp", "/run"];

/// Time for the trial whether isolation works here.
const TRIAL: Duration = Duration::from_secs(10);

/// Whether programs must be isolated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IsolationRule {
    /// Where the machine allows it.
    #[default]
    WherePossible,
    /// Always: where it is not possible they are not run.
    Required,
    /// Never.
    Off,
}

impl FromStr for IsolationRule {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "where_possible" => Ok(Self::WherePossible),
            "required" => Ok(Self::Required),
            "off" => Ok(Self::Off),
            _ => Err("must be where_possible, required or off".to_owned()),
        }
    }
}

/// How a program is kept from the machine. A process group, limits on time and memory and a clean
/// environment it has in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Its own namespaces: no network, the machine's files for reading only, homes and temporary
    /// files of others hidden.
    Bubblewrap,
    /// Nothing more.
    None,
}

impl Isolation {
    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::None => "process_group_and_limits",
        }
    }

    /// What `rule` comes to on this machine. It is tried once; the first call may block for some
    /// milliseconds, at most 10 s.
    ///
    /// # Errors
    /// Why there is no isolation where it is required.
    pub fn by(rule: IsolationRule) -> Result<Self, String> {
        match (rule, works()) {
            (IsolationRule::Off, _) | (IsolationRule::WherePossible, Err(_)) => Ok(Self::None),
            (_, Ok(())) => Ok(Self::Bubblewrap),
            (IsolationRule::Required, Err(reason)) => {
                Err(format!("isolation is required and not possible: {reason}"))
            }
        }
    }

    /// The words to put in front of a command that may write in `writable`, and needs `readable`
    /// and the programs of `path`.
    pub(crate) fn prefix(self, writable: &Path, readable: &[&Path], path: &OsStr) -> Vec<OsString> {
        if self == Self::None {
            return Vec::new();
        }
        let mut words: Vec<OsString> = [
            BUBBLEWRAP,
            "--die-with-parent",
            "--unshare-all",
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
        ]
        .map(OsString::from)
        .to_vec();
        for hidden in HIDDEN {
            if Path::new(hidden).is_dir() {
                words.extend(["--tmpfs".into(), hidden.into()]);
            }
        }
        let programs = std::env::split_paths(path).filter_map(|folder| shown(&folder));
        let readable = readable.iter().map(|path| path.to_path_buf());
        for folder in programs.chain(readable).filter(|folder| is_hidden(folder)) {
            words.extend(["--ro-bind".into(), folder.clone().into(), folder.into()]);
        }
        words.extend([
            "--bind".into(),
            writable.into(),
            writable.into(),
            "--".into(),
        ]);
        words
    }
}

/// What has to be seen of a folder of programs: with `bin` also what lies beside it.
fn shown(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    Some(if folder.ends_with("bin") {
        folder.parent()?.to_path_buf()
    } else {
        folder
    })
}

fn is_hidden(folder: &Path) -> bool {
    HIDDEN
        .iter()
        .any(|hidden| folder.starts_with(hidden) && folder != Path::new(hidden))
}

/// Whether isolation works on this machine; tried once.
fn works() -> Result<(), String> {
    static WORKS: OnceLock<Result<(), String>> = OnceLock::new();
    WORKS.get_or_init(attempt).clone()
}

fn attempt() -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("`{BUBBLEWRAP}` cannot be run: {error}");
    let mut child = Command::new(BUBBLEWRAP)
        .args(["--die-with-parent", "--unshare-all"])
        .args(["--ro-bind", "/", "/", "--dev", "/dev"])
        .args([
            "--proc", "/proc", "--tmpfs", "/tmp", "--", "/bin/sh", "-c", ":",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| cannot(&error))?;
    // Killed while it sets its child up, it alone would leave the child waiting for ever.
    let group = Group::of(Some(child.id()));
    let deadline = Instant::now() + TRIAL;
    // What it may say fits into the pipe: it need not be read before the end.
    while child.try_wait().map_err(|error| cannot(&error))?.is_none() {
        if Instant::now() >= deadline {
            drop(group);
            let _ = child.wait();
            return Err(format!("`{BUBBLEWRAP}` did not answer"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().map_err(|error| cannot(&error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(format!("`{BUBBLEWRAP}` does not work here: {said}"))
}
