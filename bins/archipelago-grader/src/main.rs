//! Grade one trajectory, with the flags of the reference (`spec/grading.md` §1).

mod flags;
mod grade;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let flags = flags::Flags::parse();
    match program::block_on(grade::grade(&flags)) {
        Ok(code) => code,
        Err(error) => program::fail(formats::owner::Owner::Infrastructure, error),
    }
}
