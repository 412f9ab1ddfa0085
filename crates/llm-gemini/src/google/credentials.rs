//! Google's credentials: where they are, and what is in them
//! (<https://cloud.google.com/docs/authentication/application-default-credentials>).

use std::path::{Path, PathBuf};

use aws_lc_rs::signature::RsaKeyPair;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Variables that hold credentials, or the path of a file with them; the first one that is set wins.
pub const CREDENTIALS: &[&str] = &["VERTEXAI_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS"];
/// The folder of gcloud's settings.
pub(super) const GCLOUD_FOLDER: &str = "CLOUDSDK_CONFIG";
/// The user's folder.
pub(super) const HOME: &str = "HOME";
/// Where the metadata server is.
pub(super) const METADATA_HOST: &str = "GCE_METADATA_HOST";
/// Is set on Cloud Run, which has a metadata server.
pub(super) const CLOUD_RUN: &str = "K_SERVICE";

/// The metadata server of every machine at Google.
const METADATA: &str = "metadata.google.internal";
/// Where it gives tokens.
const TOKEN_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";
/// Tells the maker of a machine.
const MACHINE: &str = "/sys/class/dmi/id/product_name";
/// The file that gcloud writes for programs.
const GCLOUD_FILE: &str = "application_default_credentials.json";
/// Largest credential file, in bytes.
const LARGEST_FILE: u64 = 1024 * 1024;
/// Where users' tokens are renewed.
const USER_TOKENS: &str = "https://oauth2.googleapis.com/token";

/// Credentials that were found.
pub struct Found {
    pub(super) credentials: Credentials,
    /// Tells these credentials apart from others.
    pub(super) source: SecretString,
}

/// What gives access tokens.
pub(super) enum Credentials {
    /// A key of a service account, which signs for its tokens.
    ServiceAccount {
        email: String,
        key: RsaKeyPair,
        key_id: Option<String>,
        token_uri: String,
        project: Option<String>,
    },
    /// A user who agreed once.
    User {
        client_id: String,
        client_secret: SecretString,
        refresh_token: SecretString,
        token_uri: String,
        project: Option<String>,
    },
    /// The machine at Google that this runs on.
    Metadata { address: String },
}

/// Why no credentials can be used.
#[derive(Debug)]
pub enum Missing {
    /// There are none.
    Nowhere,
    /// Those that are named cannot be used; a sentence with the name.
    Unusable(String),
}

impl Found {
    /// Whether the tokens come from the machine's own surroundings.
    pub fn is_next_door(&self) -> bool {
        matches!(self.credentials, Credentials::Metadata { .. })
    }

    /// Where the tokens come from.
    pub fn address(&self) -> &str {
        match &self.credentials {
            Credentials::ServiceAccount { token_uri, .. } | Credentials::User { token_uri, .. } => {
                token_uri
            }
            Credentials::Metadata { address } => address,
        }
    }

    /// The project that the credentials belong to, if they say.
    pub fn project(&self) -> Option<&str> {
        match &self.credentials {
            Credentials::ServiceAccount { project, .. } | Credentials::User { project, .. } => {
                project.as_deref()
            }
            Credentials::Metadata { .. } => None,
        }
    }
}

/// Looks for credentials: in variables, in gcloud's file, at the metadata server if this machine is
/// Google's. Nothing is sent.
///
/// # Errors
/// [`Missing`] where there are none, or where those that are named cannot be used.
pub fn find<'v>(variable: &dyn Fn(&str) -> Option<&'v str>) -> Result<Found, Missing> {
    for name in CREDENTIALS {
        let Some(value) = variable(name) else {
            continue;
        };
        let in_place = *name == CREDENTIALS[0] && value.trim_start().starts_with('{');
        let text = if in_place {
            Ok(value.to_owned())
        } else {
            read(Path::new(value)).map_err(|reason| format!("the file `{value}` {reason}"))
        };
        return text
            .and_then(|text| parse(&text))
            .map_err(|reason| Missing::Unusable(format!("{name}: {reason}")));
    }
    let folder = variable(GCLOUD_FOLDER)
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(variable(HOME)?).join(".config/gcloud")));
    if let Some(path) = folder.map(|folder| folder.join(GCLOUD_FILE))
        && path.is_file()
    {
        let text = read(&path).map_err(|reason| format!("the file {reason}"));
        return text
            .and_then(|text| parse(&text))
            .map_err(|reason| Missing::Unusable(format!("`{}`: {reason}", path.display())));
    }
    let host = variable(METADATA_HOST);
    if host.is_none() && variable(CLOUD_RUN).is_none() && !is_at_google() {
        return Err(Missing::Nowhere);
    }
    let address = format!("http://{}/{TOKEN_PATH}", host.unwrap_or(METADATA));
    Ok(Found {
        source: SecretString::from(address.clone()),
        credentials: Credentials::Metadata { address },
    })
}

fn is_at_google() -> bool {
    std::fs::read_to_string(MACHINE).is_ok_and(|name| name.contains("Google"))
}

fn read(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path)
        .map_err(|error| format!("cannot be read: {error}"))?
        .len();
    if length > LARGEST_FILE {
        return Err(format!("has {length} bytes, the limit is {LARGEST_FILE}"));
    }
    std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}

/// A credential file of Google's.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "type", default)]
    kind: String,
    client_email: Option<String>,
    private_key: Option<SecretString>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
    project_id: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SecretString>,
    refresh_token: Option<SecretString>,
    quota_project_id: Option<String>,
}

/// Reads credentials. The error is the end of a sentence, without anything of their content but names.
fn parse(text: &str) -> Result<Found, String> {
    let file: File = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it is no JSON of credentials (line {line}, column {column})")
    })?;
    let missing = |name: &str| format!("it lacks `{name}`");
    let token_uri = |usual: Option<&str>| {
        let given = file.token_uri.as_deref().or(usual);
        let uri = given.ok_or_else(|| missing("token_uri"))?;
        let known = uri.starts_with("https://") || uri.starts_with("http://");
        known
            .then(|| uri.to_owned())
            .ok_or_else(|| format!("its `token_uri` is no address: `{uri}`"))
    };
    let credentials = match file.kind.as_str() {
        "service_account" => {
            let pem = file.private_key.ok_or_else(|| missing("private_key"))?;
            Credentials::ServiceAccount {
                email: file.client_email.ok_or_else(|| missing("client_email"))?,
                key: key(pem.expose_secret()).ok_or("its `private_key` is no RSA key in PEM")?,
                key_id: file.private_key_id,
                token_uri: token_uri(None)?,
                project: file.project_id,
            }
        }
        "authorized_user" => Credentials::User {
            token_uri: token_uri(Some(USER_TOKENS))?,
            client_id: file.client_id.ok_or_else(|| missing("client_id"))?,
            client_secret: file.client_secret.ok_or_else(|| missing("client_secret"))?,
            refresh_token: file.refresh_token.ok_or_else(|| missing("refresh_token"))?,
            project: file.quota_project_id.or(file.project_id),
        },
        other => {
            return Err(format!(
                "its `type` must be service_account or authorized_user, got `{other}`"
            ));
        }
    };
    Ok(Found {
        credentials,
        source: SecretString::from(text),
    })
}

fn key(pem: &str) -> Option<RsaKeyPair> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok(),
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(text: &str) -> String {
        let variable = |name: &str| (name == CREDENTIALS[0]).then_some(text);
        match find(&variable) {
            Err(Missing::Unusable(reason)) => reason,
            Err(Missing::Nowhere) => "nowhere".to_owned(),
            Ok(_) => "usable".to_owned(),
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_secrets_are_not() {
        let account = |key: &str| {
            json!({
                "type": "service_account", "client_email": "a@b", "private_key": key,
                "token_uri": "https://t"
            })
        };
        for (text, expected) in [
            (
                "{\"type\": \"service_account\", ".to_owned(),
                "no JSON of credentials (line 1",
            ),
            (
                json!({"type": "service_account"}).to_string(),
                "lacks `private_key`",
            ),
            (
                account("very secret").to_string(),
                "`private_key` is no RSA key in PEM",
            ),
            (
                json!({"type": "authorized_user", "client_id": "c"}).to_string(),
                "lacks `client_secret`",
            ),
            (
                json!({"type": "external_account"}).to_string(),
                "got `external_account`",
            ),
            (
                "/no/such/file.json".to_owned(),
                "`/no/such/file.json` cannot be read",
            ),
            (
                json!({"type": "authorized_user", "token_uri": "ftp://x"}).to_string(),
                "no address: `ftp://x`",
            ),
        ] {
            let reason = told(&text);
            assert!(reason.contains(expected), "{reason}");
            assert!(reason.starts_with("VERTEXAI_CREDENTIALS: "), "{reason}");
            assert!(!reason.contains("very secret"), "{reason}");
        }
    }

    #[test]
    fn gcloud_and_the_metadata_server_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let user = json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
            "quota_project_id": "p"
        });
        let gcloud = folder.path().join(".config/gcloud");
        std::fs::create_dir_all(&gcloud).unwrap();
        std::fs::write(gcloud.join(GCLOUD_FILE), user.to_string()).unwrap();
        let home = folder.path().to_str().unwrap();
        let found = find(&|name: &str| (name == HOME).then_some(home)).unwrap_or_else(|_| panic!());
        assert_eq!(found.project(), Some("p"));
        assert!(matches!(found.credentials, Credentials::User { .. }));
        let host = "127.0.0.1:9";
        let found = find(&|name: &str| (name == METADATA_HOST).then_some(host));
        assert!(matches!(
            found,
            Ok(Found {
                credentials: Credentials::Metadata { .. },
                ..
            })
        ));
    }
}
