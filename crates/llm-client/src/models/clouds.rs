//! Models behind gateways and at clouds, which have addresses and credentials of their own.

use secrecy::ExposeSecret;

use super::{Models, invalid};
use crate::gateway::{Gateway, LEAST_URGENT};
use crate::presets::{self, Preset};
use llm_anthropic::bedrock::{Authority, Bedrock, Identity, Missing};
use llm_openai::azure::{Credentials, Deployment};
use llm_openai::{Choice, Dialect, EitherInterface, OpenAi, Responses};
use llm_wire::exchange::Server;
use llm_wire::extra_args::{Api, Settings};
use llm_wire::{Endpoint, ModelNameError};

impl Models {
    /// A deployment of an OpenAI model at Azure.
    pub(super) fn azure(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<EitherInterface, ModelNameError> {
        let base = self.base_url(name, preset, settings)?;
        let token = self.first_set(presets::AZURE_TOKEN_VARIABLES);
        let credentials = match (self.key(name, preset, settings)?, token) {
            (Some(key), _) => Credentials::Key(key),
            (None, Some(token)) => Credentials::Token(token.clone()),
            (None, None) => {
                let variables = [preset.key_variables[0], presets::AZURE_TOKEN_VARIABLES[0]];
                return Err(ModelNameError::NoCredentials {
                    name: name.to_owned(),
                    variables: variables.join(" or "),
                });
            }
        };
        let version = settings.api_version.or_else(|| {
            self.first_set(presets::AZURE_VERSION_VARIABLES)
                .map(ExposeSecret::expose_secret)
        });
        let by_prefix = rest.strip_prefix("responses/");
        let model = by_prefix.unwrap_or(rest);
        let Deployment { chat, responses } = Deployment::new(model, &base, version, credentials)
            .map_err(|reason| invalid(name, reason))?;
        let http = self.connection(name, &base)?;
        let server = |endpoint| Server {
            provider: preset.name.to_owned(),
            endpoint,
            http: http.clone(),
        };
        Ok(EitherInterface {
            model: model.to_owned(),
            choice: by_prefix.map_or(Choice::ByNeed, |_| Choice::Fixed(Api::Responses)),
            chat: OpenAi::new(server(chat), model, Dialect::OpenAi),
            responses: Responses::new(server(responses), model),
        })
    }

    /// A model at AWS Bedrock.
    pub(super) fn bedrock(
        &self,
        name: &str,
        preset: &Preset,
        rest: &str,
        settings: &Settings<'_>,
    ) -> Result<Bedrock, ModelNameError> {
        let model = rest.strip_prefix("converse/").unwrap_or(rest);
        let identity = Identity::find(model, settings.api_key, |name| self.variables.get(name))
            .map_err(|missing| match missing {
                Missing::Credentials => ModelNameError::NoCredentials {
                    name: name.to_owned(),
                    variables:
                        "AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                            .to_owned(),
                },
                Missing::Wrong(reason) => invalid(name, reason),
            })?;
        let given = settings.api_base.map(str::to_owned).or_else(|| {
            self.first_set(preset.base_variables)
                .map(|base| base.expose_secret().to_owned())
        });
        let base = given.unwrap_or_else(|| Bedrock::address(&identity.region));
        let key = match &identity.authority {
            Authority::Bearer(token) => Some(token.clone()),
            Authority::Keys(_) => None,
        };
        let mut endpoint = self.endpoint(name, &base, key)?;
        if settings.api_base.is_some() {
            endpoint = endpoint.with_attribution();
        }
        let server = Server {
            provider: preset.name.to_owned(),
            endpoint,
            http: self.connection(name, &base)?,
        };
        Ok(Bedrock::new(server, model, identity))
    }

    /// A model behind a gateway that serves all providers.
    pub(super) fn behind_gateway(
        &self,
        name: &str,
        provider: &str,
        gateway: &Gateway,
    ) -> Result<OpenAi, ModelNameError> {
        let base = gateway.base.as_str();
        if !base.starts_with("https://") && !Endpoint::is_local(base) {
            return Err(invalid(
                name,
                "the gateway's base URL must begin with https://",
            ));
        }
        if gateway.priority > LEAST_URGENT {
            let reason = format!(
                "the gateway's priority must be from 0 to {LEAST_URGENT}, got {}",
                gateway.priority
            );
            return Err(invalid(name, reason));
        }
        let mut endpoint = self.endpoint(name, base, Some(gateway.key.clone()))?;
        for (header, value) in gateway.headers() {
            endpoint = endpoint
                .with_header(header, &value)
                .map_err(|reason| invalid(name, format!("the gateway's {header} {reason}")))?;
        }
        let server = Server {
            provider: provider.to_owned(),
            endpoint: endpoint.with_attribution().with_waits(),
            http: self.connection(name, base)?,
        };
        Ok(OpenAi::new(server, name, Dialect::Proxy))
    }
}
