//! What a program gives all its models beside credentials: limits, budgets, recordings, a cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use formats::document::{self, DocumentError};
use formats::owner::Owner;
use secrecy::ExposeSecret;

use crate::around::Around;
use crate::budget::Budget;
use crate::cache::{Cache, CacheError, CacheLimits};
use crate::models::Models;
use crate::rate::{Lanes, RateLimits, SettingError};
use crate::recording::{Recording, RecordingError, Tape};
use crate::replay::Replay;
use crate::retry::RetryPolicy;
use llm_wire::extra_args::Settings;
use llm_wire::secrets::Secrets;
use llm_wire::{ModelNameError, Price, Provider};

/// The variable that names the file with rate limits.
const LIMITS_VARIABLE: &str = "ARCHIPELAGO_RATE_LIMITS";
/// The variable that names the file with prices.
const PRICES_VARIABLE: &str = "ARCHIPELAGO_PRICES";

/// Parts of the names of variables that hold secrets.
const SECRET_VARIABLES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// The provider that plays recordings.
const REPLAY: &str = "replay";

/// All of it; nothing by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Equipment {
    lanes: Arc<Lanes>,
    budgets: Vec<Budget>,
    tape: Option<Tape>,
    cache: Option<Cache>,
    /// Answers for all models.
    replay: Option<Arc<Recording>>,
    /// The recordings of `replay/…` models; one that is named twice is played once.
    recordings: Arc<Mutex<BTreeMap<PathBuf, Arc<Recording>>>>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable or an entry of a file.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A file.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The folder of a recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The folder of kept answers.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl SettingsError {
    /// Who has to act.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Recording(error) => error.owner(),
            Self::Setting(_) | Self::Document(_) | Self::Cache(_) => Owner::Configuration,
        }
    }
}

impl Models {
    /// The same as [`Models::new`] with the limits and prices that variables set:
    ///
    /// * `ARCHIPELAGO_RATE_LIMITS`: a JSON file with [`RateLimits`];
    /// * `<PROVIDER>_REQUESTS_PER_MINUTE`, `<PROVIDER>_TOKENS_PER_MINUTE`, `<PROVIDER>_CONCURRENCY`
    ///   ([`RateLimits::add_variables`]);
    /// * `ARCHIPELAGO_PRICES`: a JSON file with a [`Price`] for each full model name, which wins over
    ///   the built-in table.
    ///
    /// # Errors
    /// [`SettingsError`] with the variable, or with the file and the place in it.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let file = |name: &str| variable(name).filter(|path| !path.trim().is_empty());
        let mut limits: RateLimits = match file(LIMITS_VARIABLE) {
            Some(path) => document::read("rate limits", Path::new(path.trim()))?,
            None => RateLimits::default(),
        };
        limits.check()?;
        limits.add_variables(&variable)?;
        let prices: BTreeMap<String, Price> = match file(PRICES_VARIABLE) {
            Some(path) => document::read("prices", Path::new(path.trim()))?,
            None => BTreeMap::new(),
        };
        Ok(Self::new(variable)
            .with_prices(prices)
            .with_rate_limits(limits))
    }

    /// How fast providers are asked, by all models and clones together.
    #[must_use]
    pub fn with_rate_limits(mut self, limits: RateLimits) -> Self {
        self.equipment.lanes = Arc::new(Lanes::new(limits));
        self
    }

    /// All models that are resolved from here on are also paid from `budget`. Budgets are added
    /// from the widest to the narrowest.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.equipment.budgets.insert(0, budget);
        self
    }

    /// All exchanges are recorded on `tape`, secrets removed. A call whose exchange cannot be
    /// recorded fails.
    #[must_use]
    pub fn with_tape(mut self, tape: Tape) -> Self {
        self.equipment.tape = Some(tape);
        self
    }

    /// Answers are kept in `cache`, and requests that were answered before are not sent.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.equipment.cache = Some(cache);
        self
    }

    /// Records in the folder `record` and keeps answers in the folder `cache`, where they are given.
    ///
    /// # Errors
    /// [`SettingsError`] when one of them cannot be used.
    pub fn with_folders(
        mut self,
        record: Option<&Path>,
        cache: Option<&Path>,
    ) -> Result<Self, SettingsError> {
        if let Some(folder) = record {
            self = self.with_tape(Tape::create(folder)?);
        }
        if let Some(folder) = cache {
            self = self.with_cache(Cache::open(folder, CacheLimits::default())?);
        }
        Ok(self)
    }

    /// Every model is answered by its exchanges in `recording`, under its own name, without
    /// credentials and without waits.
    #[must_use]
    pub fn with_replay(mut self, recording: Arc<Recording>) -> Self {
        self.equipment.replay = Some(recording);
        self
    }

    /// The provider for `name` if it is answered by a recording.
    pub(crate) fn replayed(
        &self,
        name: &str,
        settings: &Settings<'_>,
    ) -> Result<Option<Arc<dyn Provider>>, ModelNameError> {
        let invalid = |reason: String| ModelNameError::Invalid {
            name: name.to_owned(),
            reason,
        };
        let (recording, model) = match (&self.equipment.replay, name.split_once('/')) {
            // A model that was not asked then, such as the judge of an agent that failed, is missed
            // only if it is asked now.
            (Some(recording), _) => (Arc::clone(recording), Some(name.to_owned())),
            (None, Some((REPLAY, path))) if !path.is_empty() => {
                let recording = self.recording(path).map_err(invalid)?;
                (recording, None)
            }
            _ => return Ok(None),
        };
        let secrets = self.secrets().and(settings.api_key);
        Ok(Some(Arc::new(Replay::new(recording, model, secrets))))
    }

    /// The recording at `path`: from the working directory, else from the folder of scripts.
    fn recording(&self, path: &str) -> Result<Arc<Recording>, String> {
        let mut place = PathBuf::from(path);
        if !place.exists() {
            place = self.script_folder.join(path);
        }
        let key = place.canonicalize().unwrap_or_else(|_| place.clone());
        let mut recordings = self
            .equipment
            .recordings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = recordings.get(&key) {
            return Ok(Arc::clone(open));
        }
        let recording = Recording::open(&place).map_err(|error| error.to_string())?;
        let recording = Arc::new(recording);
        recordings.insert(key, Arc::clone(&recording));
        Ok(recording)
    }

    /// What stands around the model `name` of `provider`, and how patient it is.
    pub(crate) fn around(&self, name: &str, provider: &dyn Provider) -> (Around, RetryPolicy) {
        let equipment = &self.equipment;
        let replayed = provider.name() == REPLAY;
        // What is played or scripted on this machine has no limits.
        let lane = provider
            .place()
            .map(|place| equipment.lanes.of(provider.name(), name, place));
        let around = Around {
            slots: None,
            lane,
            budgets: equipment.budgets.clone(),
            tape: equipment.tape.clone(),
            cache: equipment.cache.clone(),
            secrets: Arc::new(self.secrets()),
        };
        let mut retry = self.retry;
        if replayed {
            retry.longest_wait = Duration::ZERO;
        }
        (around, retry)
    }

    /// The values of the variables that hold secrets.
    fn secrets(&self) -> Secrets {
        let secret = |name: &str| SECRET_VARIABLES.iter().any(|part| name.contains(part));
        let values = self
            .variables
            .iter()
            .filter(|(name, _)| secret(name))
            .map(|(_, value)| value.expose_secret());
        Secrets::new(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn every_provider_of_the_table_has_a_lane_and_a_place() {
        let models = Models::new(|name| {
            let address = name.contains("BASE") || name.contains("ENDPOINT");
            let value = if address {
                "http://127.0.0.1:1/v1"
            } else {
                "key-0123456789"
            };
            (!name.starts_with("LITELLM_PROXY")).then(|| value.to_owned())
        });
        for preset in presets::PRESETS {
            let name = format!("{}/model", preset.name);
            // Accounts at Google are not made up so easily; the providers behind are those of others.
            if ["litellm_proxy", "vertex_ai"].contains(&preset.name) {
                continue;
            }
            let model = models.resolve(&name, &formats::Object::new()).unwrap();
            assert!(model.has_lane(), "{name}");
        }
    }
}
