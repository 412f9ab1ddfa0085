//! OpenAI's models at Azure: where a deployment is and how a call is authorised.
//!
//! What is said there is OpenAI's own format. There are two kinds of addresses: the older ones name
//! the deployment and a dated version of the interface, the newer ones (`/openai/v1/`) do not.

use http::{HeaderName, header};
use secrecy::SecretString;

use llm_wire::Endpoint;

/// Versions by which the newer addresses are meant.
const UNDATED: &[&str] = &["v1", "latest", "preview"];

/// What authorises a call.
#[derive(Debug)]
pub enum Credentials {
    /// A key of the resource.
    Key(SecretString),
    /// A token of Microsoft Entra ID.
    Token(SecretString),
}

/// The servers of one deployment.
#[derive(Debug)]
pub struct Deployment {
    /// For chat completions.
    pub chat: Endpoint,
    /// For the Responses interface.
    pub responses: Endpoint,
}

impl Deployment {
    /// The deployment `name` of the resource at `base`, with or without `/openai/…` behind.
    ///
    /// # Errors
    /// What is wrong with the name, the base URL or the version.
    pub fn new(
        name: &str,
        base: &str,
        version: Option<&str>,
        credentials: Credentials,
    ) -> Result<Self, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(fits) {
            return Err(format!(
                "the deployment `{name}` has characters other than letters, digits, `-`, `_` and `.`"
            ));
        }
        let base = base.trim_end_matches('/');
        let is_new_base = base.ends_with("/openai/v1");
        let resource = match base.find("/openai/").or_else(|| base.find("/openai")) {
            Some(end) => &base[..end],
            None => base,
        };
        let dated = version.filter(|version| !UNDATED.contains(version) && !is_new_base);
        let (chat, responses, query) = match dated {
            Some(dated) => (
                format!("{resource}/openai/deployments/{name}"),
                format!("{resource}/openai"),
                Some(dated),
            ),
            None => {
                let base = format!("{resource}/openai/v1");
                let preview = version.filter(|version| *version == "preview");
                (base.clone(), base, preview)
            }
        };
        let (key, header) = match credentials {
            Credentials::Key(key) => (key, HeaderName::from_static("api-key")),
            Credentials::Token(token) => (token, header::AUTHORIZATION),
        };
        let endpoint = |base: &str| {
            let endpoint = Endpoint::with_key_in(base, Some(key.clone()), &header)?;
            match query {
                Some(version) => endpoint
                    .with_query("api-version", version)
                    .map_err(|reason| format!("the version of the interface: {reason}")),
                None => Ok(endpoint),
            }
        };
        Ok(Self {
            chat: endpoint(&chat)?,
            responses: endpoint(&responses)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(base: &str, version: Option<&str>) -> (String, String) {
        let key = Credentials::Key("secret".to_owned().into());
        let deployment = Deployment::new("gpt-4.1", base, version, key).unwrap();
        (
            deployment.chat.address("/chat/completions"),
            deployment.responses.address("/responses"),
        )
    }

    #[test]
    fn both_kinds_of_addresses_are_made() {
        let new = (
            "https://r.openai.azure.com/openai/v1/chat/completions".to_owned(),
            "https://r.openai.azure.com/openai/v1/responses".to_owned(),
        );
        for base in [
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/",
            "https://r.openai.azure.com/openai",
            "https://r.openai.azure.com/openai/v1/",
        ] {
            for version in [None, Some("v1"), Some("latest")] {
                assert_eq!(addresses(base, version), new, "{base}");
            }
        }
        assert_eq!(
            addresses("https://r.openai.azure.com", Some("preview")).0,
            format!("{}?api-version=preview", new.0)
        );
        let dated = (
            "https://r.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21".to_owned(),
            "https://r.openai.azure.com/openai/responses?api-version=2024-10-21".to_owned(),
        );
        for base in [
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/openai/deployments/other",
        ] {
            assert_eq!(addresses(base, Some("2024-10-21")), dated, "{base}");
        }
    }

    #[test]
    fn what_would_change_the_address_is_refused() {
        let key = || Credentials::Key("secret".to_owned().into());
        let base = "https://r.openai.azure.com";
        assert!(
            Deployment::new("a/b", base, None, key())
                .unwrap_err()
                .contains("`a/b`")
        );
        let error = Deployment::new("a", base, Some("2024&x=1"), key()).unwrap_err();
        assert!(error.contains("`2024&x=1`"), "{error}");
    }
}
