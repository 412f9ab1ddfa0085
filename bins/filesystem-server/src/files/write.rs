//! `write_file`.

use std::path::Path;

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{replace, require_file_path};
use crate::{
    root::{PathError, World},
    tools::{Call, Output, ToolError, parse},
};

const WHAT: &str = "write file";

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    content: String,
    overwrite: bool,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments {
        file_path: path,
        content,
        overwrite,
    } = parse(arguments)?;
    require_file_path(&path)?;
    check_size(call, &path, &content, WHAT)?;
    let fail = |error: &PathError| ToolError::path(error, WHAT, &path);
    let world = call.root.open().map_err(|error| fail(&error))?;
    let place = world.locate(&path).map_err(|error| fail(&error))?;
    match &place.metadata {
        Some(found) if !found.is_file() => {
            return Err(ToolError::failed(format!("Not a file: {path}")));
        }
        Some(_) if !overwrite => {
            return Err(ToolError::failed(format!(
                "File exists: {path} (overwrite is false)"
            )));
        }
        Some(_) => {}
        None => require_parent(&world, &place.relative)?,
    }
    let existed = place.metadata.is_some();
    let permissions = place.metadata.map(|found| found.permissions());
    replace::put(&world, &place.relative, content.as_bytes(), permissions)
        .map_err(|error| fail(&error.into()))?;
    let verb = if existed { "Replaced" } else { "Created" };
    Ok(Output::Text(format!(
        "{verb} {} ({} bytes)",
        world.root.shown(&place.relative),
        content.len()
    )))
}

/// Content above the limit could not be read back.
pub(super) fn check_size(
    call: &Call<'_>,
    path: &str,
    content: &str,
    what: &str,
) -> Result<(), ToolError> {
    let limit = call.limits.max_text_bytes;
    if u64::try_from(content.len()).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    let size = content.len();
    Err(ToolError::failed(format!(
        "Failed to {what}: {path}: the content has {size} bytes, the limit max_text_bytes is {limit}"
    )))
}

/// Folders are not created by the way: a mistyped path would look like a success.
pub(super) fn require_parent(world: &World<'_>, relative: &Path) -> Result<(), ToolError> {
    let parent = relative.parent().unwrap_or(Path::new(""));
    match world.dir.metadata(crate::root::openable(parent)) {
        Ok(found) if found.is_dir() => Ok(()),
        _ => {
            let parent = world.root.shown(parent);
            Err(ToolError::failed(format!(
                "Folder not found: {parent} (create it with create_directory first)"
            )))
        }
    }
}
