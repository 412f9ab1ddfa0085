//! The JSON Schemas of all documents, by the name of the file that they describe.

use schemars::Schema;

type Generate = fn() -> Schema;

/// Every document with the function that makes its schema.
const DOCUMENTS: &[(&str, Generate)] = &[
    ("agent_config", || {
        schemars::schema_for!(crate::agent::AgentConfig)
    }),
    ("apps", || schemars::schema_for!(crate::apps::AppsConfig)),
    ("checkpoint", || {
        schemars::schema_for!(crate::run::WorldCheckpoint)
    }),
    ("diff", || schemars::schema_for!(crate::diff::WorldDiff)),
    ("eval_configs", || {
        schemars::schema_for!(crate::task::EvalConfigs)
    }),
    ("event", || schemars::schema_for!(crate::event::Event)),
    ("grades", || schemars::schema_for!(crate::grades::Grades)),
    ("grading_settings", || {
        schemars::schema_for!(crate::task::GradingSettings)
    }),
    ("initial_messages", || {
        schemars::schema_for!(Vec<crate::chat::Message>)
    }),
    ("ledger_entry", || {
        schemars::schema_for!(crate::run::LedgerEntry)
    }),
    ("mcp_config", || {
        schemars::schema_for!(crate::apps::AppsConfig)
    }),
    ("orchestrator_config", || {
        schemars::schema_for!(crate::task::OrchestratorConfig)
    }),
    ("run", || schemars::schema_for!(crate::run::RunRecord)),
    ("sandbox_config", || {
        schemars::schema_for!(crate::task::SandboxConfig)
    }),
    ("scoring_config", || {
        schemars::schema_for!(crate::task::ScoringConfig)
    }),
    ("summary", || schemars::schema_for!(crate::run::Summary)),
    ("trajectory", || {
        schemars::schema_for!(crate::trajectory::Trajectory)
    }),
    ("verifiers", || {
        schemars::schema_for!(crate::task::Verifiers)
    }),
];

/// The names of all documents, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    DOCUMENTS.iter().map(|(name, _)| *name)
}

/// The schema of the document `name`, if there is one.
#[must_use]
pub fn of(name: &str) -> Option<Schema> {
    DOCUMENTS
        .iter()
        .find_map(|(known, generate)| (*known == name).then(generate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_has_a_schema_with_a_title() {
        for name in names() {
            let schema = of(name).unwrap();
            assert!(schema.get("title").is_some(), "{name}");
        }
        assert!(of("no_such_document").is_none());
    }
}
