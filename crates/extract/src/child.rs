//! Reading in a child process, for parsers that hostile files can hang or fill the memory with.
//!
//! A thread cannot be ended from outside and its memory cannot be limited; a process can. The
//! program that is started is the running program itself: it calls [`run_child`] first thing in
//! `main`, which does nothing in an ordinary run and makes the program its own reader when it was
//! started as one.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};

use crate::error::ExtractError;
use crate::limits::Limits;
use crate::office::listed::ListedWorkbook;
use crate::pdf::Pages;
use crate::untrusted::{Parsed, on_thread};

/// The argument that makes a program a reader.
const ARGUMENT: &str = "--extract-child";

/// The program to start as a reader, once it is known to be able to.
static READER: OnceLock<PathBuf> = OnceLock::new();

/// What a child may say on stderr.
const STDERR_BYTES: u64 = 4 << 10;

/// To be called first thing in `main` by a program that reads documents it does not trust.
///
/// In an ordinary run it gives `None`, and from then on [`extract`](crate::extract) reads PDFs and
/// xls workbooks in a child process of this program, with a limit on time and memory. When the
/// program was started as such a child, it reads one document from stdin and gives the exit code to
/// end with.
pub fn run_child() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(ARGUMENT)) {
        // On Linux this stays right when the program's file is replaced meanwhile.
        let link = PathBuf::from("/proc/self/exe");
        let program = if link.exists() {
            Some(link)
        } else {
            std::env::current_exe().ok()
        };
        if let Some(program) = program {
            let _ = READER.set(program);
        }
        return None;
    }
    Some(match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

/// Reads a document from stdin and writes what is in it, or why there is nothing, as JSON to stdout.
fn serve(arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let unknown = || io::Error::other("a reader is started with other arguments");
    let mut words = arguments.filter_map(|word| word.into_string().ok());
    let format = words.next().ok_or_else(unknown)?;
    let numbers: Vec<u64> = words.filter_map(|number| number.parse().ok()).collect();
    let [memory, chars, rows, columns, cell_bytes] = numbers[..] else {
        return Err(unknown());
    };
    setrlimit(Resource::RLIMIT_AS, memory, memory)?;
    // A parser that dies leaves no image of its memory behind.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let limits = Limits {
        text_chars: usize::try_from(chars).unwrap_or(usize::MAX),
        rows: u32::try_from(rows).unwrap_or(u32::MAX),
        columns: u32::try_from(columns).unwrap_or(u32::MAX),
        cell_bytes,
        ..Limits::default()
    };
    if format == Pages::FORMAT {
        answer::<Pages>(bytes, &limits)
    } else if format == ListedWorkbook::FORMAT {
        answer::<ListedWorkbook>(bytes, &limits)
    } else {
        Err(unknown())
    }
}

fn answer<T: Parsed>(bytes: Vec<u8>, limits: &Limits) -> io::Result<()> {
    let parsed = on_thread::<T>(bytes, limits, None).map_err(io::Error::other)?;
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut stdout, &parsed)?;
    stdout.flush()
}

/// What a child makes of a document; `None` where the program offers none.
pub(crate) fn ask<T: Parsed>(
    bytes: &[u8],
    limits: &Limits,
) -> Option<Result<Result<T, String>, ExtractError>> {
    let program = READER.get()?;
    let mut command = Command::new(program);
    command
        .arg(ARGUMENT)
        .arg(T::FORMAT)
        .arg(limits.child_memory_bytes.to_string())
        .arg(limits.text_chars.to_string())
        .arg(limits.rows.to_string())
        .arg(limits.columns.to_string())
        .arg(limits.cell_bytes.to_string())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // As JSON, a character takes 6 bytes at most (`\u001f`), an empty page 3.
    let most = (limits.text_chars as u64).max(limits.cell_bytes);
    let answer_bytes = most.saturating_mul(6).saturating_add(16 << 20);
    Some(run::<T>(command, bytes, T::time(limits), answer_bytes))
}

fn run<T: Parsed>(
    mut command: Command,
    bytes: &[u8],
    time: Duration,
    answer_bytes: u64,
) -> Result<Result<T, String>, ExtractError> {
    let broken = |what: &str, error: io::Error| {
        ExtractError::broken(T::FORMAT, format!("{what} the reader process: {error}"))
    };
    let mut child = command.spawn().map_err(|e| broken("cannot start", e))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (send, receive) = mpsc::channel();
    let answer = std::thread::scope(|scope| {
        // A child that ends without reading everything is told by its status.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(bytes)));
        let errors = scope.spawn(move || bounded(stderr, STDERR_BYTES));
        scope.spawn(move || {
            let _ = send.send(bounded(stdout, answer_bytes));
        });
        let answer = receive.recv_timeout(time);
        // Also after an answer: what comes after it is of no interest.
        let status = if answer.is_ok() {
            ended(&mut child, time)
        } else {
            None
        };
        if status.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let said = errors.join().unwrap_or_default();
        answer.ok().map(|answer| (answer, status, said))
    });
    let Some((answer, status, said)) = answer else {
        return Err(ExtractError::Timeout {
            format: T::FORMAT,
            limit: T::TIME,
            seconds: time.as_secs(),
        });
    };
    match status {
        Some(status) if status.success() => serde_json::from_slice(&answer).map_err(|error| {
            ExtractError::broken(T::FORMAT, format!("the reader's answer: {error}"))
        }),
        status => Err(ExtractError::broken(T::FORMAT, death(status, &said))),
    }
}

/// Waits until the child, which has closed its output, has ended.
fn ended(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let deadline = std::time::Instant::now() + time.min(Duration::from_secs(5));
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if std::time::Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => return None,
        }
    }
}

fn bounded(stream: Option<impl Read>, bytes: u64) -> Vec<u8> {
    let mut content = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(bytes).read_to_end(&mut content);
    }
    content
}

fn death(status: Option<ExitStatus>, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let status = match status {
        Some(status) => status.to_string(),
        None => "more text than allowed".to_owned(),
    };
    let line = said.lines().rev().find(|line| !line.trim().is_empty());
    match line {
        Some(line) => format!(
            "the reader process died ({status}): {line} (limit `child_memory_bytes` may be the reason)"
        ),
        None => format!(
            "the reader process died ({status}); limit `child_memory_bytes` may be the reason"
        ),
    }
}
