//! Programs that tests put in the place of others, and processes that they look for.

use std::path::Path;
use std::process::Command;

/// Writes the shell script `text` to `path`, ready to be run.
///
/// It is written by a process of its own: one that this process forks meanwhile, for another test,
/// would hold the file open for writing, and the system refuses to run it then ("text file busy").
///
/// # Panics
/// When it cannot be written.
pub fn script(path: &Path, text: &str) {
    let written = Command::new("/bin/sh")
        .args([
            "-c",
            r#"printf %s "$1" > "$2" && chmod 755 "$2""#,
            "sh",
            text,
        ])
        .arg(path)
        .status()
        .is_ok_and(|status| status.success());
    assert!(written, "{} cannot be written", path.display());
}

/// Whether a process runs whose command line has `word`.
#[must_use]
pub fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.into_iter().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line)
            .split('\0')
            .any(|argument| argument == word)
    })
}
