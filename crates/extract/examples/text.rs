//! Prints the text of a document, as graders and judges see it.
//!
//! ```text
//! cargo run -p extract --example text -- report.docx
//! ```

use std::error::Error;
use std::io::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
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
        "[{:?}, {} parts]",
        document.format,
        document.parts.len()
    )?;
    for note in &document.notes {
        writeln!(notes, "[note: {note}]")?;
    }
    Ok(())
}
