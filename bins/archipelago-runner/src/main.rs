//! Run one agent against a gateway, with the flags of the reference (`spec/agents.md` §2).

mod flags;
mod log_file;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let flags = flags::Flags::parse().without_empty_paths();
    match program::block_on(run::run(&flags)) {
        Ok(code) => code,
        Err(error) => program::fail(formats::owner::Owner::Infrastructure, error),
    }
}
