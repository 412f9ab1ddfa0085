//! The table of features in the README names tests that there are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::path::{Path, PathBuf};

/// All source files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether `text` has a test of the name `name`: a function right below its mark, or below others
/// of its attributes.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(number, line)| {
        let is_head = line.starts_with(&head) || line.starts_with(&format!("async {head}"));
        is_head
            && lines[..number]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_test_that_the_readme_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for room in [
        "llm-client",
        "llm-wire",
        "llm-openai",
        "llm-anthropic",
        "llm-gemini",
    ] {
        let room = root.with_file_name(room);
        sources(&room.join("src"), &mut files);
        if room.join("tests").is_dir() {
            sources(&room.join("tests"), &mut files);
        }
    }
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let named: Vec<(&str, &str)> = readme
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter_map(|code| code.split_once("::"))
        .collect();
    assert!(named.len() >= 40, "{} tests are named", named.len());
    for (file, test) in named {
        let places = [format!("{file}.rs"), format!("{file}/mod.rs")];
        let found = files
            .iter()
            .filter(|path| places.iter().any(|place| path.ends_with(place)))
            .any(|path| has_test(&std::fs::read_to_string(path).unwrap(), test));
        assert!(found, "there is no test `{test}` in a file `{file}`");
    }
    assert!(has_test("#[test]\nfn a() {", "a"));
    assert!(
        !has_test("#[test]\nfn b() {\nfn a() {", "a"),
        "a function is no test"
    );
}
