//! The `subsystem` of a request (`spec/environment.md` §12.3).

use std::path::{Path, PathBuf};

use crate::settings::{Settings, Subsystem};

/// A place in a world: a directory in one of its subsystems. Links in `inner` are not looked at
/// here; whoever opens it has to stay inside the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// Relative to the root, ordinary components only.
    pub(crate) inner: PathBuf,
}

/// Reads a subsystem as it is given in a request. The error is for people.
pub(crate) fn place(settings: &Settings, given: &str) -> Result<Place, String> {
    if given.trim().is_empty() {
        return Err("Subsystem name cannot be empty".to_owned());
    }
    if given.starts_with('/') {
        return Err("Subsystem name cannot start with '/'".to_owned());
    }
    if given.contains("..") {
        return Err("Subsystem name cannot contain '..' (path traversal not allowed)".to_owned());
    }
    if given.contains('\\') {
        return Err("Subsystem name cannot contain '\\' (use '/' for nested paths)".to_owned());
    }
    let known = [&settings.filesystem, &settings.apps_data];
    known
        .into_iter()
        .find_map(|subsystem| below(subsystem, given))
        .ok_or_else(|| {
            let [files, apps] = known.map(|subsystem| subsystem.name.as_str());
            format!("Subsystem must start with '{files}', '{apps}'. Got: '{given}'")
        })
}

fn below(subsystem: &Subsystem, given: &str) -> Option<Place> {
    let rest = given.strip_prefix(subsystem.name.as_str())?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let inner = rest
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .fold(PathBuf::new(), |path, part| path.join(Path::new(part)));
    Some(Place {
        root: subsystem.root.clone(),
        inner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_in_their_order() {
        let settings = Settings::default();
        let refused = |given: &str| place(&settings, given).unwrap_err();
        assert_eq!(refused(""), "Subsystem name cannot be empty");
        assert_eq!(refused("  "), "Subsystem name cannot be empty");
        assert_eq!(
            refused("/filesystem/.."),
            "Subsystem name cannot start with '/'"
        );
        assert_eq!(
            refused("filesystem/a..b\\"),
            "Subsystem name cannot contain '..' (path traversal not allowed)"
        );
        assert_eq!(
            refused("filesystem\\a"),
            "Subsystem name cannot contain '\\' (use '/' for nested paths)"
        );
        for given in [
            "nope",
            " filesystem",
            "filesystemx",
            "Filesystem",
            "apps_data",
            "./filesystem",
        ] {
            assert_eq!(
                refused(given),
                format!("Subsystem must start with 'filesystem', '.apps_data'. Got: '{given}'")
            );
        }
    }

    #[test]
    fn nested_places() {
        let settings = Settings::default();
        for (given, root, inner) in [
            ("filesystem", "/filesystem", ""),
            ("filesystem/", "/filesystem", ""),
            ("filesystem//b", "/filesystem", "b"),
            ("filesystem/./a/b", "/filesystem", "a/b"),
            (".apps_data/mail", "/.apps_data", "mail"),
        ] {
            let right = Place {
                root: root.into(),
                inner: inner.into(),
            };
            assert_eq!(place(&settings, given).unwrap(), right, "{given}");
        }
    }
}
