//! The formats in which a world is packed.

/// The format of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// A tar in one gzip member, the format of the reference.
    #[default]
    TarGz,
    /// A tar in one zstd frame: faster and smaller than gzip.
    TarZst,
    /// A zip that can be written without going back: what grading and people read, with no conversion.
    Zip,
}

impl ArchiveFormat {
    /// Every format, the default first.
    pub const ALL: [Self; 3] = [Self::TarGz, Self::TarZst, Self::Zip];

    /// The name in requests, which is also the ending of file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TarGz => "tar.gz",
            Self::TarZst => "tar.zst",
            Self::Zip => "zip",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type (RFC 6713, RFC 8878, and the registered one of zip).
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::TarGz => "application/gzip",
            Self::TarZst => "application/zstd",
            Self::Zip => "application/zip",
        }
    }
}
