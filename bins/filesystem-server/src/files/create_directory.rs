//! `create_directory`.

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::require_path;
use crate::tools::{Call, Output, ToolError, parse};

const WHAT: &str = "create directory";

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments { path } = parse(arguments)?;
    require_path(&path)?;
    let world = call
        .root
        .open()
        .map_err(|error| ToolError::path(&error, WHAT, &path))?;
    let place = world
        .locate(&path)
        .map_err(|error| ToolError::path(&error, WHAT, &path))?;
    let shown = world.root.shown(&place.relative);
    match place.metadata {
        Some(found) if found.is_dir() => {
            return Ok(Output::Text(format!("Folder exists already: {shown}")));
        }
        Some(_) => {
            return Err(ToolError::failed(format!(
                "Not a folder: {path} exists and is something else"
            )));
        }
        None => {}
    }
    world
        .dir
        .create_dir_all(&place.relative)
        .map_err(|error| ToolError::path(&error.into(), WHAT, &path))?;
    Ok(Output::Text(format!("Created folder {shown}")))
}
