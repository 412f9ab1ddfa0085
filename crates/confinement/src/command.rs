//! The command of a confined program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Isolation;

/// Puts limits on itself, two words each, then becomes the program.
const LIMITED: &str =
    r#"while [ "$1" != -- ]; do ulimit "$1" "$2" || exit 126; shift 2; done; shift; exec "$@""#;

/// What a program gets, and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct Confined<'a> {
    /// How it is kept from the machine.
    pub isolation: Isolation,
    /// Where it runs; its home.
    pub folder: &'a Path,
    /// The only place where it may write, where it is isolated.
    pub writable: &'a Path,
    /// What it has to see of places that isolation hides, read-only.
    pub readable: &'a [&'a Path],
    /// Where it finds programs, written as in `PATH`.
    pub path: &'a OsStr,
    /// Bytes of its address space.
    pub memory: u64,
    /// Seconds of the processor, of each of its processes.
    pub cpu_seconds: u64,
    /// Files that a process of it may have open; the machine's limit if absent.
    pub open_files: Option<u64>,
    /// Bytes of one file that it writes; the machine's limit if absent.
    pub file_bytes: Option<u64>,
}

impl Confined<'_> {
    /// The command that runs `program` with its arguments: in a process group of its own, without a core file,
    /// with no variables but `PATH`, `HOME` and `LANG`, and with nothing to read and nobody to hear it unless the
    /// caller says so.
    #[must_use]
    pub fn command(&self, program: &[OsString]) -> Command {
        let mut limits = vec![
            ("-c", 0),
            ("-v", self.memory >> 10),
            ("-t", self.cpu_seconds),
        ];
        limits.extend(self.open_files.map(|files| ("-n", files)));
        // In blocks of 512 bytes, of which a file has one at least.
        limits.extend(self.file_bytes.map(|bytes| ("-f", (bytes >> 9).max(1))));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", LIMITED, "sh"]);
        for (limit, value) in limits {
            command.arg(limit).arg(value.to_string());
        }
        command
            .arg("--")
            .args(
                self.isolation
                    .prefix(self.writable, self.readable, self.path),
            )
            .args(program)
            .current_dir(self.folder)
            .env_clear()
            .env("PATH", self.path)
            .env("HOME", self.folder)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        command
    }
}
