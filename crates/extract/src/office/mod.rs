//! Office documents: zip packages of XML files.

mod chart;
pub(crate) mod docx;
mod number_format;
mod package;
pub(crate) mod pptx;
mod sheet_extras;
pub(crate) mod workbook;
pub(crate) mod xlsx;
mod xml;
