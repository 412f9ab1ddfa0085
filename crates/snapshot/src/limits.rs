//! What an archive may ask of the machine that reads it.

/// Bounds on an archive. Crossing one is an error that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Members, of all kinds. Default 1,000,000.
    pub entries: u64,
    /// Bytes of all files together, unpacked. Default 64 GiB.
    pub total_bytes: u64,
    /// Bytes of one file, unpacked. Default 16 GiB.
    pub file_bytes: u64,
    /// Unpacked bytes for each packed byte; looked at once [`ratio_floor_bytes`](Self::ratio_floor_bytes)
    /// are unpacked, because small archives of empty pages compress very well. Default 250.
    pub ratio: u64,
    /// Unpacked bytes below which the ratio does not matter. Default 512 MiB.
    pub ratio_floor_bytes: u64,
    /// Bytes of one path. Default 4096, the bound of Linux.
    pub path_bytes: u64,
    /// Components of one path. Default 128.
    pub depth: u64,
    /// Bytes of the headers of one tar member (long names, pax records). Default 1 MiB.
    pub header_bytes: u64,
    /// The window of a zstd stream, as the logarithm of its bytes: what reading one may cost in memory.
    /// Default 27 (128 MiB), which all levels of `zstd` keep within.
    pub zstd_window_log: u32,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        Self {
            entries: 1_000_000,
            total_bytes: 64 * GIB,
            file_bytes: 16 * GIB,
            ratio: 250,
            ratio_floor_bytes: 512 * MIB,
            path_bytes: 4096,
            depth: 128,
            header_bytes: MIB,
            zstd_window_log: 27,
        }
    }
}

/// A limit of [`Limits`] was crossed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limit `{limit}` crossed: got {got}, allowed are {allowed}")]
pub struct LimitExceeded {
    /// The name of the field of [`Limits`].
    pub limit: &'static str,
    /// The value met; a lower bound where reading stopped at once.
    pub got: u64,
    /// The value of the field.
    pub allowed: u64,
}

/// `got` against the bound of that name.
pub(crate) fn within(limit: &'static str, got: u64, allowed: u64) -> Result<(), LimitExceeded> {
    if got > allowed {
        return Err(LimitExceeded {
            limit,
            got,
            allowed,
        });
    }
    Ok(())
}

/// Counts what one archive has asked for so far.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    limits: &'a Limits,
    entries: u64,
    total_bytes: u64,
    file_bytes: u64,
}

impl<'a> Meter<'a> {
    pub(crate) const fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            entries: 0,
            total_bytes: 0,
            file_bytes: 0,
        }
    }

    /// One more member, whose header announces `size` bytes.
    pub(crate) fn member(&mut self, size: u64) -> Result<(), LimitExceeded> {
        self.entries += 1;
        self.file_bytes = 0;
        within("entries", self.entries, self.limits.entries)?;
        within("file_bytes", size, self.limits.file_bytes)?;
        let total = self.total_bytes.saturating_add(size);
        within("total_bytes", total, self.limits.total_bytes)
    }

    /// `count` more bytes of the current member, `packed` bytes of the archive having been read.
    pub(crate) fn bytes(&mut self, count: u64, packed: u64) -> Result<(), LimitExceeded> {
        self.file_bytes = self.file_bytes.saturating_add(count);
        self.total_bytes = self.total_bytes.saturating_add(count);
        within("file_bytes", self.file_bytes, self.limits.file_bytes)?;
        within("total_bytes", self.total_bytes, self.limits.total_bytes)?;
        self.ratio(self.total_bytes, packed)
    }

    /// `unpacked` bytes against the `packed` bytes they came from.
    pub(crate) fn ratio(&self, unpacked: u64, packed: u64) -> Result<(), LimitExceeded> {
        if unpacked <= self.limits.ratio_floor_bytes {
            return Ok(());
        }
        within("ratio", unpacked / packed.max(1), self.limits.ratio)
    }

    /// Length and depth of a path.
    pub(crate) fn path(&self, name: &[u8]) -> Result<(), LimitExceeded> {
        within("path_bytes", name.len() as u64, self.limits.path_bytes)?;
        let depth = name
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
            .count();
        within("depth", depth as u64, self.limits.depth)
    }
}
