//! From model names to models.

mod clouds;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use formats::Object;
use secrecy::{ExposeSecret, SecretString};

use crate::equipment::Equipment;
use crate::gateway::Gateway;
use crate::model::Model;
use crate::presets::{self, Preset, Wire};
use crate::retry::RetryPolicy;
use crate::scripted::{self, Scripted};
use crate::vertex;
use llm_anthropic::Anthropic;
use llm_gemini::Gemini;
use llm_gemini::google;
use llm_openai::{Choice, Dialect, EitherInterface, OpenAi, Responses};
use llm_wire::exchange::Server;
use llm_wire::extra_args::{Api, Settings};
use llm_wire::{Endpoint, ModelNameError, Price, Provider, price_of};

/// How long connecting to a server may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Finds models by name, with the credentials and settings of one program.
///
/// It is built from an explicit look-up of variables, so that a program decides where they come
/// from; the library itself reads no environment. Cloning is cheap, and clones share connections.
///
/// ```
/// # use llm_client::Models;
/// let models = Models::new(|name| (name == "OPENAI_API_KEY").then(|| "sk-…".to_owned()));
/// # let _ = (|| {
/// let model = models.resolve("openai/gpt-4.1", &formats::Object::new())?;
/// assert_eq!(model.provider(), "openai");
/// # Ok::<_, llm_client::ModelNameError>(()) });
/// ```
#[derive(Debug, Clone, Default)]
pub struct Models {
    pub(crate) variables: Arc<BTreeMap<&'static str, SecretString>>,
    pub(crate) script_folder: PathBuf,
    pub(crate) retry: RetryPolicy,
    pub(crate) equipment: Equipment,
    prices: Arc<BTreeMap<String, Price>>,
    connections: Arc<Connections>,
    tokens: Arc<Mutex<Vec<Arc<google::Tokens>>>>,
    gateway: Option<Arc<Gateway>>,
}

/// HTTP clients, made when first needed and shared by all models.
#[derive(Debug, Default)]
struct Connections {
    /// For servers elsewhere: goes through the proxy that the system is set up for.
    remote: OnceLock<reqwest::Client>,
    /// For servers on this machine: always direct.
    local: OnceLock<reqwest::Client>,
}

impl Models {
    /// Models with the credentials that `variable` finds by name (`OPENAI_API_KEY`, …). It is asked
    /// once for every name in the table of providers; empty values count as not set.
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variables = presets::variables()
            .filter_map(|name| {
                let value = variable(name)?;
                let value = value.trim();
                (!value.is_empty()).then(|| (name, SecretString::from(value)))
            })
            .collect();
        Self {
            variables: Arc::new(variables),
            ..Self::default()
        }
    }

    /// Relative paths in `scripted/<path>` are taken from `folder`; otherwise from the working
    /// directory.
    #[must_use]
    pub fn with_script_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.script_folder = folder.into();
        self
    }

    /// The retry policy of all models. The extra argument `num_retries` of a call wins over its
    /// number of attempts.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Prices by full model name that win over the built-in table.
    #[must_use]
    pub fn with_prices(mut self, prices: BTreeMap<String, Price>) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Sends all calls through `gateway`, scripted ones apart.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Gateway) -> Self {
        self.gateway = Some(Arc::new(gateway));
        self
    }

    /// The model `name` (`provider/model`). `extra_args` may name another `api_base` or `api_key`.
    ///
    /// # Errors
    /// [`ModelNameError`] when the name, the credentials or a setting cannot work. Nothing is sent.
    pub fn resolve(&self, name: &str, extra_args: &Object) -> Result<Model, ModelNameError> {
        let settings = Settings::read(extra_args).map_err(|reason| invalid(name, reason))?;
        let no_provider = || ModelNameError::NoProvider {
            name: name.to_owned(),
        };
        let (provider, rest) = name.split_once('/').ok_or_else(no_provider)?;
        if provider.is_empty() {
            return Err(no_provider());
        }
        if rest.is_empty() {
            return Err(invalid(name, format!("nothing follows `{provider}/`")));
        }
        let provider: Arc<dyn Provider> = if let Some(replayed) = self.replayed(name, &settings)? {
            replayed
        } else if provider == scripted::NAME {
            Arc::new(
                Scripted::load(rest, &self.script_folder)
                    .map_err(|reason| invalid(name, reason.to_string()))?,
            )
        } else {
            self.remote(name, provider, rest, &settings)?
        };
        let price = self.prices.get(name).copied().or_else(|| {
            // Nobody is paid for what a script says.
            let free = provider.name() == scripted::NAME;
            free.then(|| Price::new(0.0, 0.0))
                .or_else(|| price_of(name))
        });
        tracing::debug!(
            model = name,
            provider = provider.name(),
            place = provider.place(),
            "model found"
        );
        let (around, retry) = self.around(name, provider.as_ref());
        Ok(Model::new(name, provider)
            .with_retry(retry)
            .with_around(around)
            .with_price(price))
    }

    /// A model of a server: of the proxy that serves all providers, or of one of the table.
    fn remote(
        &self,
        name: &str,
        provider: &str,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<Arc<dyn Provider>, ModelNameError> {
        if let Some(gateway) = &self.gateway {
            let model = self.behind_gateway(name, provider, gateway)?;
            return Ok(Arc::new(model));
        }
        if settings.api_base.is_none()
            && let Some((base, key)) = self.proxy()
        {
            if settings.api == Some(Api::Responses) {
                return Err(invalid(
                    name,
                    "the proxy is asked over chat completions; the extra argument `api` cannot be `responses`",
                ));
            }
            let key = settings.api_key.map_or(key, SecretString::from);
            let endpoint = self.endpoint(name, base.expose_secret(), Some(key))?;
            // The proxy routes by the whole name; its own prefix is for us.
            let wire_name = if provider == "litellm_proxy" {
                rest
            } else {
                name
            };
            let server = Server {
                provider: provider.to_owned(),
                endpoint: endpoint.with_attribution(),
                http: self.connection(name, base.expose_secret())?,
            };
            return Ok(Arc::new(OpenAi::new(server, wire_name, Dialect::Proxy)));
        }
        let Some(preset) = presets::find(provider) else {
            return Err(self.unusable(name, provider));
        };
        if settings.api.is_some() && !preset.wire.is_openai() {
            return Err(invalid(
                name,
                format!(
                    "provider `{provider}` has one interface; the extra argument `api` is for OpenAI's"
                ),
            ));
        }
        Ok(match preset.wire {
            Wire::ChatCompletions => Arc::new(self.openai(name, preset, rest, settings)?),
            Wire::AnthropicMessages => Arc::new(self.anthropic(name, preset, rest, settings)?),
            Wire::Azure => Arc::new(self.azure(name, preset, rest, settings)?),
            Wire::GenerateContent => Arc::new(self.gemini(name, preset, rest, settings)?),
            Wire::Vertex => self.vertex(name, preset, rest, settings)?,
            Wire::BedrockConverse => Arc::new(self.bedrock(name, preset, rest, settings)?),
        })
    }

    /// A model of a server that speaks OpenAI's format.
    fn openai(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<EitherInterface, ModelNameError> {
        let base = self.base_url(name, preset, settings)?;
        let key = self.key(name, preset, settings)?;
        let mut endpoint = self.endpoint(name, &base, key)?;
        if preset.name == "openai" {
            for (header, variable) in [
                ("openai-organization", presets::ORGANIZATION_VARIABLE),
                ("openai-project", presets::PROJECT_VARIABLE),
            ] {
                if let Some(value) = self.variables.get(variable) {
                    endpoint = endpoint
                        .with_header(header, value.expose_secret())
                        .map_err(|reason| invalid(name, format!("{variable} {reason}")))?;
                }
            }
        }
        if settings.api_base.is_some() {
            endpoint = endpoint.with_attribution();
        }
        let dialect = if preset.name == "litellm_proxy" {
            Dialect::Proxy
        } else {
            Dialect::of_host(endpoint.host())
        };
        let choice = match (preset.name, dialect) {
            ("openai", Dialect::OpenAi) => Choice::ByNeed,
            ("openai", _) => Choice::ByStatedNeed,
            _ => Choice::Fixed(Api::ChatCompletions),
        };
        let server = Server {
            provider: preset.name.to_owned(),
            endpoint,
            http: self.connection(name, &base)?,
        };
        let by_prefix = rest
            .strip_prefix("responses/")
            .filter(|_| preset.name == "openai");
        let model = by_prefix.unwrap_or(rest);
        Ok(EitherInterface {
            model: model.to_owned(),
            choice: by_prefix.map_or(choice, |_| Choice::Fixed(Api::Responses)),
            chat: OpenAi::new(server.clone(), model, dialect),
            responses: Responses::new(server, model),
        })
    }

    /// A model of a server that speaks Anthropic's format.
    fn anthropic(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<Anthropic, ModelNameError> {
        let base = self.base_url(name, preset, settings)?;
        let token = self
            .variables
            .get(presets::ANTHROPIC_TOKEN_VARIABLE)
            .filter(|_| {
                settings.api_key.is_none() && self.first_set(preset.key_variables).is_none()
            });
        let endpoint = match token {
            Some(token) => Anthropic::endpoint_with_token(&base, token.clone()),
            None => Anthropic::endpoint(&base, self.key(name, preset, settings)?),
        };
        let mut endpoint = endpoint.map_err(|reason| invalid(name, reason))?;
        if settings.api_base.is_some() {
            endpoint = endpoint.with_attribution();
        }
        let http = self.connection(name, &base)?;
        Ok(Anthropic::new(preset.name, rest, endpoint, http))
    }

    /// A model of a server that speaks Google's format.
    fn gemini(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<Gemini, ModelNameError> {
        let base = self.base_url(name, preset, settings)?;
        let key = self.key(name, preset, settings)?;
        let mut endpoint = Gemini::endpoint(&base, key).map_err(|reason| invalid(name, reason))?;
        if settings.api_base.is_some() {
            endpoint = endpoint.with_attribution();
        }
        let http = self.connection(name, &base)?;
        Ok(Gemini::new(preset.name, rest, endpoint, http))
    }

    /// A model at Vertex AI.
    fn vertex(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<Arc<dyn Provider>, ModelNameError> {
        let wrong = |reason: String| invalid(name, reason);
        let variable = |name: &str| Some(self.variables.get(name)?.expose_secret());
        // A token that the caller has stands in the place of credentials; one in the environment, in
        // the place of those that nobody named.
        let is_named = google::CREDENTIALS
            .iter()
            .any(|name| variable(name).is_some());
        let token = settings
            .api_key
            .filter(|token| !token.is_empty())
            .or_else(|| variable(google::ACCESS_TOKEN).filter(|_| !is_named));
        let found = match token {
            Some(_) => None,
            None => Some(google::find(&variable).map_err(|missing| match missing {
                google::Missing::Unusable(reason) => wrong(reason),
                google::Missing::Nowhere => ModelNameError::NoCredentials {
                    name: name.to_owned(),
                    variables: preset.key_variables.join(" or "),
                },
            })?),
        };
        let first = |names: &[&'static str]| self.first_set(names).map(ExposeSecret::expose_secret);
        let project = settings.vertex_project.or_else(|| first(vertex::PROJECTS));
        let project = project.or_else(|| found.as_ref()?.project());
        let project = project.ok_or_else(|| {
            let variables = vertex::PROJECTS.join(" or ");
            wrong(format!(
                "the project at Google Cloud is not known; set {variables}"
            ))
        })?;
        let location = settings
            .vertex_location
            .or_else(|| first(vertex::LOCATIONS));
        let location = location.unwrap_or_else(|| vertex::Place::usual_location(rest));
        let place = vertex::Place::new(project, location).map_err(wrong)?;
        let base = settings.api_base.or_else(|| first(preset.base_variables));
        let base = base.map_or_else(|| place.base(), str::to_owned);
        let http = self.connection(name, &base)?;
        let mut endpoint = self.endpoint(name, &base, token.map(SecretString::from))?;
        if let Some(found) = found {
            endpoint = endpoint.with_tokens(self.tokens(name, found)?);
        }
        if settings.api_base.is_some() {
            endpoint = endpoint.with_attribution();
        }
        place
            .model(preset.name, rest, endpoint, http)
            .map_err(wrong)
    }

    /// The tokens of the credentials `found`, shared by all models that use them.
    fn tokens(
        &self,
        name: &str,
        found: google::Found,
    ) -> Result<Arc<google::Tokens>, ModelNameError> {
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|tokens| tokens.is_of(&found)) {
            return Ok(Arc::clone(known));
        }
        // The metadata server is behind no proxy.
        let near = found.is_next_door() || Endpoint::is_local(found.address());
        let http = self.client(name, near)?;
        let tokens = google::Tokens::new("vertex_ai", found, http);
        all.push(Arc::clone(&tokens));
        Ok(tokens)
    }

    /// Why a provider that is not in the table cannot be used.
    fn unusable(&self, name: &str, provider: &str) -> ModelNameError {
        let (name, provider) = (name.to_owned(), provider.to_owned());
        if presets::NOT_YET.contains(&provider.as_str()) {
            ModelNameError::NotAvailable {
                name,
                provider,
                hint: format!(
                    "unless a proxy is set up by {} and {}",
                    presets::PROXY_BASE_VARIABLE,
                    presets::PROXY_KEY_VARIABLE
                ),
            }
        } else {
            ModelNameError::UnknownProvider {
                name,
                provider,
                known: presets::known(),
            }
        }
    }

    /// Base URL and key of the proxy, if both are set.
    fn proxy(&self) -> Option<(&SecretString, SecretString)> {
        let base = self.variables.get(presets::PROXY_BASE_VARIABLE);
        let key = self.variables.get(presets::PROXY_KEY_VARIABLE);
        match (base, key) {
            (Some(base), Some(key)) => Some((base, key.clone())),
            (None, None) => None,
            _ => {
                tracing::warn!(
                    "only one of {} and {} is set; the proxy is not used",
                    presets::PROXY_BASE_VARIABLE,
                    presets::PROXY_KEY_VARIABLE
                );
                None
            }
        }
    }

    fn first_set(&self, variables: &[&'static str]) -> Option<&SecretString> {
        variables.iter().find_map(|name| self.variables.get(*name))
    }

    fn base_url(
        &self,
        name: &str,
        preset: &Preset,
        settings: &Settings<'_>,
    ) -> Result<String, ModelNameError> {
        if let Some(base) = settings.api_base {
            return Ok(base.to_owned());
        }
        if let Some(base) = self.first_set(preset.base_variables) {
            return Ok(base.expose_secret().to_owned());
        }
        preset.base_url.map(str::to_owned).ok_or_else(|| {
            let variables = preset.base_variables.join(" or ");
            invalid(
                name,
                format!("the server's address is not known; set {variables}, or the extra argument `api_base`"),
            )
        })
    }

    fn key(
        &self,
        name: &str,
        preset: &Preset,
        settings: &Settings<'_>,
    ) -> Result<Option<SecretString>, ModelNameError> {
        let given = settings.api_key.filter(|key| !key.is_empty());
        let key = given
            .map(SecretString::from)
            .or_else(|| self.first_set(preset.key_variables).cloned());
        if key.is_none() && preset.needs_key {
            return Err(ModelNameError::NoCredentials {
                name: name.to_owned(),
                variables: preset.key_variables.join(" or "),
            });
        }
        Ok(key)
    }

    fn endpoint(
        &self,
        name: &str,
        base: &str,
        key: Option<SecretString>,
    ) -> Result<Endpoint, ModelNameError> {
        Endpoint::new(base, key).map_err(|reason| invalid(name, reason))
    }

    fn connection(&self, name: &str, base: &str) -> Result<reqwest::Client, ModelNameError> {
        self.client(name, Endpoint::is_local(base))
    }

    fn client(&self, name: &str, local: bool) -> Result<reqwest::Client, ModelNameError> {
        let slot = if local {
            &self.connections.local
        } else {
            &self.connections.remote
        };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let mut builder = reqwest::Client::builder()
            // A redirected POST would arrive as a GET without its body.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .user_agent(concat!(
                "archipelago-llm-client/",
                env!("CARGO_PKG_VERSION")
            ));
        if local {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| invalid(name, format!("no HTTP client can be made: {error}")))?;
        Ok(slot.get_or_init(|| client).clone())
    }
}

fn invalid(name: &str, reason: impl Into<String>) -> ModelNameError {
    ModelNameError::Invalid {
        name: name.to_owned(),
        reason: reason.into(),
    }
}
