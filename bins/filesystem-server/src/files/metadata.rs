//! `get_file_metadata` (§2.9).

use std::path::Path;

use cap_std::fs::{Metadata, MetadataExt};
use jiff::Timestamp;
use rmcp::model::JsonObject;

use super::media;
use crate::{
    root::PathError,
    tools::{Call, Output, ToolError},
};

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let path = super::file_path(arguments)?;
    let text = description(call, &path).unwrap_or_else(|error| error.bracketed(&path));
    Ok(Output::Text(text))
}

fn description(call: &Call<'_>, path: &str) -> Result<String, PathError> {
    let world = call.root.open()?;
    // Followed to the end first: a link that leads outside tells nothing, not even that it is one.
    let place = world.locate(path)?;
    let link = world
        .seat(path)?
        .filter(|seat| seat.metadata.as_ref().is_some_and(Metadata::is_symlink));
    let mut lines = vec![format!("Path: {path}")];
    if let Some(link) = link {
        let target = match world.dir.read_link_contents(link.relative()) {
            Ok(target) => world.root.shown_link(&target),
            Err(_) => "(unreadable)".to_owned(),
        };
        lines.push("Type: symlink".to_owned());
        lines.push(format!("Symlink target: {target}"));
        let Some(metadata) = place.metadata else {
            return Ok(lines.join("\n"));
        };
        describe(&mut lines, &place.relative, &metadata);
    } else {
        let metadata = place.metadata.ok_or(PathError::Missing)?;
        lines.push(format!(
            "Type: {}",
            if metadata.is_dir() {
                "directory"
            } else {
                "file"
            }
        ));
        describe(&mut lines, &place.relative, &metadata);
    }
    Ok(lines.join("\n"))
}

/// Lines 3 to 7.
fn describe(lines: &mut Vec<String>, relative: &Path, metadata: &Metadata) {
    if !metadata.is_dir() {
        lines.push(format!(
            "MIME type: {}",
            media::guessed(relative).unwrap_or("unknown")
        ));
    }
    let size = metadata.len();
    lines.push(format!("Size: {size} bytes ({})", for_people(size)));
    let mode = metadata.mode();
    lines.push(format!("Permissions: {} ({:03o})", rwx(mode), mode & 0o777));
    for (what, seconds, nanoseconds) in [
        ("Modified", metadata.mtime(), metadata.mtime_nsec()),
        ("Accessed", metadata.atime(), metadata.atime_nsec()),
        ("Created/Changed", metadata.ctime(), metadata.ctime_nsec()),
    ] {
        lines.push(format!("{what}: {}", instant(seconds, nanoseconds)));
    }
    lines.push(format!("Inode: {}", metadata.ino()));
    lines.push(format!("Device: {}", metadata.dev()));
    lines.push(format!("Hard links: {}", metadata.nlink()));
}

fn for_people(size: u64) -> String {
    const STEP: u64 = 1024;
    let (unit, divisor) = match size {
        0..STEP => return format!("{size} B"),
        STEP..1_048_576 => ("KB", STEP),
        1_048_576..1_073_741_824 => ("MB", STEP.pow(2)),
        _ => ("GB", STEP.pow(3)),
    };
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let amount = size as f64 / divisor as f64;
    format!("{amount:.1} {unit}")
}

fn rwx(mode: u32) -> String {
    "rwxrwxrwx"
        .chars()
        .enumerate()
        .map(|(bit, letter)| {
            if mode & (0o400 >> bit) == 0 {
                '-'
            } else {
                letter
            }
        })
        .collect()
}

/// ISO 8601 in UTC, always with six decimals.
fn instant(seconds: i64, nanoseconds: i64) -> String {
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
    match Timestamp::new(seconds, nanoseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_modes_and_times() {
        assert_eq!(for_people(0), "0 B");
        assert_eq!(for_people(1023), "1023 B");
        assert_eq!(for_people(1024), "1.0 KB");
        assert_eq!(for_people(1536), "1.5 KB");
        assert_eq!(for_people(5 * 1024 * 1024), "5.0 MB");
        assert_eq!(for_people(3 << 30), "3.0 GB");
        assert_eq!(rwx(0o100_644), "rw-r--r--");
        assert_eq!(rwx(0o40_751), "rwxr-x--x");
        assert_eq!(instant(0, 0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(
            instant(1_700_000_000, 123_456_789),
            "2023-11-14T22:13:20.123456+00:00"
        );
    }
}
