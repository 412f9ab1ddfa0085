//! Pages of a PDF as pictures, drawn by `pdftoppm` (Poppler) where it is installed.
//!
//! It is a program of its own, started without a shell, in a folder that is removed afterwards, with
//! nothing in its environment but `PATH`, and with limits on time and on what it writes.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::document::{Document, Picture};
use crate::limits::Limits;
use crate::picture;

/// The program that draws.
const PROGRAM: &str = "pdftoppm";

/// Adds pictures of the first pages to `document`, or a note that says why there are none.
pub(crate) fn add(document: &mut Document, bytes: &[u8], limits: &Limits) {
    match draw(bytes, limits) {
        Ok(pictures) => {
            let all = document.pages.unwrap_or(pictures.len());
            if pictures.len() < all {
                document.notes.push(format!(
                    "pictures of {} of {all} pages (limits `page_pictures`, `picture_bytes`)",
                    pictures.len()
                ));
            }
            document.page_pictures = pictures;
        }
        Err(reason) => document
            .notes
            .push(format!("no pictures of the pages: {reason}")),
    }
}

/// Why no page was drawn.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("`{PROGRAM}` is not installed (it comes with poppler-utils)")]
    Missing,
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("`{PROGRAM}` took more than {} s (limit `page_pictures_time`)", .0.as_secs())]
    Time(Duration),
    #[error("the pictures have more than {0} bytes (limit `page_pictures_bytes`)")]
    Size(u64),
    #[error("`{PROGRAM}` failed ({0})")]
    Failed(std::process::ExitStatus),
    #[error("`{PROGRAM}` drew nothing")]
    Nothing,
}

fn draw(bytes: &[u8], limits: &Limits) -> Result<Vec<Picture>, Failure> {
    let path = &limits.program_path;
    let program = find(path).ok_or(Failure::Missing)?;
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("in.pdf");
    std::fs::write(&input, bytes)?;
    let mut child = Command::new(program)
        .args(["-png", "-r", "72", "-f", "1", "-l"])
        .arg(limits.page_pictures.to_string())
        .arg("-scale-to")
        .arg(limits.page_picture_edge.to_string())
        .arg(&input)
        .arg(folder.path().join("page"))
        .env_clear()
        .env("PATH", path)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let deadline = Instant::now() + limits.page_pictures_time;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let failure = if Instant::now() >= deadline {
            Some(Failure::Time(limits.page_pictures_time))
        } else if written(folder.path()) > limits.page_pictures_bytes {
            Some(Failure::Size(limits.page_pictures_bytes))
        } else {
            None
        };
        if let Some(failure) = failure {
            child.kill()?;
            child.wait()?;
            return Err(failure);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let pictures = collect(folder.path(), limits)?;
    match (pictures.is_empty(), status.success()) {
        (false, _) => Ok(pictures),
        (true, true) => Err(Failure::Nothing),
        (true, false) => Err(Failure::Failed(status)),
    }
}

/// The program in the folders of `path`.
fn find(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_file())
}

/// Bytes of all files in a folder.
fn written(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

/// The drawn pages in their order; those that are too large are left out.
fn collect(folder: &Path, limits: &Limits) -> io::Result<Vec<Picture>> {
    let mut drawn = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        // `page-01.png`: as many digits as the number of the last page has.
        let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        if let Some(number) = name
            .strip_prefix("page-")
            .and_then(|n| n.parse::<u32>().ok())
        {
            drawn.push((number, path));
        }
    }
    drawn.sort();
    let mut pictures = Vec::new();
    for (_, path) in drawn.into_iter().take(limits.page_pictures) {
        if std::fs::metadata(&path)?.len() > limits.picture_bytes as u64 {
            continue;
        }
        pictures.extend(picture::extract(&std::fs::read(&path)?, limits).picture);
    }
    Ok(pictures)
}
