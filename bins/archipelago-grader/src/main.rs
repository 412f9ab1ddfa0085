//! Grade one trajectory, with the flags of the reference (`spec/grading.md` §1).

mod flags;
mod grade;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Documents by agents are read in children of this program.
    if let Some(code) = extract::run_child() {
        return code;
    }
    let flags = flags::Flags::parse();
    match program::block_on(grade::grade(&flags)) {
        Ok(code) => code,
        Err(error) => program::fail(formats::owner::Owner::Infrastructure, error),
    }
}
