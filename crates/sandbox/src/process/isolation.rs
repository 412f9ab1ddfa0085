//! A process in a view of the machine of its own, by bubblewrap.
//!
//! ```text
//! /filesystem, /.apps_data   the roots of the trial: all that lasts
//! /tmp                       private; what the machine has there can be read
//! /proc, /dev, /run          its own
//! everything else            the machine's, read-only, but for caches in the home folder
//! ```
//!
//! Processes outside cannot be seen, capabilities and the way to new privileges are gone. The
//! network is the machine's: the environment is reached over it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::folder::{self, TrialFolder};
use crate::BindMount;
use crate::sandbox::{APPS_DATA, FILESYSTEM};

/// Whether an environment as a process gets a view of the machine of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// By bubblewrap where it is installed and allowed to; otherwise not, and the log of the
    /// trial says why.
    Auto,
    /// By bubblewrap; where that cannot be, the start fails.
    Bubblewrap,
    /// No: temporary roots, and otherwise what this program sees.
    #[default]
    None,
}

/// The program of bubblewrap.
const PROGRAM: &str = "bwrap";

/// How long bubblewrap may take to show that it works.
const PROBE: Duration = Duration::from_secs(10);

/// Entries of the machine's folder for temporary files that are shown; a command line has an end.
const TEMPORARY_ENTRIES: usize = 500;

/// Folders below the home folder into which package runners write what they fetch.
const CACHES: [&str; 2] = [".cache", ".npm"];

/// Places below the home folder where programs keep keys. No server of a world needs them.
const KEYS: [&str; 10] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".netrc",
    ".git-credentials",
    ".pypirc",
];

/// Where the programs of the sandbox are found inside.
pub(super) const BIN: &str = "/.archipelago/bin";

/// A bubblewrap that works here.
#[derive(Debug, Clone)]
pub(super) struct Bubblewrap {
    program: PathBuf,
    version: String,
}

impl Bubblewrap {
    /// Finds it on `search_path` and lets it show that it works; or says why it does not.
    pub(super) async fn find(search_path: Option<&OsStr>) -> Result<Self, String> {
        let program = search_path
            .into_iter()
            .flat_map(std::env::split_paths)
            .map(|folder| folder.join(PROGRAM))
            .find(|candidate| candidate.is_file())
            .ok_or_else(|| format!("`{PROGRAM}` (bubblewrap) is not on the search path"))?;
        // The whole of what is needed later, around something that certainly exists.
        let mut probe = Command::new(&program);
        probe
            .args(NAMESPACES)
            .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"])
            .arg("--")
            .arg(&program)
            .arg("--version")
            .env_clear()
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |reason: &str| format!("`{}` does not work here: {reason}", program.display());
        let output = tokio::time::timeout(PROBE, probe.output())
            .await
            .map_err(|_| failed(&format!("no answer within {PROBE:?}")))?
            .map_err(|error| failed(&error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(said.lines().next().unwrap_or("it failed silently")));
        }
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { program, version })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Such as `bubblewrap 0.8.0`.
    pub(super) fn version(&self) -> &str {
        &self.version
    }
}

/// Everything apart but the network.
const NAMESPACES: [&str; 4] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
];

/// The arguments of bubblewrap for an environment in `folder`, up to the program; blocks.
pub(super) fn arguments(
    folder: &TrialFolder,
    temporary_root: &Path,
    home: Option<&Path>,
    mounts: &[BindMount],
) -> std::io::Result<Vec<OsString>> {
    let mut view = View::default();
    view.arguments.extend(NAMESPACES.map(OsString::from));
    view.without_capabilities();
    view.root()?;
    view.say("--dev", &["/dev"]);
    view.say("--proc", &["/proc"]);
    view.run();
    view.say("--bind", &[folder.temporary().as_path(), Path::new("/tmp")]);
    view.entries_of(Path::new("/tmp"));
    if temporary_root != Path::new("/tmp") {
        // The worlds of other trials lie here.
        view.say("--tmpfs", &[temporary_root]);
        view.entries_of(temporary_root);
    }
    if let Some(home) = home {
        view.home(home);
    }
    view.say("--bind", &[folder.filesystem(), Path::new(FILESYSTEM)]);
    view.say("--bind", &[folder.apps_data(), Path::new(APPS_DATA)]);
    view.say("--ro-bind", &[folder.bin().as_path(), Path::new(BIN)]);
    for mount in mounts {
        let how = if mount.writable {
            "--bind"
        } else {
            "--ro-bind"
        };
        view.say(how, &[mount.source.as_path(), Path::new(&mount.target)]);
    }
    view.say("--remount-ro", &["/"]);
    view.arguments.push("--".into());
    Ok(view.arguments)
}

/// A view of the machine that is put together; later arguments lie over earlier ones.
#[derive(Default)]
struct View {
    arguments: Vec<OsString>,
}

impl View {
    fn say<T: AsRef<OsStr>>(&mut self, option: &str, values: &[T]) {
        self.arguments.push(option.into());
        let values = values.iter().map(|value| value.as_ref().to_owned());
        self.arguments.extend(values);
    }

    /// An ordinary user has none inside anyway. Root keeps those without which it could not read
    /// and restore the files of a world as it does elsewhere.
    fn without_capabilities(&mut self) {
        self.say("--cap-drop", &["ALL"]);
        if nix::unistd::geteuid().is_root() {
            for capability in ["CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN"] {
                self.say("--cap-add", &[capability]);
            }
        }
    }

    /// The top of the machine, read-only, in a root of its own, so that `/filesystem` can be made
    /// in it whether or not the machine has one.
    fn root(&mut self) -> std::io::Result<()> {
        const OWN: [&str; 6] = ["proc", "dev", "run", "tmp", "filesystem", ".apps_data"];
        for entry in std::fs::read_dir("/")?.flatten() {
            if !OWN.iter().any(|own| entry.file_name() == OsStr::new(own)) {
                self.entry(&entry.path());
            }
        }
        Ok(())
    }

    /// Sockets of the machine's services stay outside; name resolution has to work.
    fn run(&mut self) {
        self.say("--tmpfs", &["/run"]);
        for resolver in [
            "/run/systemd/resolve",
            "/run/resolvconf",
            "/run/NetworkManager",
        ] {
            self.say("--ro-bind-try", &[resolver, resolver]);
        }
    }

    /// What lies in `parent` now, but for the folders of trials.
    fn entries_of(&mut self, parent: &Path) {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let others = entries.filter(|entry| !folder::is_trial_folder(&entry.file_name()));
        for entry in others.take(TEMPORARY_ENTRIES) {
            self.entry(&entry.path());
        }
    }

    /// One entry of the machine at its place; sockets and devices are left out.
    fn entry(&mut self, path: &Path) {
        let Ok(kind) = path.symlink_metadata().map(|data| data.file_type()) else {
            return;
        };
        if kind.is_symlink() {
            if let Ok(target) = path.read_link() {
                self.say("--symlink", &[target.as_path(), path]);
            }
        } else if kind.is_dir() || kind.is_file() {
            self.say("--ro-bind-try", &[path, path]);
        }
    }

    fn home(&mut self, home: &Path) {
        for cache in CACHES.map(|name| home.join(name)) {
            if cache.is_dir() {
                self.say("--bind-try", &[&cache, &cache]);
            }
        }
        for keys in KEYS.map(|name| home.join(name)) {
            if keys.is_dir() {
                self.say("--tmpfs", &[keys]);
            } else if keys.is_file() {
                self.say("--ro-bind", &[Path::new("/dev/null"), keys.as_path()]);
            }
        }
    }
}
