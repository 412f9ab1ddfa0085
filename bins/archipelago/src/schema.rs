//! `archipelago schema`.

use std::io::Write as _;
use std::process::ExitCode;

use formats::owner::Owner;
use formats::schema;

/// Prints the schema of the document `name`, or the names there are.
pub(crate) fn schema(name: Option<&str>) -> ExitCode {
    let text = match name {
        None => schema::names().collect::<Vec<_>>().join("\n"),
        Some(name) => {
            // A file name means its document.
            let name = name.trim_end_matches(".json");
            match schema::of(name).map(|schema| serde_json::to_string_pretty(&schema)) {
                Some(Ok(text)) => text,
                Some(Err(error)) => return program::fail(Owner::Infrastructure, error),
                None => {
                    return program::fail(
                        Owner::Configuration,
                        format_args!(
                            "there is no document `{name}`; there are {}",
                            schema::names().collect::<Vec<_>>().join(", ")
                        ),
                    );
                }
            }
        }
    };
    match writeln!(std::io::stdout().lock(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program::fail(
            Owner::Infrastructure,
            format_args!("cannot write to stdout: {error}"),
        ),
    }
}
