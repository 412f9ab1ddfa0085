//! What every program of the workspace does the same way: variables, logs, signals, exit codes.
//!
//! Results go to stdout and are the program's own business; everything here speaks on stderr.

#[cfg(feature = "otel")]
mod traces;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use formats::document::DocumentError;
use formats::owner::Owner;
use tokio_util::sync::CancellationToken;

/// Environment variables, with those of a `.env` file behind them.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    file: HashMap<String, String>,
}

/// A `.env` file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{path}`: {reason}")]
pub struct VariablesError {
    path: String,
    reason: String,
}

impl Variables {
    /// The process's environment, backed by `.env` in the working directory if there is one.
    ///
    /// # Errors
    /// [`VariablesError`] when `.env` exists and cannot be read or parsed.
    pub fn load() -> Result<Self, VariablesError> {
        Self::with_file(Path::new(".env"))
    }

    fn with_file(path: &Path) -> Result<Self, VariablesError> {
        let error = |error: dotenvy::Error| VariablesError {
            path: path.display().to_string(),
            // The parser quotes the line; it may hold a secret.
            reason: match error {
                dotenvy::Error::LineParse(_, position) => {
                    format!("a line is not NAME=value (at character {position})")
                }
                other => other.to_string(),
            },
        };
        let entries = match dotenvy::from_path_iter(path) {
            Ok(entries) => entries,
            Err(dotenvy::Error::Io(missing)) if missing.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(other) => return Err(error(other)),
        };
        let file = entries.collect::<Result<_, _>>().map_err(error)?;
        Ok(Self { file })
    }

    /// The value of `name`; an empty one counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        std::env::var(name)
            .ok()
            .filter(|value| !value.is_empty())
            .or_else(|| {
                self.file
                    .get(name)
                    .cloned()
                    .filter(|value| !value.is_empty())
            })
    }

    /// Whether `ENV` names anything but a person's own machine: logs are JSON lines then.
    #[must_use]
    pub fn is_deployed(&self) -> bool {
        self.get("ENV").is_some_and(|env| env != "local")
    }
}

/// Sends `tracing` events to stderr: readable lines, or JSON where `json` is set.
///
/// `RUST_LOG` decides what is shown, else `default_filter` (such as `info,rmcp=warn`). With the
/// feature `otel`, spans of agents go to the collector that the standard `OTEL_…` variables name.
pub fn start_logs(default_filter: &str, json: bool) {
    use std::io::IsTerminal as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    use tracing_subscriber::{EnvFilter, Layer as _};

    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logs = if json {
        logs.json().with_filter(filter).boxed()
    } else {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let logs = logs.with_ansi(colour).with_target(false);
        logs.with_filter(filter).boxed()
    };
    let subscriber = tracing_subscriber::registry().with(logs);
    #[cfg(feature = "otel")]
    let subscriber = subscriber.with(traces::layer());
    // Fails only when a subscriber exists, that is when this is called twice; the first one stays.
    let _ = subscriber.try_init();
}

/// Cancels `cancel` at the first Ctrl-C or SIGTERM; ends the process with exit code 130 at the
/// second.
///
/// # Errors
/// [`Refused`] by the system, when signals cannot be caught.
pub fn cancel_on_signals(cancel: CancellationToken) -> Result<(), Refused> {
    use tokio::signal::unix::{SignalKind, signal};

    let catch = |kind| {
        signal(kind)
            .map_err(|error| Refused::infrastructure(format_args!("cannot catch signals: {error}")))
    };
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    tokio::spawn(async move {
        let mut signals = 0;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            signals += 1;
            if signals > 1 {
                std::process::exit(i32::from(Owner::Cancelled.exit_code()));
            }
            say("stopping; once more ends at once");
            cancel.cancel();
        }
    });
    Ok(())
}

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// Who has to act.
    pub owner: Owner,
    /// What is wrong, with the thing, the rule and the value.
    pub message: String,
}

impl Refused {
    /// A refusal that is `owner`'s.
    pub fn new(owner: Owner, message: impl std::fmt::Display) -> Self {
        Self {
            owner,
            message: message.to_string(),
        }
    }

    /// A refusal that is the configuration's.
    pub fn configuration(message: impl std::fmt::Display) -> Self {
        Self::new(Owner::Configuration, message)
    }

    /// A refusal that is the machine's.
    pub fn infrastructure(message: impl std::fmt::Display) -> Self {
        Self::new(Owner::Infrastructure, message)
    }

    /// Nothing can be printed.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "fit for `map_err`")]
    pub fn stdout(error: std::io::Error) -> Self {
        Self::infrastructure(format_args!("cannot write to stdout: {error}"))
    }

    /// Prints the message on stderr and returns the exit code: that of the owner, or 1 where the
    /// caller asked for the exit codes of the reference.
    #[must_use]
    pub fn tell(&self, reference_exit_codes: bool) -> ExitCode {
        let code = fail(self.owner, &self.message);
        if reference_exit_codes {
            ExitCode::from(1)
        } else {
            code
        }
    }
}

impl From<DocumentError> for Refused {
    fn from(error: DocumentError) -> Self {
        Self::new(error.owner(), error)
    }
}

impl From<VariablesError> for Refused {
    fn from(error: VariablesError) -> Self {
        Self::configuration(error)
    }
}

/// Prints `error: <message>` on stderr and returns the exit code of `owner`.
pub fn fail(owner: Owner, message: impl std::fmt::Display) -> ExitCode {
    say(format_args!("error: {message}"));
    ExitCode::from(owner.exit_code())
}

/// Prints one line on stderr. A closed stderr is nobody's failure.
pub fn say(message: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}

/// Runs `future` on a runtime with one worker per core and returns what it returns.
///
/// # Errors
/// The system's, when no threads can be made.
pub fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(future);
    #[cfg(feature = "otel")]
    traces::end();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stands_behind_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, "PATH=from-file\nONLY_IN_FILE='a b'\nEMPTY=\n").unwrap();
        let variables = Variables::with_file(&path).unwrap();
        assert_eq!(variables.get("PATH"), std::env::var("PATH").ok());
        assert_eq!(variables.get("ONLY_IN_FILE").as_deref(), Some("a b"));
        assert_eq!(variables.get("EMPTY"), None);
    }

    #[test]
    fn a_missing_file_is_fine_and_a_broken_one_keeps_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        assert!(Variables::with_file(&path).is_ok());
        std::fs::write(&path, "KEY sk-secret\n").unwrap();
        let error = Variables::with_file(&path).unwrap_err().to_string();
        assert!(
            error.contains("NAME=value") && !error.contains("sk-secret"),
            "{error}"
        );
    }
}
