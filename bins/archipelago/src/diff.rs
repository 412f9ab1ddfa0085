//! `archipelago diff`.

use std::io::Write as _;
use std::process::ExitCode;

use program::Refused;

use crate::account;
use crate::flags::{DiffFlags, Format};

/// Prints what changed between two states of a world.
pub(crate) fn diff(flags: &DiffFlags) -> Result<ExitCode, Refused> {
    let diff =
        harness::world::compare(&flags.before, &flags.after).map_err(Refused::configuration)?;
    let mut stdout = std::io::stdout().lock();
    match flags.format {
        Format::Text => write!(
            stdout,
            "{}",
            report::text::diff(&diff, account::style_of_stdout())
        ),
        Format::Json => serde_json::to_writer_pretty(&mut stdout, &diff)
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(stdout)),
    }
    .map_err(Refused::stdout)?;
    Ok(ExitCode::SUCCESS)
}
