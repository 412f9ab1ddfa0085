//! Limits of what is read out of the worlds.

/// Limits of what is read out of the worlds.
#[derive(Debug, Clone)]
pub struct EvidenceLimits {
    /// The largest file whose content is read, in bytes. Default 64 MiB.
    pub file_bytes: u64,
    /// Extracted text kept of all changed files together, in bytes. Default 256 MiB.
    pub total_text_bytes: usize,
    /// The largest picture that is shown to a judge, in bytes. Default 5 MiB.
    pub picture_bytes: u64,
    /// Pictures shown to a judge in all. Default 100.
    pub pictures: usize,
    /// Bytes of all pictures together. Default 50 MiB.
    pub total_picture_bytes: u64,
    /// Bytes of a world that are written to disk for a program. Default 4 GiB.
    pub laid_out_bytes: u64,
    /// Limits of the extraction of one document.
    pub extract: extract::Limits,
}

impl Default for EvidenceLimits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            total_text_bytes: 256 << 20,
            picture_bytes: 5 << 20,
            pictures: 100,
            total_picture_bytes: 50 << 20,
            laid_out_bytes: 4 << 30,
            extract: extract::Limits::default(),
        }
    }
}
