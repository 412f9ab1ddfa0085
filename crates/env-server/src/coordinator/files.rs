//! The coordinator's directory (`spec/environment.md` §17.4, §17.8).
//!
//! Nobody but the user of the environment may look into it: directories have mode 0700, files 0600, also
//! those that came with a snapshot.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// *Control*: no actor may read it.
const CONTROL: &str = "config";
/// *Record*: no actor may write it.
const OBSERVATIONS: &str = "checkpoint_observations";
const OCCURRENCES: &str = "event_occurrences";
/// *Agent*: for each coworker.
const AGENTS: [&str; 2] = ["agent_configs", "agent_filesystems"];

const CONFIG_FILE: &str = "config.json";
const CALLS_FILE: &str = "mcp_calls.jsonl";
const TIME_FILE: &str = "physical_time.json";

/// What is opened is no link, and does not block where it is a FIFO.
const NO_TRAPS: i32 = O_NOFOLLOW | O_NONBLOCK;

/// Bytes of a document that is read.
const MAX_DOCUMENT: u64 = 16 << 20;

/// Bytes of a line that is read.
const MAX_LINE: u64 = 8 << 20;

/// Which run something belongs to. Two that name none are the same only within one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) run_id: Option<String>,
    #[serde(default)]
    pub(super) environment_id: String,
}

impl Run {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.run_id == other.run_id
            && (self.run_id.is_some() || self.environment_id == other.environment_id)
    }
}

/// When a run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PhysicalTime {
    trajectory_started_at: jiff::Timestamp,
    #[serde(flatten)]
    run: Run,
}

/// The files of one run.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    run: Run,
    calls: PathBuf,
}

/// What the files of an earlier start say.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) files: Files,
    pub(super) started_at: jiff::Timestamp,
    /// The largest number of a recorded call; 0 where there is none.
    pub(super) sequence: u64,
    /// Calls that were recorded earlier in the same run.
    pub(super) earlier: Vec<RecordedCall>,
}

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedCall {
    pub(super) sequence: u64,
    pub(super) actor_id: String,
    pub(super) tool_name: String,
    pub(super) arguments: Value,
    pub(super) result_summary: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) timestamp: jiff::Timestamp,
}

impl Files {
    /// Makes the directory ready for `run` and writes its configuration.
    pub(super) fn open(root: &Path, run: Run, config: &Value) -> io::Result<Opened> {
        private_directory(root)?;
        for name in [CONTROL, OBSERVATIONS, OCCURRENCES] {
            private_directory(&root.join(name))?;
        }
        for name in AGENTS {
            let path = root.join(name);
            if path.symlink_metadata().is_ok() {
                private_directory(&path)?;
            }
        }
        let time_path = root.join(OBSERVATIONS).join(TIME_FILE);
        let known: Option<PhysicalTime> = read_json(&time_path);
        let known = known.filter(|time| time.run.is(&run));
        let is_same_run = known.is_some();
        let time = known.unwrap_or_else(|| PhysicalTime {
            trajectory_started_at: jiff::Timestamp::now(),
            run: run.clone(),
        });
        write_json(&root.join(CONTROL).join(CONFIG_FILE), config)?;
        write_json(&time_path, &time)?;
        let calls_path = root.join(OBSERVATIONS).join(CALLS_FILE);
        let (sequence, earlier) = read_calls(&calls_path, is_same_run)?;
        Ok(Opened {
            files: Self {
                root: root.to_owned(),
                run,
                calls: calls_path,
            },
            started_at: time.trajectory_started_at,
            sequence,
            earlier,
        })
    }

    /// Adds a line to the record.
    pub(super) async fn record(&self, call: &RecordedCall) -> io::Result<()> {
        let mut line = serde_json::to_vec(call)?;
        line.push(b'\n');
        let path = self.calls.clone();
        let written = tokio::task::spawn_blocking(move || {
            // Opened each time, since a snapshot may be put into the world meanwhile.
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(NO_TRAPS)
                .open(&path)?;
            (&file).write_all(&line)
        });
        written.await.map_err(io::Error::other)?
    }

    pub(super) const fn run(&self) -> &Run {
        &self.run
    }

    pub(super) fn occurrence_path(&self, event_id: &str) -> PathBuf {
        self.root.join(OCCURRENCES).join(format!("{event_id}.json"))
    }
}

/// Takes the file of an event for `run`. `false` where the event has happened in this run already.
pub(super) fn claim(path: &Path, run: &Run, occurrence: &Value) -> io::Result<bool> {
    let text = serde_json::to_vec_pretty(occurrence)?;
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Ok(mut file) => {
            file.write_all(&text)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let known: Option<Run> = read_json(path);
            if known.is_some_and(|known| known.is(run)) {
                return Ok(false);
            }
            write_json(path, occurrence)?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// Writes a document beside its place and moves it there.
pub(super) fn write_json(path: &Path, document: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(PermissionsExt::from_mode(0o600))
        .tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

/// A document that is there and can be read.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let file = open_file(path).ok().flatten()?;
    serde_json::from_reader(BufReader::new(file.take(MAX_DOCUMENT))).ok()
}

/// The file at a path; `None` where there is none. Links, FIFOs and the like are errors.
fn open_file(path: &Path) -> io::Result<Option<File>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(NO_TRAPS)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("`{}` is no file", path.display())));
    }
    Ok(Some(file))
}

/// The largest number of a line, and the lines themselves where they are wanted. Lines that cannot be
/// read are passed over.
fn read_calls(path: &Path, wanted: bool) -> io::Result<(u64, Vec<RecordedCall>)> {
    let mut largest = 0;
    let mut calls = Vec::new();
    let Some(file) = open_file(path)? else {
        return Ok((largest, calls));
    };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        // What is left of a longer line is read as lines that make no sense.
        if (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok((largest, calls));
        }
        if let Ok(call) = serde_json::from_slice::<RecordedCall>(&line) {
            largest = largest.max(call.sequence);
            if wanted {
                calls.push(call);
            }
        }
    }
}

/// A directory, not a link to one, that only its owner may use, and its files the same.
fn private_directory(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {
            fs::set_permissions(path, PermissionsExt::from_mode(0o700))?;
        }
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("`{}` is not a directory", path.display()),
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        Err(error) => return Err(error),
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), PermissionsExt::from_mode(0o600))?;
        }
    }
    Ok(())
}
