//! Documents of the worlds as pictures of their pages, drawn once for all who look at them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use extract::{DrawError, Picture};
use snapshot::{Entry, FILESYSTEM, World};
use tokio::sync::Semaphore;

use crate::error::EvidenceError;
use crate::limits::EvidenceLimits;
use crate::visible::display_path;
use crate::{Shared, Side};

/// The first pages of a document as pictures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawing {
    /// The pages in order, each with its number from 1 and its data.
    pub pages: Vec<(usize, Picture)>,
    /// Whether the document goes on after them.
    pub more: bool,
    /// Why there are no pictures, where the reason lies in the document.
    pub problem: Option<String>,
}

/// The drawings of one grading run.
#[derive(Debug)]
pub(crate) struct Drawings {
    /// LibreOffice needs much of a machine.
    pub(crate) slots: Semaphore,
    kept: Mutex<HashMap<(Side, String), Shared<Drawing>>>,
    kept_bytes: AtomicU64,
}

impl Drawings {
    pub(crate) fn new(limits: &EvidenceLimits) -> Self {
        Self {
            slots: Semaphore::new(limits.drawings_at_once.max(1)),
            kept: Mutex::default(),
            kept_bytes: AtomicU64::new(0),
        }
    }

    /// The place of a drawing, made or not.
    pub(crate) fn place(&self, side: Side, path: &str) -> Shared<Drawing> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kept.entry((side, path.to_owned())).or_default())
    }

    /// To be called by whoever made the drawing: it is forgotten where there is no more room, and
    /// made again for the next who asks.
    pub(crate) fn account(&self, side: Side, path: &str, drawing: &Drawing, most: u64) {
        let pictures = drawing.pages.iter().map(|(_, picture)| picture);
        let bytes = pictures
            .filter_map(|picture| picture.data_uri.as_deref())
            .map(extract::data_bytes)
            .sum();
        let before = self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.remove(&(side, path.to_owned()));
        }
    }
}

/// Draws the document at `path`, a display path or a path in the snapshot.
pub(crate) fn draw(
    world: &World,
    path: &str,
    limits: &EvidenceLimits,
) -> Result<Drawing, EvidenceError> {
    let of_document = |problem: String| Drawing {
        problem: Some(problem),
        ..Drawing::default()
    };
    let Some(entry) = find(world, path) else {
        return Ok(of_document("it is not in the world".to_owned()));
    };
    let bytes = match world.read_entry(entry, limits.file_bytes) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(of_document(error.to_string())),
    };
    match extract::draw(
        entry.path(),
        &bytes,
        limits.document_pictures,
        &limits.extract,
    ) {
        Ok(drawn) => Ok(Drawing {
            pages: drawn.pictures,
            more: drawn.more,
            problem: None,
        }),
        Err(DrawError::Document(problem)) => Ok(of_document(problem)),
        Err(error @ DrawError::Missing(_)) => Err(EvidenceError::request(format!(
            "documents cannot be shown as pictures: {error}"
        ))),
        Err(error) => Err(EvidenceError::unreadable(format!(
            "documents cannot be shown as pictures: {error}"
        ))),
    }
}

fn find<'w>(world: &'w World, path: &str) -> Option<&'w Entry> {
    let shown = |entry: &&Entry| display_path(entry.path()).as_deref() == Some(path);
    world
        .entries()
        .iter()
        .find(shown)
        .or_else(|| world.get(path))
        .or_else(|| world.get(&format!("{FILESYSTEM}/{path}")))
        .filter(|entry| entry.is_file())
}
