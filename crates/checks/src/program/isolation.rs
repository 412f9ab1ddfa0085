//! How far a program of a task's author is kept from the machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use eval::IsolationRule;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::Group;

/// The program that makes namespaces without being root.
const BUBBLEWRAP: &str = "bwrap";

/// Folders that hold what belongs to people and other programs; they are empty inside.
const HIDDEN: [&str; 5] = ["/home", "/root", "/tmp", "/var/tmp", "/run"];

/// Time for the trial whether isolation works here.
const TRIAL: Duration = Duration::from_secs(10);

/// How a program was kept from the machine. A process group, limits on time and memory and a clean
/// environment it had in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Its own namespaces: no network, the machine's files for reading only, homes and temporary
    /// files of others hidden.
    Bubblewrap,
    /// Nothing more.
    None,
}

impl Isolation {
    /// The word in results.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::None => "process_group_and_limits",
        }
    }

    /// What `rule` comes to on this machine.
    pub(crate) async fn by(rule: IsolationRule) -> Result<Self, String> {
        match rule {
            IsolationRule::Off => Ok(Self::None),
            IsolationRule::WherePossible if works().await.is_err() => Ok(Self::None),
            IsolationRule::WherePossible => Ok(Self::Bubblewrap),
            IsolationRule::Required => match works().await {
                Ok(()) => Ok(Self::Bubblewrap),
                Err(reason) => Err(format!("isolation is required and not possible: {reason}")),
            },
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
async fn works() -> Result<(), String> {
    static WORKS: OnceCell<Result<(), String>> = OnceCell::const_new();
    WORKS.get_or_init(|| Box::pin(attempt())).await.clone()
}

async fn attempt() -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("`{BUBBLEWRAP}` cannot be run: {error}");
    let child = Command::new(BUBBLEWRAP)
        .args(["--die-with-parent", "--unshare-all"])
        .args(["--ro-bind", "/", "/", "--dev", "/dev"])
        .args([
            "--proc", "/proc", "--tmpfs", "/tmp", "--", "/bin/sh", "-c", ":",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot)?;
    // Killed while it sets its child up, it alone would leave the child waiting for ever.
    let _group = Group::of(&child);
    match tokio::time::timeout(TRIAL, child.wait_with_output()).await {
        Err(_) => Err(format!("`{BUBBLEWRAP}` did not answer")),
        Ok(Err(error)) => Err(cannot(error)),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "`{BUBBLEWRAP}` does not work here: {}",
                said.trim()
            ))
        }
    }
}
