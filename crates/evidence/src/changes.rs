//! The changes of the world with their contents (`spec/grading.md` §4).

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::time::Duration;

use extract::{ContentChanges, Document, Part};
use formats::diff::ChangeKind;
use snapshot::{CompareOptions, DiffLimits, Entry, World, unified_diff};

use super::artifact::{Artifact, Changes, PartOf};
use super::parts::{Pair, pair};
use crate::error::EvidenceError;
use crate::limits::EvidenceLimits;
use crate::rows;
use crate::visible::display_path;
use crate::worlds::{self, Conversions};

/// Bytes of one diff; the rest is cut with a note. No judge is shown more than two million
/// characters of a text.
const MAX_DIFF: usize = 4 << 20;

/// Time for one line diff; after it the diff is coarser.
const DIFF_TIME: Duration = Duration::from_secs(5);

/// Compares the worlds at two paths.
pub(crate) fn between(
    initial: &Path,
    after: &Path,
    limits: &EvidenceLimits,
) -> Result<Changes, EvidenceError> {
    let counts = |entry: &Entry| entry.is_file() && display_path(entry.path()).is_some();
    let (mut before, mut after) = worlds::open_both(initial, after)?;
    before.retain(counts);
    after.retain(counts);
    let options = CompareOptions {
        // A moved file is one deleted and one created file to a judge, and texts come from
        // extraction.
        renames: false,
        text: false,
        ..CompareOptions::default()
    };
    let diff = snapshot::compare(&before, &after, &options).map_err(|error| {
        EvidenceError::unreadable(format!("the worlds cannot be compared: {error}"))
    })?;
    let mut reader = Reader {
        before: &before,
        after: &after,
        limits,
        conversions: Conversions::of(limits),
        text_left: limits.total_text_bytes,
        pictures_left: limits.pictures,
        picture_bytes_left: limits.total_picture_bytes,
    };
    let mut files: Vec<(ChangeKind, String, &snapshot::Change)> = diff
        .changes
        .iter()
        .filter_map(|change| Some((kind(change)?, display_path(&change.path)?, change)))
        .collect();
    files.sort_by(|a, b| a.1.cmp(&b.1));
    let mut artifacts: Vec<Artifact> = files
        .into_iter()
        .flat_map(|(kind, path, change)| reader.artifacts(kind, &path, change))
        .collect();
    // Stable: the order by path stays within each kind.
    artifacts.sort_by_key(|artifact| match artifact.change {
        ChangeKind::Created => 0,
        ChangeKind::Modified => 1,
        _ => 2,
    });
    Ok(Changes {
        artifacts,
        unchanged: diff.unchanged,
    })
}

/// What a judge calls the change; changes of mode alone are none.
fn kind(change: &snapshot::Change) -> Option<ChangeKind> {
    match (&change.before, &change.after) {
        _ if change.kind == snapshot::ChangeKind::Metadata => None,
        (None, Some(_)) => Some(ChangeKind::Created),
        (Some(_), None) => Some(ChangeKind::Deleted),
        (Some(_), Some(_)) => Some(ChangeKind::Modified),
        (None, None) => None,
    }
}

/// Reads contents while budgets last.
struct Reader<'a> {
    before: &'a World,
    after: &'a World,
    limits: &'a EvidenceLimits,
    conversions: Conversions<'a>,
    text_left: usize,
    pictures_left: usize,
    picture_bytes_left: u64,
}

impl Reader<'_> {
    /// One artifact for the file, or one for each changed part of it.
    fn artifacts(
        &mut self,
        kind: ChangeKind,
        path: &str,
        change: &snapshot::Change,
    ) -> Vec<Artifact> {
        let mut file = Artifact::new(path, kind);
        file.old_size = change.old_size();
        file.new_size = change.new_size();
        let large = self.limits.csv_rows_above;
        if let Some(rows) = rows::of(self.before, self.after, change, large) {
            self.take_rows(rows, &mut file);
            return vec![file];
        }
        // Pages are drawn of the version that is shown.
        let pages = self.limits.extract.page_pictures.min(self.pictures_left);
        let old_pages = if change.after.is_some() { 0 } else { pages };
        let sides = [
            ("before", self.before, &change.before, old_pages),
            ("after", self.after, &change.after, pages),
        ];
        let [old, new] = sides.map(|(when, world, entry, pages)| {
            self.side(when, world, entry.as_ref(), pages, &mut file)
        });
        let (old, new) = match (old, new) {
            (Ok(old), Ok(new)) => (old, new),
            // What is there now is shown whatever was there before. A comparison with one side that
            // cannot be read would mislead.
            (Err(()), Ok(new)) => {
                if self.take_text(None, new.as_ref(), &mut file) {
                    self.fill(&mut file, None, new);
                    file.diff = None;
                }
                return vec![file];
            }
            (_, Err(())) => return vec![file],
        };
        if !self.take_text(old.as_ref(), new.as_ref(), &mut file) {
            return vec![file];
        }
        let has_parts = |document: &Option<Document>| {
            document
                .as_ref()
                .is_none_or(|document| !document.parts.is_empty())
        };
        if has_parts(&old) && has_parts(&new) {
            let most = self.limits.diff_text_bytes;
            let parts = parts(path, old.as_ref(), new.as_ref(), &file.notes, most);
            if !parts.is_empty() {
                return parts;
            }
            file.notes
                .push("no sheet or slide has other content".to_owned());
            return vec![file];
        }
        let is_cut = |document: &Option<Document>| {
            let document = document.as_ref();
            document.is_some_and(|d| d.truncated && d.format == extract::Format::Text)
        };
        let cut = is_cut(&old) || is_cut(&new);
        self.fill(&mut file, old, new);
        if cut && kind != ChangeKind::Created {
            // What changed may stand after the text that is kept.
            file.diff = self.diff_of_files(&file.path, change).or(file.diff);
        }
        vec![file]
    }

    /// The diff of two versions of a text, read from the worlds.
    fn diff_of_files(&self, name: &str, change: &snapshot::Change) -> Option<String> {
        let side = |world: &World, entry: &Option<Entry>| -> io::Result<Box<dyn io::Read>> {
            match entry {
                Some(entry) => world
                    .reader(entry)
                    .map(|reader| Box::new(reader) as Box<dyn io::Read>)
                    .map_err(io::Error::other),
                None => Ok(Box::new(io::empty())),
            }
        };
        unified(
            name,
            || side(self.before, &change.before),
            || side(self.after, &change.after),
        )
    }

    /// The document on one side; what went wrong is noted in `file`.
    fn side(
        &mut self,
        when: &str,
        world: &World,
        entry: Option<&Entry>,
        page_pictures: usize,
        file: &mut Artifact,
    ) -> Result<Option<Document>, ()> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        let mut limits = self.conversions.limits_for(entry).into_owned();
        limits.extract.page_pictures = page_pictures;
        match worlds::document(world, entry, &limits) {
            Ok(document) => {
                let notes = document.notes.iter();
                file.notes
                    .extend(notes.map(|note| format!("{when} the change: {note}")));
                Ok(Some(document))
            }
            Err(problem) => {
                file.notes
                    .push(format!("cannot be read {when} the change: {problem}"));
                Err(())
            }
        }
    }

    /// The changed rows as the diff of the file, without the contents of either side.
    fn take_rows(&mut self, rows: Result<ContentChanges, String>, file: &mut Artifact) {
        match rows {
            Ok(rows) => {
                let text = rows.to_text(&file.path);
                match self.text_left.checked_sub(text.len()) {
                    Some(left) => {
                        self.text_left = left;
                        file.diff = Some(text);
                    }
                    None => file.notes.push(self.no_text_left()),
                }
            }
            Err(problem) => file
                .notes
                .push(format!("its rows cannot be compared: {problem}")),
        }
    }

    fn no_text_left(&self) -> String {
        format!(
            "left out: the changed files hold more than {} bytes of text (limit `total_text_bytes`)",
            self.limits.total_text_bytes
        )
    }

    /// Whether the texts of both sides fit into what is left for all.
    fn take_text(
        &mut self,
        old: Option<&Document>,
        new: Option<&Document>,
        file: &mut Artifact,
    ) -> bool {
        let size = [old, new].into_iter().flatten().map(|d| d.text.len()).sum();
        match self.text_left.checked_sub(size) {
            Some(left) => {
                self.text_left = left;
                true
            }
            None => {
                file.notes.push(self.no_text_left());
                false
            }
        }
    }

    fn fill(&mut self, file: &mut Artifact, old: Option<Document>, new: Option<Document>) {
        let shown = new.as_ref().or(old.as_ref());
        if let Some(picture) = shown.and_then(|document| document.picture.clone()) {
            file.picture = Some(self.take_picture(picture, file));
            return;
        }
        let pages = shown.map(|document| document.page_pictures.clone());
        for page in pages.unwrap_or_default() {
            let page = self.take_picture(page, file);
            file.page_pictures.push(page);
        }
        file.comments = new.as_ref().and_then(|document| document.comments.clone());
        file.tracked_changes = new
            .as_ref()
            .and_then(|document| document.tracked_changes.clone());
        let text = |document: Option<Document>| {
            document
                .filter(|document| document.format != extract::Format::Binary)
                .map(|document| document.text)
        };
        // Comments that are shown by themselves are no part of the diff.
        let old_comments = old
            .as_ref()
            .and_then(|document| document.comments.clone())
            .filter(|_| file.comments.is_some());
        let (had_old, had_new) = (old.is_some(), new.is_some());
        file.old_content = text(old);
        file.new_content = text(new);
        let missing =
            (had_old && file.old_content.is_none()) || (had_new && file.new_content.is_none());
        if missing {
            file.notes.push("no text: the content is binary".to_owned());
        }
        if file.change != ChangeKind::Created && !missing {
            file.diff = diff(
                &file.path,
                without(file.old_content.as_deref(), old_comments.as_deref()),
                without(file.new_content.as_deref(), file.comments.as_deref()),
                self.limits.diff_text_bytes,
            );
        }
    }

    /// The picture, with its data if the budgets allow.
    fn take_picture(
        &mut self,
        mut picture: extract::Picture,
        file: &mut Artifact,
    ) -> extract::Picture {
        let Some(bytes) = picture.data_uri.as_deref().map(extract::data_bytes) else {
            return picture;
        };
        if self.pictures_left == 0 || bytes > self.picture_bytes_left {
            picture.data_uri = None;
            file.notes.push(format!(
                "the picture is left out: at most {} pictures with {} bytes together are shown (limits `pictures`, `total_picture_bytes`)",
                self.limits.pictures, self.limits.total_picture_bytes
            ));
        } else {
            self.pictures_left -= 1;
            self.picture_bytes_left -= bytes;
        }
        picture
    }
}

/// `text` without the comments at its end.
fn without<'t>(text: Option<&'t str>, comments: Option<&str>) -> &'t str {
    let text = text.unwrap_or_default();
    comments
        .and_then(|comments| text.strip_suffix(comments))
        .unwrap_or(text)
}

/// An artifact for each sheet or slide that differs.
fn parts(
    path: &str,
    old: Option<&Document>,
    new: Option<&Document>,
    notes: &[String],
    most: usize,
) -> Vec<Artifact> {
    let old: &[Part] = old.map_or(&[], |document| &document.parts);
    let new: &[Part] = new.map_or(&[], |document| &document.parts);
    let pairs = pair(old, new);
    let mut nearest = None;
    let mut artifacts = Vec::new();
    for pair in pairs {
        match pair {
            Pair::Unchanged(before, _) => nearest = Some(old[before].index),
            Pair::Modified(before, after) => {
                nearest = Some(old[before].index);
                let mut artifact = part(
                    path,
                    ChangeKind::Modified,
                    &new[after],
                    Some(old[before].index),
                );
                artifact.diff = diff(&artifact.name(), &old[before].text, &new[after].text, most);
                artifact.old_content = Some(old[before].text.clone());
                artifact.new_content = Some(new[after].text.clone());
                artifacts.push(artifact);
            }
            Pair::Created(after) => {
                let mut artifact = part(path, ChangeKind::Created, &new[after], nearest);
                artifact.new_content = Some(new[after].text.clone());
                artifacts.push(artifact);
            }
            Pair::Deleted(before) => {
                let mut artifact = part(path, ChangeKind::Deleted, &old[before], None);
                artifact.diff = diff(&artifact.name(), &old[before].text, "", most);
                artifact.old_content = Some(old[before].text.clone());
                artifacts.push(artifact);
            }
        }
    }
    if let Some(first) = artifacts.first_mut() {
        first.notes.extend_from_slice(notes);
    }
    artifacts
}

fn part(path: &str, change: ChangeKind, part: &Part, original_index: Option<usize>) -> Artifact {
    let mut artifact = Artifact::new(path, change);
    artifact.index = Some(part.index);
    artifact.part = Some(PartOf {
        kind: part.kind,
        title: part.title.clone(),
        original_index,
    });
    artifact
}

/// A unified diff with three lines of context, of texts of at most `most` bytes together; `None`
/// where nothing differs.
fn diff(name: &str, old: &str, new: &str, most: usize) -> Option<String> {
    if old == new {
        return None;
    }
    let size = old.len() + new.len();
    if size > most {
        return Some(format!(
            "--- a/{name}\n+++ b/{name}\n@@ {size} bytes of text, too much for a diff (limit `diff_text_bytes`) @@\n"
        ));
    }
    // A NUL in a text that was read out of a document is no reason to hide the rest.
    let (old, new) = (without_nul(old), without_nul(new));
    unified(name, || Ok(old.as_bytes()), || Ok(new.as_bytes()))
}

/// The diff of two texts with what is to be said of it; `None` where they are equal, or are no text.
fn unified<A: io::Read, B: io::Read>(
    name: &str,
    old: impl Fn() -> io::Result<A>,
    new: impl Fn() -> io::Result<B>,
) -> Option<String> {
    let limits = DiffLimits {
        max_time: DIFF_TIME,
        max_bytes: MAX_DIFF,
        max_line_bytes: MAX_DIFF,
        ..DiffLimits::default()
    };
    let diff = unified_diff(name, old, new, &limits).ok().flatten()?;
    let notes: String = diff
        .notes
        .iter()
        .map(|note| format!("@@ {note} @@\n"))
        .collect();
    let mut text = diff.text + &notes;
    // It is kept as long as the grading takes.
    text.shrink_to_fit();
    Some(text).filter(|text| !text.is_empty())
}

fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
