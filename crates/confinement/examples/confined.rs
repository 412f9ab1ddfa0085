//! Runs a program within limits, and tells how it was kept from the machine: `confined ls /home`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::Stdio;

use confinement::{Confined, Group, Isolation, IsolationRule};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut program: Vec<OsString> = std::env::args_os().skip(1).collect();
    if program.is_empty() {
        program = ["ls", "/home"].map(OsString::from).to_vec();
    }
    let isolation = Isolation::by(IsolationRule::WherePossible)?;
    let folder = std::env::temp_dir();
    let confined = Confined {
        isolation,
        folder: &folder,
        writable: &folder,
        readable: &[],
        path: OsStr::new("/usr/local/bin:/usr/bin:/bin"),
        memory: 512 << 20,
        cpu_seconds: 10,
        open_files: None,
        file_bytes: Some(1 << 20),
    };
    let mut child = confined
        .command(&program)
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()?;
    let _group = Group::of(Some(child.id()));
    let status = child.wait()?;
    writeln!(std::io::stdout(), "{status}, {}", isolation.as_str())?;
    Ok(())
}
