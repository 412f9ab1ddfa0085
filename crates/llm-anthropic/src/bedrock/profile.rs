//! AWS's shared files of profiles: credentials and the region.

use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of a file of profiles.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Ways to credentials that this client does not go.
const OTHER_WAYS: &[&str] = &[
    "credential_process",
    "credential_source",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
];

/// The settings of one profile, from both files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Profile(BTreeMap<String, String>);

impl Profile {
    /// The profile `name` as the files at `paths` have it, the first one winning. A file that does not
    /// exist says nothing. The error is a sentence that names the file.
    pub(super) fn read(name: &str, paths: &[impl AsRef<Path>]) -> Result<Self, String> {
        let mut profile = Self::default();
        for path in paths {
            let path = path.as_ref();
            let text = match std::fs::metadata(path) {
                Err(_) => continue,
                Ok(about) if about.len() > LARGEST_FILE => {
                    return Err(format!(
                        "`{}` has {} bytes, the limit is {LARGEST_FILE}",
                        path.display(),
                        about.len()
                    ));
                }
                Ok(_) => std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
            };
            for (key, value) in section(&text, name) {
                profile.0.entry(key).or_insert(value);
            }
        }
        Ok(profile)
    }

    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The setting by which the profile gets its credentials in a way that is not known here.
    pub(super) fn other_way(&self) -> Option<&'static str> {
        OTHER_WAYS
            .iter()
            .copied()
            .find(|key| self.0.contains_key(*key))
    }
}

/// The settings of the section of the profile `name`: `[name]`, or `[profile name]` as in the file of
/// settings.
fn section(text: &str, name: &str) -> Vec<(String, String)> {
    let mut is_here = false;
    let mut settings = Vec::new();
    for line in text.lines() {
        // What is indented belongs to the setting above it.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        let line = line.trim();
        if let Some(title) = line
            .strip_prefix('[')
            .and_then(|line| line.split(']').next())
        {
            let title = title.trim();
            let bare = title.strip_prefix("profile ").unwrap_or(title);
            is_here = bare.trim() == name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_here) {
            settings.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=S=+/\n\n[other]\naws_access_key_id = B\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  region = nowhere\naws_access_key_id = Z\n[profile other]\nregion=us-west-2\nsso_session = x\n";

    #[test]
    fn both_files_are_read_and_the_first_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["credentials", "config", "missing"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], CREDENTIALS).unwrap();
        std::fs::write(&paths[1], CONFIG).unwrap();
        let profile = Profile::read("default", &paths).unwrap();
        assert_eq!(profile.get("aws_access_key_id"), Some("A"));
        assert_eq!(profile.get("aws_secret_access_key"), Some("S=+/"));
        assert_eq!(profile.get("region"), Some("eu-west-1"));
        assert_eq!(profile.other_way(), None);
        let other = Profile::read("other", &paths).unwrap();
        assert_eq!(other.get("aws_access_key_id"), Some("B"));
        assert_eq!(other.get("region"), Some("us-west-2"));
        assert_eq!(other.other_way(), Some("sso_session"));
        assert_eq!(Profile::read("none", &paths).unwrap(), Profile::default());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Profile::read("default", &[folder.path()]).unwrap_err();
        assert!(
            error.contains(&folder.path().display().to_string()),
            "{error}"
        );
    }
}
