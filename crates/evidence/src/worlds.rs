//! Reading the worlds.

use std::borrow::Cow;
use std::path::Path;

use extract::{Document, PartKind};
use snapshot::{Entry, World, WorldError};

use crate::error::EvidenceError;
use crate::limits::EvidenceLimits;
use crate::visible::display_path;

/// A file of the final world.
#[derive(Debug, Clone)]
pub struct FinalFile {
    /// The path in the snapshot, `filesystem/…` or `.apps_data/…`.
    pub path: String,
    /// Its text; empty where it has none.
    pub text: String,
    /// Why the text is empty or cut, where something went wrong.
    pub problem: Option<String>,
}

/// A file of the initial world, or one sheet or slide of it.
#[derive(Debug, Clone)]
pub struct InitialFile {
    /// The path by which it was asked for, without a leading slash.
    pub path: String,
    /// `file`, `sheet` or `slide`.
    pub kind: &'static str,
    /// Title of the part.
    pub title: Option<String>,
    /// Position of the part, from 0.
    pub index: Option<usize>,
    /// Its text.
    pub text: String,
    /// The picture as `data:` URI, where the file is one.
    pub picture_uri: Option<String>,
    /// What was left out of it.
    pub notes: Vec<String>,
}

/// A file of the initial world that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFile {
    /// Its path, with or without `filesystem/` in front.
    pub path: String,
    /// One sheet or slide of it, from 0.
    pub index: Option<usize>,
    /// The file as it is, if it is text, and not the text that was extracted.
    pub source: bool,
}

/// Opens a world.
pub(super) fn open(what: &str, path: &Path) -> Result<World, EvidenceError> {
    opened(what, World::open(path))
}

fn opened(what: &str, world: Result<World, WorldError>) -> Result<World, EvidenceError> {
    world.map_err(|error| {
        EvidenceError::unreadable(format!("the {what} world cannot be opened: {error}"))
    })
}

/// The text of the files of the world at `path` whose display path `wanted` accepts.
pub(crate) fn files(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
    limits: &EvidenceLimits,
) -> Result<Vec<FinalFile>, EvidenceError> {
    let world = open("final", path)?;
    let mut left = limits.total_text_bytes;
    let mut conversions = Conversions::of(limits);
    let mut files = Vec::new();
    for entry in world.entries().iter().filter(|entry| entry.is_file()) {
        let Some(display) = display_path(entry.path()) else {
            continue;
        };
        if !wanted(&display) {
            continue;
        }
        let mut file = FinalFile {
            path: entry.path().to_owned(),
            text: String::new(),
            problem: None,
        };
        match document(&world, entry, &conversions.limits_for(entry)) {
            Ok(document) if document.text.len() > left => {
                file.problem = Some(format!(
                    "the files hold more than {} bytes of text (limit `total_text_bytes`)",
                    limits.total_text_bytes
                ));
            }
            Ok(document) => {
                left -= document.text.len();
                file.text = document.text;
            }
            Err(problem) => file.problem = Some(problem),
        }
        files.push(file);
    }
    Ok(files)
}

/// The named files of the world at `path`.
pub(crate) fn named(
    path: &Path,
    wanted: &[WantedFile],
    limits: &EvidenceLimits,
) -> Result<Vec<InitialFile>, EvidenceError> {
    let world = open("initial", path)?;
    let mut conversions = Conversions::of(limits);
    let mut files = Vec::new();
    for wanted in wanted {
        let name = wanted.path.trim_start_matches('/');
        let entry = world
            .get(name)
            .or_else(|| world.get(&format!("{}/{name}", snapshot::FILESYSTEM)))
            .filter(|entry| entry.is_file());
        let Some(entry) = entry else {
            continue;
        };
        let source = wanted
            .source
            .then(|| world.read_entry(entry, limits.file_bytes).ok())
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        match document(&world, entry, &conversions.limits_for(entry)) {
            Ok(document) => {
                let mut file = initial_file(name, wanted.index, document);
                if let (Some(file), Some(source)) = (&mut file, source) {
                    file.text = source;
                }
                files.extend(file);
            }
            Err(problem) => files.push(InitialFile {
                path: name.to_owned(),
                kind: "file",
                title: None,
                index: wanted.index,
                text: String::new(),
                picture_uri: None,
                notes: vec![format!("cannot be read: {problem}")],
            }),
        }
    }
    Ok(files)
}

fn initial_file(name: &str, index: Option<usize>, document: Document) -> Option<InitialFile> {
    let mut file = InitialFile {
        path: name.to_owned(),
        kind: "file",
        title: None,
        index: None,
        text: String::new(),
        picture_uri: document.picture.and_then(|picture| picture.data_uri),
        notes: document.notes,
    };
    match index {
        Some(index) if !document.parts.is_empty() => {
            let part = document
                .parts
                .into_iter()
                .find(|part| part.index == index)?;
            file.kind = match part.kind {
                PartKind::Sheet => "sheet",
                PartKind::Slide => "slide",
            };
            file.title = Some(part.title);
            file.index = Some(index);
            file.text = part.text;
        }
        _ => file.text = document.text,
    }
    Some(file)
}

/// Opens the worlds before and after.
pub(super) fn open_both(initial: &Path, after: &Path) -> Result<(World, World), EvidenceError> {
    let (initial, after) = World::open_both(initial, after);
    Ok((opened("initial", initial)?, opened("final", after)?))
}

/// Limits for the documents of one look at the worlds: only some may be converted.
pub(crate) struct Conversions<'l> {
    limits: &'l EvidenceLimits,
    left: usize,
}

impl<'l> Conversions<'l> {
    pub(crate) const fn of(limits: &'l EvidenceLimits) -> Self {
        Self {
            limits,
            left: limits.conversions,
        }
    }

    /// The limits for the next document.
    pub(crate) fn limits_for(&mut self, entry: &Entry) -> Cow<'l, EvidenceLimits> {
        if !extract::needs_conversion(entry.path()) {
            return Cow::Borrowed(self.limits);
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Cow::Borrowed(self.limits)
            }
            None => {
                let mut limits = self.limits.clone();
                limits.extract.conversions = false;
                Cow::Owned(limits)
            }
        }
    }
}

/// What is in one file of `world`.
pub(crate) fn document(
    world: &World,
    entry: &Entry,
    limits: &EvidenceLimits,
) -> Result<Document, String> {
    let bytes = world
        .read_entry(entry, limits.file_bytes)
        .map_err(|error| error.to_string())?;
    extract::extract(entry.path(), &bytes, &limits.extract).map_err(|error| error.to_string())
}
