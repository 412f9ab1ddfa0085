//! `delete_file`.

use std::io;

use rmcp::model::JsonObject;

use crate::{
    root::PathError,
    tools::{Call, Output, ToolError},
};

const WHAT: &str = "delete file";

/// Deletes a file, a link (itself, not its target) or an empty folder. A full folder is refused: one call must not be able
/// to lose a world.
pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let path = super::file_path(arguments)?;
    let fail = |error: &PathError| ToolError::path(error, WHAT, &path);
    let world = call.root.open().map_err(|error| fail(&error))?;
    let seat = world
        .seat(&path)
        .map_err(|error| fail(&error))?
        .ok_or_else(|| ToolError::failed("The root itself cannot be deleted"))?;
    let relative = seat.relative();
    let shown = world.root.shown(&relative);
    let (removed, what) = match &seat.metadata {
        None => return Err(fail(&PathError::Missing)),
        Some(found) if found.is_dir() => (world.dir.remove_dir(&relative), "empty folder "),
        Some(_) => (world.dir.remove_file(&relative), ""),
    };
    match removed {
        Ok(()) => Ok(Output::Text(format!("Deleted {what}{shown}"))),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Err(ToolError::failed(
            format!("Folder is not empty: {path} (delete what is in it first)"),
        )),
        Err(error) => Err(fail(&error.into())),
    }
}
