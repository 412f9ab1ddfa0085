//! Programs that tests put in the place of others.

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
