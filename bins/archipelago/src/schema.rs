//! `archipelago schema`.

use std::io::Write as _;
use std::process::ExitCode;

use agent_core::Agents;
use formats::schema;
use grading::Registry;
use program::Refused;
use serde_json::Value;

/// Prints the schema of the document `name`, of the settings of the agent `name`, or of settings of
/// grading, or the names there are.
pub(crate) fn schema(name: Option<&str>) -> Result<ExitCode, Refused> {
    let agents = Agents::builtin();
    let settings = settings(&Registry::builtin());
    let names = || -> Vec<String> {
        let documents = schema::names().chain(agents.ids()).map(str::to_owned);
        documents
            .chain(settings.iter().map(|(name, _)| name.clone()))
            .collect()
    };
    let text = match name {
        None => names().join("\n"),
        Some(name) => {
            // A file name means its document.
            let name = name.trim_end_matches(".json");
            let document = schema::of(name).or_else(|| agents.schema(name));
            let of_settings = settings.iter().find(|(known, _)| known == name);
            let schema = match (document, of_settings) {
                (Some(schema), _) => {
                    serde_json::to_value(schema).map_err(Refused::infrastructure)?
                }
                (None, Some((_, schema))) => schema.clone(),
                (None, None) => {
                    return Err(Refused::configuration(format_args!(
                        "there is no document or agent `{name}`; there are {}",
                        names().join(", ")
                    )));
                }
            };
            serde_json::to_string_pretty(&schema).map_err(Refused::infrastructure)?
        }
    };
    writeln!(std::io::stdout().lock(), "{text}").map_err(Refused::stdout)?;
    Ok(ExitCode::SUCCESS)
}

/// The settings of evals and scoring methods by name.
fn settings(registry: &Registry) -> Vec<(String, Value)> {
    let mut settings = Vec::new();
    for eval in registry.evals() {
        settings.push((format!("eval/{}", eval.id), eval.settings.into()));
        let shared = eval.shared_settings.map(Value::from);
        settings.extend(shared.map(|schema| (format!("eval-config/{}", eval.id), schema)));
    }
    for method in registry.scoring_methods() {
        settings.push((format!("scoring/{}", method.id), method.settings.into()));
    }
    settings
}
