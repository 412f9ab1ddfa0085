//! Reads the settings of a verifier and says what is wrong with them.
//!
//! ```text
//! cargo run -p settings --example read
//! ```

use std::error::Error;
use std::io::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use settings::problem::{Findings, Place};

/// Settings of a check.
#[derive(Debug, Deserialize, JsonSchema)]
struct Values {
    /// The files that are looked at.
    file_pattern: String,
    /// How far numbers may be from each other.
    #[serde(default, deserialize_with = "settings::number")]
    tolerance: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    for object in [
        json!({"file_pattern": "*.csv", "tolerance": "0.5", "tolerence": 1}),
        json!({"file_pattern": "*.csv", "tolerance": "much"}),
    ] {
        let object = object.as_object().ok_or("not an object")?;
        let mut findings = Findings::default();
        let values = settings::parse::<Values>(object, &mut findings);
        let schema = schemars::schema_for!(Values);
        settings::warn_of_unknown_keys(object, &schema, settings::ANNOTATIONS, &mut findings);
        if let Some(values) = values {
            writeln!(out, "{} within {}", values.file_pattern, values.tolerance)?;
        }
        for problem in findings.at(&Place::Verifier("v1".to_owned())) {
            writeln!(out, "{:?}: {problem}", problem.severity)?;
        }
    }
    Ok(())
}
