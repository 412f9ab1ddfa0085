//! Prints the text of a document, as graders and judges see it.
//!
//! ```text
//! cargo run -p extract --example text -- report.docx
//! ```

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // PDFs are read in a child process of this program.
    if let Some(code) = extract::run_child() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: text FILE")?;
    let bytes = std::fs::read(&path)?;
    let document = extract::extract(&path, &bytes, &extract::Limits::default())?;
    let mut out = std::io::stdout().lock();
    write!(out, "{}", document.text)?;
    if let Some(picture) = &document.picture {
        writeln!(
            out,
            "{} {:?} x {:?}",
            picture.mime, picture.width, picture.height
        )?;
    }
    let mut notes = std::io::stderr().lock();
    writeln!(
        notes,
        "[{:?}, {} parts, {} pages]",
        document.format,
        document.parts.len(),
        document.pages.unwrap_or_default()
    )?;
    for note in &document.notes {
        writeln!(notes, "[note: {note}]")?;
    }
    Ok(())
}
