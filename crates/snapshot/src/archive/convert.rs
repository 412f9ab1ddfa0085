//! Between the archives of an environment (`tar.gz`) and those of people and grading (`zip`).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use crate::SUBSYSTEMS;
use crate::limits::Limits;
use crate::world::{World, WorldError, WriteReport};

/// What a conversion wrote.
pub type ConvertReport = WriteReport;

/// A conversion failed. No output file is left behind, except earlier ones of the same name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The input cannot be used.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The output cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A snapshot as it came from an environment, as zip (`spec/orchestration.md` §5.3): the same paths,
/// links turned into the files they stand for, modes and times kept.
///
/// # Errors
/// See [`ConvertError`]. `output` appears only when it is complete.
pub fn tar_gz_to_zip(
    input: &Path,
    output: &Path,
    limits: &Limits,
) -> Result<ConvertReport, ConvertError> {
    let world = World::open_with(input, limits)?;
    write_file(output, |file| world.write_zip(file))
}

/// A world, in whatever form, as the archives that `POST /data/populate` takes
/// (`spec/orchestration.md` §5.1 and §5.2): one `<subsystem>.tar.gz` in `output` for each subsystem
/// that has anything in it. Answers them with their subsystem, in the order in which they are to be
/// sent.
///
/// # Errors
/// See [`ConvertError`].
pub fn zip_to_subsystem_tars(
    input: &Path,
    output: &Path,
    limits: &Limits,
) -> Result<Vec<(String, PathBuf)>, ConvertError> {
    let world = World::open_with(input, limits)?;
    let mut archives = Vec::new();
    for subsystem in SUBSYSTEMS {
        if world.has(subsystem) {
            let path = output.join(format!("{subsystem}.tar.gz"));
            write_file(&path, |file| world.write_tar_gz(subsystem, file))?;
            archives.push((subsystem.to_owned(), path));
        }
    }
    Ok(archives)
}

/// Writes a file beside `output` and moves it there when it is complete.
fn write_file(
    output: &Path,
    write: impl FnOnce(BufWriter<&File>) -> Result<WriteReport, WorldError>,
) -> Result<WriteReport, ConvertError> {
    let failed = |source| ConvertError::Output {
        path: output.to_owned(),
        source,
    };
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".partial-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(failed)?;
    let report = write(BufWriter::with_capacity(128 * 1024, file.as_file()))?;
    file.persist(output).map_err(|error| failed(error.error))?;
    Ok(report)
}
