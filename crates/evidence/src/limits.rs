//! Limits of what is read out of the worlds.

use std::time::Duration;

/// Limits of what is read out of the worlds.
#[derive(Debug, Clone)]
pub struct EvidenceLimits {
    /// The largest file whose content is read, in bytes. Default 64 MiB.
    pub file_bytes: u64,
    /// Extracted text kept of all changed files together, in bytes. Default 256 MiB.
    pub total_text_bytes: usize,
    /// Text of both versions of a file together above which there is no diff, in bytes. Default
    /// 50 MiB.
    pub diff_text_bytes: usize,
    /// Bytes of both versions of a csv file together above which it is compared by rows instead of
    /// lines. Default 50 MiB.
    pub csv_rows_above: u64,
    /// Pictures shown to a judge in all. Default 100.
    pub pictures: usize,
    /// Bytes of all pictures together. Default 50 MiB.
    pub total_picture_bytes: u64,
    /// Documents that LibreOffice converts in one look at the worlds, because of their old formats or to
    /// count their pages; further ones are named and not read. Default 50.
    pub conversions: usize,
    /// Pages of one document that are drawn where documents are shown as pictures. Default 20.
    pub document_pictures: usize,
    /// Documents that are drawn at once. Default 2.
    pub drawings_at_once: usize,
    /// Bytes of drawn pages that are kept for the next who asks; further ones are drawn anew.
    /// Default 256 MiB.
    pub drawn_bytes: u64,
    /// Bytes of a world that are written to disk for a program, or of a database for a query.
    /// Default 4 GiB.
    pub laid_out_bytes: u64,
    /// Wall time for one query on a database. Default 30 s.
    pub query_time: Duration,
    /// Bytes of one value in a database that is queried. Default 64 MiB.
    pub query_value_bytes: i32,
    /// Limits of the extraction of one document.
    pub extract: extract::Limits,
}

impl Default for EvidenceLimits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            total_text_bytes: 256 << 20,
            diff_text_bytes: 50 << 20,
            csv_rows_above: 50 << 20,
            pictures: 100,
            total_picture_bytes: 50 << 20,
            conversions: 50,
            document_pictures: 20,
            drawings_at_once: 2,
            drawn_bytes: 256 << 20,
            laid_out_bytes: 4 << 30,
            query_time: Duration::from_secs(30),
            query_value_bytes: 64 << 20,
            extract: extract::Limits::default(),
        }
    }
}
