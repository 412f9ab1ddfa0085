//! Whether programs of a task's author must be kept from the machine.

use std::str::FromStr;

/// Whether programs of verifiers must be isolated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IsolationRule {
    /// Where the machine allows it.
    #[default]
    WherePossible,
    /// Always: where it is not possible their verifiers are errors.
    Required,
    /// Never.
    Off,
}

impl FromStr for IsolationRule {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "where_possible" => Ok(Self::WherePossible),
            "required" => Ok(Self::Required),
            "off" => Ok(Self::Off),
            _ => Err("must be where_possible, required or off".to_owned()),
        }
    }
}
