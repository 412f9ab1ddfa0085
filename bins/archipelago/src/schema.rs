//! `archipelago schema`.

use std::io::Write as _;
use std::process::ExitCode;

use agent_core::Agents;
use formats::schema;
use program::Refused;

/// Prints the schema of the document `name`, or of the settings of the agent `name`, or the names
/// there are.
pub(crate) fn schema(name: Option<&str>) -> Result<ExitCode, Refused> {
    let agents = Agents::builtin();
    let names = || schema::names().chain(agents.ids()).collect::<Vec<_>>();
    let text = match name {
        None => names().join("\n"),
        Some(name) => {
            // A file name means its document.
            let name = name.trim_end_matches(".json");
            let schema = schema::of(name)
                .or_else(|| agents.schema(name))
                .ok_or_else(|| {
                    Refused::configuration(format_args!(
                        "there is no document or agent `{name}`; there are {}",
                        names().join(", ")
                    ))
                })?;
            serde_json::to_string_pretty(&schema).map_err(Refused::infrastructure)?
        }
    };
    writeln!(std::io::stdout().lock(), "{text}").map_err(Refused::stdout)?;
    Ok(ExitCode::SUCCESS)
}
