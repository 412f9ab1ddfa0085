//! `archipelago diff`.

use std::io::Write as _;
use std::process::ExitCode;

use formats::owner::Owner;

use crate::account;
use crate::flags::{DiffFlags, Format};

/// Prints what changed between two states of a world.
pub(crate) fn diff(flags: &DiffFlags) -> ExitCode {
    let diff = match harness::world::compare(&flags.before, &flags.after) {
        Ok(diff) => diff,
        Err(error) => return program::fail(Owner::Configuration, error),
    };
    let mut stdout = std::io::stdout().lock();
    let written = match flags.format {
        Format::Text => write!(
            stdout,
            "{}",
            report::text::diff(&diff, account::style_of_stdout())
        ),
        Format::Json => serde_json::to_writer_pretty(&mut stdout, &diff)
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(stdout)),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program::fail(
            Owner::Infrastructure,
            format_args!("cannot write to stdout: {error}"),
        ),
    }
}
