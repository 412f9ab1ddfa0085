//! Programs of others that read documents: LibreOffice, which makes PDFs of office documents, and
//! `pdftoppm` (Poppler), which draws the pages of a PDF.
//!
//! Both are optional. They read what an agent wrote, so each run has a folder of its own that is
//! removed afterwards, nothing of this program's environment, a process group that is killed at the
//! end, limits on time, memory and on what it writes, and, where the machine allows it, namespaces
//! without network ([`confinement`]).

mod office;
mod pages;
mod run;

use std::ffi::OsStr;
use std::path::PathBuf;

pub(crate) use self::office::{convert, modern};
pub(crate) use self::pages::add;

use crate::document::{Picture, extension};
use crate::limits::Limits;

/// Office documents that LibreOffice makes PDFs of, by extension.
const OFFICE: &[&str] = &[
    "doc", "docx", "odp", "ods", "odt", "ppt", "pptx", "xls", "xlsb", "xlsm", "xlsx",
];

/// A program of others that is used where it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExternalProgram {
    /// LibreOffice.
    Soffice,
    /// The part of Poppler that draws pages.
    Pdftoppm,
}

impl ExternalProgram {
    /// The name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soffice => "soffice",
            Self::Pdftoppm => "pdftoppm",
        }
    }

    /// What it comes with.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::Soffice => "LibreOffice",
            Self::Pdftoppm => "poppler-utils",
        }
    }

    /// The programs that [`draw`] needs for documents of `extension` (lower case, without dot); none
    /// for documents that are not drawn.
    #[must_use]
    pub fn to_draw(extension: &str) -> &'static [Self] {
        match extension {
            "pdf" => &[Self::Pdftoppm],
            office if OFFICE.contains(&office) => &[Self::Soffice, Self::Pdftoppm],
            _ => &[],
        }
    }

    /// The program's file in one of the folders of `path`, which is written as in `PATH`. Relative
    /// folders do not count.
    #[must_use]
    pub fn find(self, path: &OsStr) -> Option<PathBuf> {
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(self.name()))
            .find(|program| program.is_file())
    }
}

/// The first pages of a document as pictures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DrawnPages {
    /// The pages in order, each with its number from 1.
    pub pictures: Vec<(usize, Picture)>,
    /// Whether the document goes on after the pages that were to be drawn.
    pub more: bool,
}

/// Why a document was not drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// A program is not there.
    #[error("`{}` is not installed (it comes with {})", .0.name(), .0.package())]
    Missing(ExternalProgram),
    /// A program does not work here, whatever document it is given.
    #[error("`{}` cannot be used: {reason}", .program.name())]
    Unusable {
        /// The program.
        program: ExternalProgram,
        /// What came of trying it.
        reason: String,
    },
    /// A program works, and not with this document.
    #[error("{0}")]
    Document(String),
}

/// Draws the first `pages` pages of the document `bytes`, whose file is called `name`: a PDF, or a
/// text document, a workbook or a presentation, which LibreOffice lays out for printing.
///
/// The longer edge of each picture has [`Limits::page_picture_edge`] pixels.
///
/// # Errors
/// [`DrawError`]; where it speaks of the document, the programs are known to work with another.
pub fn draw(
    name: &str,
    bytes: &[u8],
    pages: usize,
    limits: &Limits,
) -> Result<DrawnPages, DrawError> {
    let extension = extension(name);
    let programs = ExternalProgram::to_draw(&extension);
    for program in programs {
        program
            .find(&limits.program_path)
            .ok_or(DrawError::Missing(*program))?;
    }
    match programs {
        [] => Err(DrawError::Document(format!(
            "documents of type `{extension}` are not drawn"
        ))),
        [ExternalProgram::Pdftoppm] => pages::draw(bytes, pages, limits),
        _ => {
            // One more tells whether there are more.
            let some = Some(pages.saturating_add(1));
            let pdf = office::to_pdf(&extension, bytes, some, limits)?;
            pages::draw(&pdf, pages, limits)
        }
    }
}

/// How many pages LibreOffice makes of the office document `bytes`, whose file is called `name`: what
/// is known of a text document only after it was laid out.
///
/// # Errors
/// As of [`draw`].
pub fn laid_out_pages(name: &str, bytes: &[u8], limits: &Limits) -> Result<usize, DrawError> {
    let extension = extension(name);
    if !OFFICE.contains(&extension.as_str()) {
        return Err(DrawError::Document(format!(
            "documents of type `{extension}` are not laid out"
        )));
    }
    let pdf = office::to_pdf(&extension, bytes, None, limits)?;
    crate::pdf::page_count(&pdf).map_err(DrawError::Document)
}
