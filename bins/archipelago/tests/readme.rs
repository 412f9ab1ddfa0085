//! What the README promises is what is there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::process::Command;

use program::root;

#[test]
fn the_embedding_example_is_the_compiled_one() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let example =
        std::fs::read_to_string(root().join("crates/agent-core/examples/embed_agent.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(
        readme.contains(code.trim_end()),
        "README.md shows another embed_agent.rs"
    );
}

/// Every link of the documentation to a file of the repository leads somewhere.
#[test]
fn links_lead_to_files() {
    let files = Command::new("git")
        .args(["ls-files", "*.md"])
        .current_dir(root())
        .output()
        .unwrap();
    let mut checked = 0;
    for file in String::from_utf8(files.stdout).unwrap().lines() {
        let path = root().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            checked += 1;
            let target = path.parent().unwrap().join(target);
            assert!(target.exists(), "{file} links to {}", target.display());
        }
    }
    assert!(checked > 10, "found only {checked} links");
}

/// Each library crate says its one job first, and has an example that is compiled.
#[test]
fn every_room_has_a_readme_and_an_example() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let room = entry.unwrap().path();
        assert!(
            room.join("README.md").exists(),
            "{} has no README.md",
            room.display()
        );
        let examples = std::fs::read_dir(room.join("examples"))
            .map(Iterator::count)
            .unwrap_or_default();
        assert!(examples > 0, "{} has no example", room.display());
    }
}
