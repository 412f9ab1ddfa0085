//! Office documents: zip packages of XML files.

pub(crate) mod cell_formats;
mod chart;
pub(crate) mod colours;
pub(crate) mod docx;
pub(crate) mod listed;
mod number_format;
mod ods;
mod package;
pub(crate) mod pptx;
mod sheet_extras;
pub(crate) mod slide_looks;
pub(crate) mod workbook;
pub(crate) mod xls;
pub(crate) mod xlsx;
mod xml;
