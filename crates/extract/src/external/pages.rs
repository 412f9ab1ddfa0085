//! Pages of a PDF as pictures, drawn by `pdftoppm` (Poppler).

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::run::{Cost, Ended, Failure, Run, made};
use super::{DrawError, DrawnPages, ExternalProgram};
use crate::document::Document;
use crate::limits::Limits;
use crate::picture;

const PROGRAM: ExternalProgram = ExternalProgram::Pdftoppm;

/// A PDF of one empty page, which every version of the program can draw.
const HARMLESS: &[u8] = b"%PDF-1.4\n\
1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] >>\nendobj\n\
xref\n0 4\n0000000000 65535 f \n0000000009 00000 n \n0000000058 00000 n \n0000000115 00000 n \n\
trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n184\n%%EOF\n";

/// Adds pictures of the first pages to `document`, or a note that says why there are none.
pub(crate) fn add(document: &mut Document, bytes: &[u8], limits: &Limits) {
    let drawn = match PROGRAM.find(&limits.program_path) {
        Some(_) => draw(bytes, limits.page_pictures, limits),
        None => Err(DrawError::Missing(PROGRAM)),
    };
    match drawn {
        Ok(drawn) => {
            let count = drawn.pictures.len();
            let all = document.pages.unwrap_or(count);
            if count < all {
                document.notes.push(format!(
                    "pictures of {count} of {all} pages (limit `page_pictures`)"
                ));
            }
            document.page_pictures = drawn.pictures.into_iter().map(|(_, p)| p).collect();
        }
        Err(reason) => document
            .notes
            .push(format!("no pictures of the pages: {reason}")),
    }
}

/// The first `pages` pages of a PDF.
pub(super) fn draw(bytes: &[u8], pages: usize, limits: &Limits) -> Result<DrawnPages, DrawError> {
    attempt(bytes, pages, limits)
        .map_err(|failure| failure.blame(PROGRAM, || attempt(HARMLESS, 1, limits)))
}

fn attempt(bytes: &[u8], pages: usize, limits: &Limits) -> Result<DrawnPages, Failure> {
    let system = |error: io::Error| Failure::Start(error.to_string());
    let folder = tempfile::tempdir().map_err(system)?;
    let input = folder.path().join("in.pdf");
    std::fs::write(&input, bytes).map_err(system)?;
    let mut arguments: Vec<OsString> = ["-png", "-f", "1", "-l"].map(OsString::from).to_vec();
    // One page more than is shown tells whether there are more.
    arguments.push(pages.saturating_add(1).to_string().into());
    arguments.push("-scale-to".into());
    arguments.push(limits.page_picture_edge.to_string().into());
    arguments.push(input.into());
    arguments.push(folder.path().join("page").into());
    let run = Run {
        program: PROGRAM,
        arguments,
        folder: folder.path(),
        cost: Cost {
            time: (limits.page_pictures_time, "page_pictures_time"),
            bytes: (limits.page_pictures_bytes, "page_pictures_bytes"),
            memory: limits.child_memory_bytes,
        },
    };
    let ended = run.to_end(limits)?;
    collect(folder.path(), pages, limits, &ended)
}

/// The drawn pages in their order; what is no picture is left out.
fn collect(
    folder: &Path,
    pages: usize,
    limits: &Limits,
    ended: &Ended,
) -> Result<DrawnPages, Failure> {
    let system = |error: io::Error| Failure::Start(error.to_string());
    let mut files: Vec<(usize, PathBuf)> = Vec::new();
    for file in std::fs::read_dir(folder).map_err(system)? {
        let path = file.map_err(system)?.path();
        // `page-01.png`: as many digits as the number of the last page has.
        let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        let number = name.strip_prefix("page-").and_then(|n| n.parse().ok());
        files.extend(number.map(|number| (number, path)));
    }
    files.sort();
    let name = PROGRAM.name();
    match (files.is_empty(), ended.status.success()) {
        (true, true) => return Err(Failure::NoResult(format!("`{name}` drew nothing"))),
        (true, false) => return Err(Failure::NoResult(format!("`{name}` failed ({ended})"))),
        (false, _) => {}
    }
    let mut drawn = DrawnPages {
        pictures: Vec::new(),
        more: files.len() > pages,
    };
    // A page may be a large file: it is made smaller where it has to be.
    let limits = Limits {
        picture_bytes: usize::MAX,
        ..limits.clone()
    };
    for (number, path) in files.into_iter().take(pages) {
        let content = made(&path, limits.page_pictures_bytes).map_err(system)?;
        let picture = content.and_then(|bytes| picture::extract(&bytes, &limits).picture);
        drawn
            .pictures
            .extend(picture.map(|picture| (number, picture)));
    }
    Ok(drawn)
}
