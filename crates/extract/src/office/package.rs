//! The zip package of an office document, unpacked within limits.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use zip::ZipArchive;
use zip::result::ZipError;

use super::xml::{Node, attribute, walk};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::text;

/// An open package. What is unpacked counts against one budget.
pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    format: &'static str,
    budget: u64,
    limit: u64,
}

impl<'a> Package<'a> {
    pub(super) fn open(
        bytes: &'a [u8],
        format: &'static str,
        limits: &Limits,
    ) -> Result<Self, ExtractError> {
        // What an office program encrypts, it puts into the container of its older formats.
        if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
            return Err(ExtractError::Encrypted { format });
        }
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| ExtractError::broken(format, error))?;
        if archive.len() > limits.entries {
            return Err(ExtractError::Limit {
                what: "files inside the document",
                limit: "entries",
                got: archive.len() as u64,
                allowed: limits.entries as u64,
            });
        }
        Ok(Self {
            archive,
            format,
            budget: limits.unpacked_bytes,
            limit: limits.unpacked_bytes,
        })
    }

    /// The XML file `name`, if it is there.
    pub(super) fn xml(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        let mut content = Vec::new();
        let file = match self.archive.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(ExtractError::broken(self.format, error)),
        };
        // What the header says about the size is not believed.
        file.take(self.budget + 1)
            .read_to_end(&mut content)
            .map_err(|error| ExtractError::broken(self.format, format!("`{name}`: {error}")))?;
        self.spend(content.len() as u64)?;
        Ok(Some(text::decode(&content).into_owned()))
    }

    /// The XML file `name`, if it is there and not larger than `max_bytes`.
    pub(super) fn small_xml(
        &mut self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<String>, ExtractError> {
        // A size that is stated too small is found out by the budget of what is unpacked.
        match self.archive.by_name(name) {
            Ok(file) if file.size() <= max_bytes => {}
            _ => return Ok(None),
        }
        self.xml(name)
    }

    /// Unpacks every file once to learn that all together stay within the budget, for parsers
    /// that unpack by themselves.
    pub(super) fn measure(&mut self) -> Result<(), ExtractError> {
        for at in 0..self.archive.len() {
            let file = self
                .archive
                .by_index(at)
                .map_err(|error| ExtractError::broken(self.format, error))?;
            let bytes = std::io::copy(&mut file.take(self.budget + 1), &mut std::io::sink())
                .map_err(|error| ExtractError::broken(self.format, error))?;
            self.spend(bytes)?;
        }
        Ok(())
    }

    fn spend(&mut self, bytes: u64) -> Result<(), ExtractError> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(ExtractError::Limit {
                what: "unpacked size in bytes (at least)",
                limit: "unpacked_bytes",
                got: self.limit - self.budget + bytes,
                allowed: self.limit,
            }),
        }
    }
}

/// The relations of a file of the package: id to kind and path.
pub(super) fn relations(
    package: &mut Package<'_>,
    of: &str,
    limits: &Limits,
) -> Result<HashMap<String, (String, String)>, ExtractError> {
    let (folder, file) = of.rsplit_once('/').unwrap_or(("", of));
    let mut found = HashMap::new();
    let Some(xml) = package.xml(&format!("{folder}/_rels/{file}.rels"))? else {
        return Ok(found);
    };
    walk(&xml, package.format, limits, |node| {
        if let Node::Open("Relationship", element) = node {
            let of = |name| attribute(element, name).unwrap_or_default();
            let kind = of("Type").rsplit('/').next().unwrap_or_default().to_owned();
            found.insert(of("Id"), (kind, resolve(folder, &of("Target"))));
        }
    })?;
    Ok(found)
}

/// A path relative to `folder`.
fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut components: Vec<&str> = folder.split('/').collect();
    for component in target.split('/') {
        match component {
            ".." => {
                components.pop();
            }
            "." | "" => {}
            name => components.push(name),
        }
    }
    components.join("/")
}
