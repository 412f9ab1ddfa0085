//! What one document may cost.

use std::ffi::OsString;
use std::time::Duration;

use confinement::IsolationRule;

/// Limits of the extraction of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The file itself, in bytes. Default 64 MiB.
    pub file_bytes: usize,
    /// Files inside an office document. Default 10,000.
    pub entries: usize,
    /// All files inside an office document together, unpacked, in bytes. Default 512 MiB.
    pub unpacked_bytes: u64,
    /// Nesting of XML elements. Default 256.
    pub xml_depth: usize,
    /// Archives inside of archives that are opened to list them. Default 3.
    pub archive_depth: usize,
    /// Rows of one sheet that are read. Default 100,000; further rows are left out with a note.
    pub rows: u32,
    /// Columns of one sheet that are read. Default 1,000; further columns are left out with a note.
    pub columns: u32,
    /// Memory for the cells of an xls or ods workbook, which are listed before they are shown, in
    /// bytes. Default 128 MiB; further cells are left out with a note.
    pub cell_bytes: u64,
    /// Sheets or slides that are read. Default 1,000; further ones are left out with a note.
    pub parts: usize,
    /// Text of one document, in characters. Default 2,000,000; the rest is cut with a note.
    pub text_chars: usize,
    /// The largest file that is shown as a picture, in bytes. Default 5 MiB.
    pub picture_bytes: usize,
    /// Pixels of the longer edge of a picture that is shown; a larger one is scaled down. Default
    /// 2,000: what providers take where there are many.
    pub picture_edge: u32,
    /// Bytes of a picture that is shown, before they are written as Base64; a larger one is made
    /// smaller. Default 3,932,160, which are 5 MiB of Base64.
    pub picture_data_bytes: usize,
    /// Memory for decoding a picture. Default 256 MiB.
    pub picture_memory_bytes: u64,
    /// Pages of a PDF that [`extract`](crate::extract) has drawn as pictures by `pdftoppm`, where it
    /// is installed. Default 0: none.
    pub page_pictures: usize,
    /// The `PATH` in which programs of others are looked for. Default `/usr/local/bin:/usr/bin:/bin`.
    pub program_path: OsString,
    /// Whether they must be isolated from the machine. Default: where it is possible.
    pub isolation: IsolationRule,
    /// Pixels of the longer edge of the picture of a page. Default 1,754: A4 at 150 dots per inch.
    pub page_picture_edge: u32,
    /// Wall time for drawing the pages of one document. Default 60 s.
    pub page_pictures_time: Duration,
    /// Bytes of all pages drawn, with the PDF itself. Default 256 MiB.
    pub page_pictures_bytes: u64,
    /// Whether documents that only LibreOffice reads (doc, odp, odt, ppt) are converted by it, which
    /// takes some seconds. Default true.
    pub conversions: bool,
    /// Wall time for one document that LibreOffice converts. Default 120 s.
    pub convert_time: Duration,
    /// Bytes of the document before and after, with the profile of LibreOffice. Default 256 MiB.
    pub convert_bytes: u64,
    /// Memory of LibreOffice (its address space), in bytes. Default 4 GiB.
    pub convert_memory_bytes: u64,
    /// Wall time for parsing a PDF. Default 30 s.
    pub pdf_time: Duration,
    /// Wall time for parsing an xls workbook. Default 30 s.
    pub workbook_time: Duration,
    /// Memory of the child process that parses a PDF or an xls workbook (its address space), in bytes, where the
    /// program offers one ([`run_child`](crate::run_child)), and of `pdftoppm`. Default 1 GiB.
    pub child_memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            entries: 10_000,
            unpacked_bytes: 512 << 20,
            xml_depth: 256,
            archive_depth: 3,
            rows: 100_000,
            columns: 1_000,
            cell_bytes: 128 << 20,
            parts: 1_000,
            text_chars: 2_000_000,
            picture_bytes: 5 << 20,
            picture_edge: 2_000,
            picture_data_bytes: (5 << 20) / 4 * 3,
            picture_memory_bytes: 256 << 20,
            page_pictures: 0,
            program_path: "/usr/local/bin:/usr/bin:/bin".into(),
            isolation: IsolationRule::default(),
            page_picture_edge: 1_754,
            page_pictures_time: Duration::from_secs(60),
            page_pictures_bytes: 256 << 20,
            conversions: true,
            convert_time: Duration::from_secs(120),
            convert_bytes: 256 << 20,
            convert_memory_bytes: 4 << 30,
            pdf_time: Duration::from_secs(30),
            workbook_time: Duration::from_secs(30),
            child_memory_bytes: 1 << 30,
        }
    }
}
