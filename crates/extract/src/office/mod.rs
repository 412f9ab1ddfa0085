//! Office documents: zip packages of XML files.

mod chart;
pub(crate) mod docx;
pub(crate) mod listed;
mod number_format;
mod ods;
mod package;
pub(crate) mod pptx;
mod sheet_extras;
pub(crate) mod workbook;
pub(crate) mod xls;
pub(crate) mod xlsx;
mod xml;
