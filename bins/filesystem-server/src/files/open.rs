//! Reading a whole file of limited size.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use cap_std::fs::{File, OpenOptions, OpenOptionsExt, Permissions};

use crate::{
    root::{PathError, World},
    tools::ToolError,
};

/// A file's content and what is needed to replace it.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) relative: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) permissions: Permissions,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("not a file")]
    NotAFile,
    #[error("the file has {size} bytes, the limit {limit_name} is {limit}")]
    TooLarge {
        size: u64,
        limit: u64,
        limit_name: &'static str,
    },
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Path(error.into())
    }
}

impl ReadError {
    /// The reason as the tools word it (§2.2); `what` for example "read text file".
    pub(crate) fn into_tool_error(self, what: &str, argument: &str) -> ToolError {
        match self {
            Self::Path(error) => ToolError::path(&error, what, argument),
            Self::NotAFile => ToolError::failed(format!("Not a file: {argument}")),
            Self::TooLarge { .. } => {
                ToolError::failed(format!("Failed to {what}: {argument}: {self}"))
            }
        }
    }
}

/// Opens what should be a regular file. Should it have become a FIFO meanwhile, opening does not wait
/// for somebody at its other end.
pub(crate) fn without_waiting(
    world: &World<'_>,
    relative: &Path,
    options: &mut OpenOptions,
) -> io::Result<File> {
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    world.dir.open_with(relative, options)
}

/// Reads a file whole, if it is a regular one and not larger than the limit.
pub(crate) fn read(
    world: &World<'_>,
    argument: &str,
    limit: u64,
    limit_name: &'static str,
) -> Result<Content, ReadError> {
    let (relative, metadata) = world.existing(argument)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let file = without_waiting(world, &relative, OpenOptions::new().read(true))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let too_large = |size| ReadError::TooLarge {
        size,
        limit,
        limit_name,
    };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(size) if size <= limit => Ok(Content {
            relative,
            bytes,
            permissions: metadata.permissions(),
        }),
        _ => Err(too_large(limit.saturating_add(1))),
    }
}
