//! The environment: an HTTP server around a world.
//!
//! [`run`] is the whole program, so that another one can offer it as a command of its own.

mod healthcheck;
mod options;

use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use env_server::EnvServer;
use formats::owner::Owner;
use options::{ApiFormat, Command, Options};
use program::{fail, say};
use tokio_util::sync::CancellationToken;

/// What is logged when `RUST_LOG` says nothing.
const LOG_FILTER: &str = "info,rmcp=warn";

/// Runs the program with `args`, of which the first is its name.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    let options = match Options::try_parse_from(args) {
        Ok(options) => options,
        Err(error) => {
            // Help goes to stdout with 0, a mistake to stderr with 2.
            let _ = error.print();
            if let Some(variable) = options::variable_of(&error) {
                say(format_args!(
                    "hint: the value is that of the variable `{variable}`"
                ));
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Some(Command::Healthcheck { wait }) = options.command {
        let wait = Duration::from_secs(wait);
        return match healthcheck::ask_for(wait, &options.host, options.port) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                say(format_args!("error: {reason}"));
                ExitCode::FAILURE
            }
        };
    }
    if let Some(Command::Openapi { format }) = options.command {
        return print_api(format);
    }
    program::start_logs(LOG_FILTER, options.logs_are_json());
    match program::block_on(serve(options)) {
        Ok(code) => code,
        Err(error) => fail(
            Owner::Infrastructure,
            format_args!("the runtime cannot start: {error}"),
        ),
    }
}

/// Prints the description of the interface.
fn print_api(format: ApiFormat) -> ExitCode {
    use std::io::Write as _;
    let text = match format {
        ApiFormat::Json => format!("{:#}\n", env_server::openapi_document()),
        ApiFormat::Markdown => env_server::openapi_markdown(),
    };
    // A reader that has seen enough is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

async fn serve(options: Options) -> ExitCode {
    let stop = CancellationToken::new();
    if let Err(refused) = program::cancel_on_signals(stop.clone()) {
        return refused.tell(false);
    }
    if options.stop_on_stdin_close {
        stop_when_stdin_closes(stop.clone());
    }
    for said in options::without_effect(|name| std::env::var(name).ok()) {
        tracing::warn!("{said}");
    }
    let settings = match options.into_settings() {
        Ok(settings) => settings,
        Err(error) => return fail(Owner::Configuration, error),
    };
    let server = match EnvServer::bind(settings).await {
        Ok(server) => server,
        Err(error) => return fail(Owner::Configuration, error),
    };
    say(format_args!("listening on http://{}", server.local_addr()));
    match server.serve(stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(Owner::Infrastructure, error),
    }
}

/// Whoever started this program holds the other end of its standard input; when that closes, in
/// whatever way, nobody is left to stop it.
fn stop_when_stdin_closes(stop: CancellationToken) {
    // A thread of its own, because a read of standard input cannot be interrupted.
    std::thread::spawn(move || {
        let mut ignored = [0; 1024];
        let mut input = std::io::stdin().lock();
        loop {
            match input.read(&mut ignored) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        stop.cancel();
    });
}
