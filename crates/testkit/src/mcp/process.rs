//! The stub server as a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::behaviour::{Out, Stub, StubServer};

/// The name of the test that [`mcp_stub_process!`](crate::mcp_stub_process) makes.
pub const STUB_TEST: &str = "mcp_stub_process";
/// The variable that holds the settings of a stub.
const SETTINGS: &str = "TESTKIT_MCP_STUB";

/// How a stub is started.
#[derive(Debug, Clone)]
pub struct StubCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that it needs.
    pub env: BTreeMap<String, String>,
}

impl StubServer {
    /// The command that starts this stub from a test executable with
    /// [`mcp_stub_process!`](crate::mcp_stub_process) in it.
    ///
    /// # Panics
    /// When the path of the test executable is not known or not text.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test cannot go on without it")]
    pub fn command(&self) -> StubCommand {
        let program: PathBuf = std::env::current_exe().expect("the path of the test executable");
        let settings = serde_json::to_string(self).expect("settings are JSON");
        StubCommand {
            command: program.to_str().expect("a path in UTF-8").to_owned(),
            args: vec![
                STUB_TEST.to_owned(),
                "--exact".to_owned(),
                "--nocapture".to_owned(),
            ],
            env: BTreeMap::from([(SETTINGS.to_owned(), settings)]),
        }
    }
}

/// Serves over stdio until stdin ends, and exits, where this process was started by
/// [`StubServer::command`]; else does nothing.
pub fn run_if_asked() {
    let Some(settings) = std::env::var(SETTINGS)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
    else {
        return;
    };
    serve(settings);
    std::process::exit(0);
}

#[expect(clippy::print_stderr, reason = "what the setting is for")]
fn serve(settings: StubServer) {
    if let Some(text) = &settings.stderr {
        eprintln!("{text}");
    }
    if let Some(code) = settings.exit_at_start {
        std::process::exit(code);
    }
    std::thread::sleep(Duration::from_millis(settings.start_delay_ms));
    let ignore_eof = settings.ignore_eof;
    let stub = Stub::new(settings);
    let out: Out = Arc::new(write_line);
    // The test harness may have begun a line of its own.
    write_text("\n");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => stub.take(&message, &out),
            Err(error) => {
                eprintln!("the stub got a line that is no JSON: {error}");
                std::process::exit(70);
            }
        }
    }
    if ignore_eof {
        // Bounded all the same: nothing of a test outlives it for long.
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn write_line(message: &Value) {
    write_text(&format!("{message}\n"));
}

/// One write under the lock of stdout, so that lines of several threads do not mix.
fn write_text(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A client that has gone is no error of the stub.
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}
