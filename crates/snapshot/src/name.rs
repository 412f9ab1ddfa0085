//! Names of archive members as paths that cannot leave the place they are put in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Why a member name is no path below the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadName {
    #[error("has an absolute path as its name")]
    Absolute,
    #[error("has `..` in its name")]
    Parent,
    #[error("has a NUL byte in its name")]
    Nul,
}

/// The path of a member below its target: ordinary components only; `.` and doubled slashes go.
/// Empty for the target itself (`./`).
pub(crate) fn relative_path(name: &[u8]) -> Result<PathBuf, BadName> {
    if name.contains(&0) {
        return Err(BadName::Nul);
    }
    if name.first() == Some(&b'/') {
        return Err(BadName::Absolute);
    }
    let mut path = PathBuf::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(BadName::Parent),
            part => path.push(OsStr::from_bytes(part)),
        }
    }
    Ok(path)
}

/// A name as people see it; bytes that are not UTF-8 are replaced.
pub(crate) fn display(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// The bytes of a path.
pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_components_remain() {
        assert_eq!(relative_path(b"./a//b/./c/").unwrap(), Path::new("a/b/c"));
        assert_eq!(relative_path(b"./").unwrap(), Path::new(""));
        assert_eq!(relative_path(b"a..b/..c").unwrap(), Path::new("a..b/..c"));
        assert_eq!(relative_path(b"/a"), Err(BadName::Absolute));
        assert_eq!(relative_path(b"a/../b"), Err(BadName::Parent));
        assert_eq!(relative_path(b"a\0b"), Err(BadName::Nul));
        assert_eq!(bytes(&relative_path(b"\xff/x").unwrap()), b"\xff/x");
    }
}
