//! Who asks, and in which region.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use super::profile::Profile;

/// Variables that this provider is set up by, its address apart.
pub const VARIABLES: &[&str] = &[
    BEARER_TOKEN,
    ACCESS_KEY_ID,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_REGION_NAME",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    CREDENTIALS_FILE,
    CONFIG_FILE,
    "HOME",
];

const BEARER_TOKEN: &str = "AWS_BEARER_TOKEN_BEDROCK";
const ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
const CREDENTIALS_FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const CONFIG_FILE: &str = "AWS_CONFIG_FILE";

/// What authorises requests.
#[derive(Debug, Clone)]
pub enum Authority {
    /// An API key for Bedrock, sent as it is.
    Bearer(SecretString),
    /// Keys that sign requests.
    Keys(Keys),
}

/// Keys that sign requests.
#[derive(Debug, Clone)]
pub struct Keys {
    pub(super) id: String,
    pub(super) secret: SecretString,
    pub(super) session_token: Option<SecretString>,
}

/// Who asks, and in which region.
#[derive(Debug, Clone)]
pub struct Identity {
    /// What authorises requests.
    pub authority: Authority,
    /// The region, such as `eu-west-1`.
    pub region: String,
}

/// Why there is no identity.
#[derive(Debug)]
pub enum Missing {
    /// No credentials were found.
    Credentials,
    /// Something is wrong with what was found; a sentence.
    Wrong(String),
}

impl Identity {
    /// Finds credentials and region for `model`: in the variables that `variable` looks up, then in
    /// the shared files of profiles. A given `key` is a bearer token and wins.
    ///
    /// # Errors
    /// [`Missing`] where there are none, or where something is wrong with them.
    pub fn find<'v>(
        model: &str,
        key: Option<&str>,
        variable: impl Fn(&'static str) -> Option<&'v SecretString>,
    ) -> Result<Self, Missing> {
        let text = |name| variable(name).map(|value| value.expose_secret().to_owned());
        let profile_name = text("AWS_PROFILE").or_else(|| text("AWS_DEFAULT_PROFILE"));
        let home = text("HOME").map(PathBuf::from);
        let file = |name, usual: &str| {
            text(name)
                .map(PathBuf::from)
                .or_else(|| Some(home.as_ref()?.join(".aws").join(usual)))
        };
        let paths: Vec<PathBuf> = [
            file(CREDENTIALS_FILE, "credentials"),
            file(CONFIG_FILE, "config"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let name = profile_name.as_deref().unwrap_or("default");
        let profile = Profile::read(name, &paths).map_err(Missing::Wrong)?;
        let region = region_of_arn(model)
            .map(str::to_owned)
            .or_else(|| text("AWS_REGION"))
            .or_else(|| text("AWS_DEFAULT_REGION"))
            .or_else(|| text("AWS_REGION_NAME"))
            .or_else(|| profile.get("region").map(str::to_owned))
            .ok_or_else(|| Missing::Wrong("the region is not known; set AWS_REGION".to_owned()))?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(fits) {
            return Err(Missing::Wrong(format!("`{region}` is no region of AWS")));
        }
        let bearer = key
            .map(SecretString::from)
            .or_else(|| variable(BEARER_TOKEN).cloned());
        let authority = match bearer {
            Some(token) => Authority::Bearer(token),
            None => Authority::Keys(keys(&profile, name, profile_name.is_some(), variable)?),
        };
        Ok(Self { authority, region })
    }
}

/// The keys in the variables, else in the profile. A profile that is asked for by name wins.
fn keys<'v>(
    profile: &Profile,
    name: &str,
    is_asked: bool,
    variable: impl Fn(&'static str) -> Option<&'v SecretString>,
) -> Result<Keys, Missing> {
    let id = variable(ACCESS_KEY_ID).filter(|_| !is_asked);
    if let Some(id) = id {
        let secret = variable(SECRET_ACCESS_KEY).ok_or_else(|| {
            Missing::Wrong(format!(
                "{ACCESS_KEY_ID} is set and {SECRET_ACCESS_KEY} is not"
            ))
        })?;
        return Ok(Keys {
            id: id.expose_secret().to_owned(),
            secret: secret.clone(),
            session_token: variable(SESSION_TOKEN).cloned(),
        });
    }
    let given = (
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
    );
    if let (Some(id), Some(secret)) = given {
        return Ok(Keys {
            id: id.to_owned(),
            secret: secret.into(),
            session_token: profile.get("aws_session_token").map(SecretString::from),
        });
    }
    match profile.other_way() {
        Some(way) => Err(Missing::Wrong(format!(
            "the AWS profile `{name}` has its credentials by `{way}`, which is not done here; \
             `aws configure export-credentials --profile {name} --format env` prints variables that do"
        ))),
        None if is_asked => Err(Missing::Wrong(format!(
            "the AWS profile `{name}` has no `aws_access_key_id` and `aws_secret_access_key`"
        ))),
        None => Err(Missing::Credentials),
    }
}

/// The region in the name of a resource, such as `arn:aws:bedrock:us-east-1:…`.
fn region_of_arn(model: &str) -> Option<&str> {
    let mut parts = model.split(':');
    let is_arn = parts.next() == Some("arn");
    parts.nth(2).filter(|region| is_arn && !region.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn find(model: &str, variables: &[(&'static str, &str)]) -> Result<Identity, String> {
        let variables: BTreeMap<&str, SecretString> = variables
            .iter()
            .map(|(name, value)| (*name, SecretString::from(*value)))
            .collect();
        Identity::find(model, None, |name| variables.get(name)).map_err(|missing| match missing {
            Missing::Credentials => "no credentials".to_owned(),
            Missing::Wrong(reason) => reason,
        })
    }

    #[test]
    fn variables_files_and_names_say_who_asks() {
        let folder = tempfile::tempdir().unwrap();
        let aws = folder.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        std::fs::write(
            aws.join("credentials"),
            "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\naws_session_token=t\n",
        )
        .unwrap();
        std::fs::write(
            aws.join("config"),
            "[default]\nregion=eu-west-1\n[profile sso]\nsso_session=x\nregion=eu-west-1\n",
        )
        .unwrap();
        let home = folder.path().to_str().unwrap();

        let from_file = find("m", &[("HOME", home)]).unwrap();
        assert_eq!(from_file.region, "eu-west-1");
        let Authority::Keys(keys) = from_file.authority else {
            panic!("no keys");
        };
        assert_eq!(keys.id, "FILE");
        assert_eq!(keys.session_token.unwrap().expose_secret(), "t");

        let own = [
            ("HOME", home),
            (ACCESS_KEY_ID, "OWN"),
            (SECRET_ACCESS_KEY, "s"),
            ("AWS_REGION", "us-east-1"),
        ];
        let own = find("m", &own).unwrap();
        assert_eq!(own.region, "us-east-1");
        assert!(matches!(own.authority, Authority::Keys(Keys { id, .. }) if id == "OWN"));

        let arn = "arn:aws:bedrock:ap-south-1:123456789012:inference-profile/x";
        let bearer = find(arn, &[(BEARER_TOKEN, "k"), ("AWS_REGION", "us-east-1")]).unwrap();
        assert_eq!(bearer.region, "ap-south-1");
        assert!(matches!(bearer.authority, Authority::Bearer(_)));

        for (variables, expected) in [
            (vec![("AWS_REGION", "us-east-1")], "no credentials"),
            (vec![(BEARER_TOKEN, "k")], "set AWS_REGION"),
            (vec![(BEARER_TOKEN, "k"), ("AWS_REGION", "a/b")], "`a/b`"),
            (
                vec![("AWS_REGION", "us-east-1"), (ACCESS_KEY_ID, "x")],
                "AWS_SECRET_ACCESS_KEY is not",
            ),
            (
                vec![("HOME", home), ("AWS_PROFILE", "sso")],
                "by `sso_session`",
            ),
            (
                vec![("HOME", home), ("AWS_PROFILE", "who"), ("AWS_REGION", "r")],
                "profile `who`",
            ),
        ] {
            let error = find("m", &variables).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
