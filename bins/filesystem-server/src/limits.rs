//! How much work one call may cause.

use std::time::Duration;

/// The bounds of one server. Each is a flag of the program (`--max-text-bytes`) and a variable
/// (`FILESYSTEM_MAX_TEXT_BYTES`); a message about a crossed limit names it as it is written here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest text file that `read_text_file` and `edit_file` take, and largest content that `write_file` and
    /// `edit_file` produce, in bytes. Default 6 MiB: a text travels twice in one result, and MCP clients drop lines
    /// above 16 MiB.
    pub max_text_bytes: u64,
    /// Largest picture that `read_image_file` returns, in bytes. Default 10 MiB, which is 13.4 MiB as base64.
    pub max_image_bytes: u64,
    /// Largest result as JSON, in bytes. Default 15 MiB, since MCP clients drop lines above 16 MiB without an answer.
    pub max_result_bytes: u64,
    /// Most lines of one `list_files` or `search_files` result. Default 10 000.
    pub max_listed_entries: usize,
    /// Most directory entries that one call looks at. Default 1 000 000.
    pub max_scanned_entries: usize,
    /// Deepest directory that `search_files` enters, counted from where it starts. Default 128.
    pub max_search_depth: usize,
    /// Longest time that one listing, search or tree may take. Default 30 s.
    pub max_scan_time: Duration,
    /// Most calls at work at the same time; further ones wait. Default 16.
    pub max_concurrent_calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_text_bytes: 6 << 20,
            max_image_bytes: 10 << 20,
            max_result_bytes: 15 << 20,
            max_listed_entries: 10_000,
            max_scanned_entries: 1_000_000,
            max_search_depth: 128,
            max_scan_time: Duration::from_secs(30),
            max_concurrent_calls: 16,
        }
    }
}
