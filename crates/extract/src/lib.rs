//! A document to text and pictures.
//!
//! [`extract`] reads one file by its name and content and gives its text, divided into sheets or
//! slides where it has them. Files come from agents and are not trusted: everything is held to
//! [`Limits`], and a file that crosses one, or is broken, ends in an [`ExtractError`] that says so.
//!
//! Everything here is synchronous computation; callers with an async runtime use a blocking thread.

mod archive;
mod changes;
mod child;
mod csv;
mod document;
mod error;
mod external;
mod html;
mod json;
mod limits;
mod mail;
mod notebook;
mod office;
mod pdf;
mod picture;
mod records;
mod sink;
mod text;
mod untrusted;
mod xml;

pub use confinement::IsolationRule;

pub use changes::{
    ChangeLimits, Content, ContentChanges, Happened, Inside, MemberChange, PictureFacts, Row,
    RowChange, TableChange, content_changes, is_database,
};
pub use child::run_child;
pub use document::{
    Document, Format, Part, PartKind, Picture, extension, extract, needs_conversion,
};
pub use error::ExtractError;
pub use external::{DrawError, DrawnPages, ExternalProgram, draw, laid_out_pages};
pub use html::html_to_text;
pub use limits::Limits;
pub use office::cell_formats::{CellFormat, CellRange, SheetFormats, sheet_formats};
pub use office::colours::Colour;
pub use office::slide_looks::{RunLook, ShapeLook, SlideLook, slide_looks};
pub use picture::data_bytes;
