//! The files that an image is built from.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _};
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use walkdir::WalkDir;

/// Packs `folder` as a tar, in order and without times, and without what its `.dockerignore`
/// names; blocks. The `dockerfile` is in it in any case, since the builder reads it from there.
/// The file has no name and goes when it is closed.
pub(super) fn pack(folder: &Path, dockerfile: &str) -> io::Result<File> {
    let rules = Rules::read(&folder.join(".dockerignore"))?;
    let mut tar = tar::Builder::new(BufWriter::new(tempfile::tempfile()?));
    tar.mode(tar::HeaderMode::Deterministic);
    tar.follow_symlinks(false);
    // Files below an ignored folder may be asked for again, so every folder is looked into; but
    // what can never be asked for is skipped.
    let walk = WalkDir::new(folder).min_depth(1).sort_by_file_name();
    let entries = walk.into_iter().filter_entry(|entry| {
        let inside = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        !entry.file_type().is_dir() || rules.may_hold_something(inside)
    });
    for entry in entries {
        let entry = entry?;
        let inside = entry
            .path()
            .strip_prefix(folder)
            .map_err(io::Error::other)?;
        if !entry.file_type().is_dir() && !rules.ignore(inside) {
            tar.append_path_with_name(entry.path(), inside)?;
        }
    }
    if rules.ignore(Path::new(dockerfile)) {
        tar.append_path_with_name(folder.join(dockerfile), dockerfile)?;
    }
    let mut file = tar.into_inner()?.into_inner()?;
    file.rewind()?;
    Ok(file)
}

/// The lines of a `.dockerignore`: the last one that fits decides.
struct Rules(Vec<Rule>);

struct Rule {
    keep: bool,
    /// Up to the first wildcard.
    literal: String,
    matcher: GlobMatcher,
}

impl Rules {
    fn read(path: &Path) -> io::Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self(Vec::new())),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> io::Result<Self> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| {
                let keep = line.starts_with('!');
                let pattern = line.trim_start_matches('!').trim_matches('/');
                let glob = GlobBuilder::new(pattern)
                    .literal_separator(true)
                    .build()
                    .map_err(io::Error::other)?;
                let wildcard = pattern.find(['*', '?', '[', '{']);
                Ok(Rule {
                    keep,
                    literal: pattern[..wildcard.unwrap_or(pattern.len())].to_owned(),
                    matcher: glob.compile_matcher(),
                })
            })
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Whether the file stays out. A rule that fits a folder fits what is in it.
    fn ignore(&self, path: &Path) -> bool {
        let fits = |rule: &&Rule| path.ancestors().any(|part| rule.matcher.is_match(part));
        self.0
            .iter()
            .rev()
            .find(fits)
            .is_some_and(|rule| !rule.keep)
    }

    /// Whether something in this folder may be kept.
    fn may_hold_something(&self, folder: &Path) -> bool {
        let folder_text = folder.to_string_lossy();
        let asked_for = |rule: &Rule| {
            rule.keep
                && (rule.literal.starts_with(&*folder_text)
                    || folder_text.starts_with(rule.literal.as_str()))
        };
        !self.ignore(folder) || self.0.iter().any(asked_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_fits_decides() {
        let rules = Rules::parse("*\n!Cargo.toml\n!crates\n**/tests\n# note\n**/*.md\n").unwrap();
        for (path, ignored) in [
            ("Cargo.toml", false),
            ("README.md", true),
            ("target/debug/x", true),
            ("crates/a/src/lib.rs", false),
            ("crates/a/tests/x.rs", true),
            ("crates/a/README.md", true),
            ("crates/a/src/tests.rs", false),
        ] {
            assert_eq!(rules.ignore(Path::new(path)), ignored, "{path}");
        }
        assert!(!rules.may_hold_something(Path::new("target")));
        assert!(rules.may_hold_something(Path::new("crates/a")));
    }

    #[test]
    fn the_context_holds_what_the_rules_leave() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "src/b.rs",
            "src/a.rs",
            "target/x",
            "notes.md",
            "a/Dockerfile",
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::write(folder.path().join(".dockerignore"), "*\n!src\n").unwrap();
        let mut tar = tar::Archive::new(pack(folder.path(), "a/Dockerfile").unwrap());
        let paths: Vec<_> = tar
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into_owned())
            .collect();
        // The Dockerfile is ignored, and needed.
        assert_eq!(
            paths,
            ["src/a.rs", "src/b.rs", "a/Dockerfile"].map(Path::new)
        );
    }
}
