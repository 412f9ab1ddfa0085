//! Office documents: zip packages of XML files.

pub(crate) mod docx;
mod package;
pub(crate) mod pptx;
pub(crate) mod workbook;
pub(crate) mod xlsx;
mod xml;
