//! Run tasks, grade trials, look at results.

mod account;
mod calibrate;
mod diff;
mod documents;
mod flags;
mod grade;
mod grading_flags;
mod image;
mod replay;
mod run;
mod schema;
mod services;
mod stub;
mod validate;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use formats::owner::Owner;

use crate::flags::{Command, EnvironmentFlags, Flags};

fn main() -> ExitCode {
    // Documents by agents are read in children of this program.
    if let Some(code) = extract::run_child() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // `run` starts environments, and these start file servers, from this very program: one binary
    // is enough.
    if called_as(&arguments) == Some(flags::FILESYSTEM_SERVER) {
        return filesystem_server::run(arguments);
    }
    let flags = Flags::parse_from(arguments);
    if let Command::Environment(EnvironmentFlags { flags }) = flags.command {
        let name = OsString::from("archipelago-env");
        return archipelago_env::run(std::iter::once(name).chain(flags));
    }
    let done = program::block_on(async {
        match flags.command {
            Command::Run(flags) => Box::pin(run::run(&flags)).await,
            Command::Replay(flags) => Box::pin(replay::replay(&flags)).await,
            Command::Grade(flags) => Box::pin(grade::grade(&flags)).await,
            Command::Calibrate(flags) => Box::pin(calibrate::calibrate(&flags)).await,
            Command::Diff(flags) => diff::diff(&flags),
            Command::Validate(flags) => Box::pin(validate::validate(&flags)).await,
            Command::Schema(flags) => schema::schema(flags.name.as_deref()),
            Command::Image(command) => Box::pin(image::image(&command)).await,
            Command::Stub(flags) => stub::stub(&flags).await,
            Command::Environment(_) => Ok(ExitCode::SUCCESS),
        }
    });
    match done {
        Ok(Ok(code)) => code,
        Ok(Err(refused)) => refused.tell(false),
        Err(error) => program::fail(
            Owner::Infrastructure,
            format_args!("cannot start threads: {error}"),
        ),
    }
}

/// The name under which the program was started.
fn called_as(arguments: &[OsString]) -> Option<&str> {
    Path::new(arguments.first()?).file_stem()?.to_str()
}
