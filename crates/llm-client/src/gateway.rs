//! A platform's gateway, through which all calls go.

use secrecy::SecretString;

/// A gateway that stands between this client and all providers (`spec/llm.md` §3).
///
/// It speaks chat completions, routes by the whole model name, and wins over proxies, variables and
/// `api_base`. A program that embeds this crate switches it on; no variable does.
///
/// ```
/// # use llm_client::{Gateway, Models};
/// let gateway = Gateway {
///     workload: Some("evaluation".to_owned()),
///     ..Gateway::new("https://gateway.example/v1", "key")
/// };
/// let models = Models::new(|_| None).with_gateway(gateway);
/// # let _ = models;
/// ```
#[derive(Debug, Clone)]
pub struct Gateway {
    /// Its base URL, which must be `https` unless it is on this machine.
    pub base: String,
    /// Its key.
    pub key: SecretString,
    /// How urgent the calls are: from 0, the most urgent, to 5.
    pub priority: u8,
    /// By what calls are shared out fairly, such as the id of a campaign.
    pub fairness_key: Option<String>,
    /// What kind of work it is.
    pub workload: Option<String>,
    /// Which piece of that work.
    pub work_unit: Option<String>,
}

/// Least urgent priority.
pub(crate) const LEAST_URGENT: u8 = 5;

impl Gateway {
    /// The gateway at `base`, with the usual priority 3.
    pub fn new(base: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            base: base.into(),
            key: SecretString::from(key.into()),
            priority: 3,
            fairness_key: None,
            workload: None,
            work_unit: None,
        }
    }

    /// The headers of all its requests.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("x-gateway-backend", Some("litellm".to_owned())),
            ("x-priority", Some(format!("P{}", self.priority))),
            ("x-fairness-key", self.fairness_key.clone()),
            ("x-workload", self.workload.clone()),
            ("x-work-unit", self.work_unit.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}
