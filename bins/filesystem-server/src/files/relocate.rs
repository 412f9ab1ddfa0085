//! `move_file`.

use std::{io, path::Path};

use rmcp::model::JsonObject;
use rustix::{
    fs::{RenameFlags, renameat_with},
    io::Errno,
};
use serde::Deserialize;

use super::{require_file_path, write::require_parent};
use crate::{
    root::{PathError, Seat, World, openable},
    tools::{Call, Output, ToolError, parse},
};

const WHAT: &str = "move file";

#[derive(Deserialize)]
struct Arguments {
    source: String,
    destination: String,
}

/// Moves or renames a file, a folder or a link (itself, not its target). Never overwrites.
pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments {
        source,
        destination,
    } = parse(arguments)?;
    require_file_path(&source)?;
    require_file_path(&destination)?;
    let world = call
        .root
        .open()
        .map_err(|error| ToolError::path(&error, WHAT, &source))?;
    let from = world
        .seat(&source)
        .map_err(|error| ToolError::path(&error, WHAT, &source))?
        .ok_or_else(|| ToolError::failed("The root itself cannot be moved"))?;
    if from.metadata.is_none() {
        return Err(ToolError::path(&PathError::Missing, WHAT, &source));
    }
    let to = destination_seat(&world, &destination)?;
    rename(&world, &from, &to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(&destination),
        io::ErrorKind::InvalidInput => {
            ToolError::failed(format!("Failed to {WHAT}: {destination} lies in {source}"))
        }
        _ => ToolError::path(&error.into(), WHAT, &source),
    })?;
    let (from, to) = (
        world.root.shown(&from.relative()),
        world.root.shown(&to.relative()),
    );
    Ok(Output::Text(format!("Moved {from} to {to}")))
}

fn exists(destination: &str) -> ToolError {
    ToolError::failed(format!(
        "Destination exists: {destination} (give the full new path, and delete what is there first)"
    ))
}

fn destination_seat(world: &World<'_>, destination: &str) -> Result<Seat, ToolError> {
    match world.seat(destination) {
        Ok(Some(seat)) if seat.metadata.is_none() => Ok(seat),
        Ok(_) => Err(exists(destination)),
        Err(PathError::Missing) => {
            // Only its parent can be missing here; say which folder that is.
            let place = world
                .locate(destination)
                .map_err(|error| ToolError::path(&error, WHAT, destination))?;
            require_parent(world, &place.relative)?;
            Err(ToolError::path(&PathError::Missing, WHAT, destination))
        }
        Err(error) => Err(ToolError::path(&error, WHAT, destination)),
    }
}

/// Renames in one step that fails if the destination has come into being meanwhile. File systems that cannot do this are
/// few; there the check made before has to do.
fn rename(world: &World<'_>, from: &Seat, to: &Seat) -> io::Result<()> {
    if to.parent.starts_with(from.relative()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let open = |directory: &Path| world.dir.open_dir(openable(directory));
    let (from_parent, to_parent) = (open(&from.parent)?, open(&to.parent)?);
    match renameat_with(
        &from_parent,
        &from.name,
        &to_parent,
        &to.name,
        RenameFlags::NOREPLACE,
    ) {
        Err(Errno::INVAL | Errno::NOSYS) => from_parent.rename(&from.name, &to_parent, &to.name),
        done => Ok(done?),
    }
}
