//! `archipelago validate`.

use std::io::Write as _;
use std::process::ExitCode;

use formats::owner::Owner;
use program::Refused;

use crate::flags::{ModelFlags, ValidateFlags};
use crate::services;

/// Explains what is wrong with each task; 0 where all of them could run.
pub(crate) fn validate(flags: &ValidateFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let models = services::models(&variables, &ModelFlags::default())?;
    let services = services::services(models, services::process_sandbox()?);
    let mut wrong = 0;
    for task in &flags.tasks {
        match harness::check(task, &services) {
            Ok(warnings) => {
                for warning in warnings {
                    program::say(format_args!("warning: {warning}"));
                }
                // A closed stdout only means that nobody reads.
                let _ = writeln!(std::io::stdout().lock(), "{}: ok", task.display());
            }
            Err(error) => {
                wrong += 1;
                for problem in error.problems {
                    program::say(format_args!("error: {problem}"));
                }
            }
        }
    }
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Owner::Configuration.exit_code())
    })
}
