//! What the tools do. Each module is one tool, or something that several of them share.

pub(crate) mod create_directory;
pub(crate) mod delete;
pub(crate) mod edit;
mod encoding;
mod entries;
pub(crate) mod list;
mod media;
pub(crate) mod metadata;
mod open;
mod pattern;
pub(crate) mod read_image;
pub(crate) mod read_text;
pub(crate) mod relocate;
mod replace;
pub(crate) mod search;
pub(crate) mod tree;
pub(crate) mod write;

pub(crate) use pattern::Pattern;

use rmcp::model::JsonObject;
use serde::Deserialize;

use crate::tools::{ToolError, parse};

/// The argument of a tool that takes one file and nothing else (§2.2).
fn file_path(arguments: JsonObject) -> Result<String, ToolError> {
    #[derive(Deserialize)]
    struct Arguments {
        file_path: String,
    }
    let Arguments { file_path } = parse(arguments)?;
    require_file_path(&file_path)?;
    Ok(file_path)
}

/// The first check of tools that take a file (§2.2).
fn require_file_path(argument: &str) -> Result<(), ToolError> {
    if argument.is_empty() {
        Err(ToolError::failed(
            "File path is required and must be a string",
        ))
    } else if !argument.starts_with('/') {
        Err(ToolError::failed("File path must start with /"))
    } else {
        Ok(())
    }
}

/// The first check of tools that take a directory (§2.2).
fn require_path(argument: &str) -> Result<(), ToolError> {
    if argument.is_empty() {
        Err(ToolError::failed("Path is required and must be a string"))
    } else if !argument.starts_with('/') {
        Err(ToolError::failed("Path must start with /"))
    } else {
        Ok(())
    }
}
