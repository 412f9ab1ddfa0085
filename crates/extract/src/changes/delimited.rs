//! Rows of csv and tsv files.

use std::io::{BufReader, Read as _};

use serde_json::Value;

use super::rows::{self, Cells, Collector, Shape, Side, Stream};
use super::{ChangeLimits, Content, ContentChanges, Happened, Row, TableChange, bytes_of};
use crate::document::extension;
use crate::error::ExtractError;
use crate::records::{RecordError, Records, separator};
use crate::text;

/// How much of a file is looked at to tell encoding and separator.
const BEGINNING: u64 = 8 << 10;

pub(super) fn compare(
    name: &str,
    before: &dyn Content,
    after: &dyn Content,
    limits: &ChangeLimits,
    changes: &mut ContentChanges,
) -> Result<(), ExtractError> {
    let extension = extension(name);
    let old = Source::open(&extension, before, limits)?;
    let new = Source::open(&extension, after, limits)?;
    let shape = Columns::of(&old, &new, limits)?;
    let mut table = TableChange::new("", Happened::Changed);
    table.columns_added.clone_from(&shape.added);
    table.columns_removed.clone_from(&shape.removed);
    let mut collector = Collector::new(limits);
    rows::compare(&mut table, &mut collector, &shape, |side| match side {
        Side::Old => old.rows(limits),
        Side::New => new.rows(limits),
    })?;
    if table.says_something() {
        changes.tables.push(table);
    } else {
        changes.notes.push(
            "the rows are the same: only quotes, line ends or the encoding differ".to_owned(),
        );
    }
    Ok(())
}

/// One version, whose rows can be read again and again.
struct Source<'a> {
    content: &'a dyn Content,
    separator: u8,
    /// The whole text in UTF-8, where the file is UTF-16 and cannot be read by bytes.
    decoded: Option<String>,
}

impl<'a> Source<'a> {
    fn open(
        extension: &str,
        content: &'a dyn Content,
        limits: &ChangeLimits,
    ) -> Result<Self, ExtractError> {
        let mut beginning = Vec::new();
        content
            .read()
            .and_then(|reader| reader.take(BEGINNING).read_to_end(&mut beginning))
            .map_err(ExtractError::read)?;
        // Zero bytes are either UTF-16 or no text at all.
        let decoded = if beginning.contains(&0) {
            Some(text::decode(&bytes_of(content, &limits.documents)?).into_owned())
        } else {
            None
        };
        let separator = match &decoded {
            Some(text) => separator(extension, text.as_bytes()),
            None => separator(extension, &beginning),
        };
        Ok(Self {
            content,
            separator,
            decoded,
        })
    }

    fn rows(&self, limits: &ChangeLimits) -> Result<Stream<'_>, ExtractError> {
        let input: Box<dyn std::io::Read + '_> = match &self.decoded {
            Some(text) => Box::new(text.as_bytes()),
            None => self.content.read().map_err(ExtractError::read)?,
        };
        let mut records = Records::new(BufReader::new(input), self.separator, limits.row_bytes);
        let (columns, row_bytes) = (limits.columns, limits.row_bytes);
        let mut first = true;
        Ok(Box::new(std::iter::from_fn(move || {
            let record = match records.next() {
                Ok(record) => record?,
                Err(RecordError::Read(error)) => return Some(Err(ExtractError::read(error))),
                Err(RecordError::TooLong) => {
                    return Some(Err(ExtractError::Limit {
                        what: "one row in bytes (at least)",
                        limit: "row_bytes",
                        got: row_bytes as u64 + 1,
                        allowed: row_bytes as u64,
                    }));
                }
            };
            let mut cells: Cells = record
                .into_iter()
                .take(columns)
                .map(text::decode_piece)
                .collect();
            if std::mem::take(&mut first)
                && let Some(cell) = cells.first_mut()
                && let Some(rest) = cell.strip_prefix('\u{feff}')
            {
                *cell = rest.trim_matches('"').to_owned();
            }
            Some(Ok(cells))
        })))
    }

    fn first_row(&self, limits: &ChangeLimits) -> Result<Cells, ExtractError> {
        Ok(self.rows(limits)?.next().transpose()?.unwrap_or_default())
    }
}

/// What the columns are called, and which are in both versions.
struct Columns {
    old: Vec<String>,
    new: Vec<String>,
    /// The columns in both, by their places; `None` where the places are the same.
    shared: Option<Vec<(usize, usize)>>,
    added: Vec<String>,
    removed: Vec<String>,
}

impl Columns {
    fn of(old: &Source<'_>, new: &Source<'_>, limits: &ChangeLimits) -> Result<Self, ExtractError> {
        let (old, new) = (old.first_row(limits)?, new.first_row(limits)?);
        let numbered = Self {
            old: Vec::new(),
            new: Vec::new(),
            shared: None,
            added: Vec::new(),
            removed: Vec::new(),
        };
        if !is_header(&old) || !is_header(&new) {
            return Ok(numbered);
        }
        if old == new {
            return Ok(Self {
                old,
                new,
                ..numbered
            });
        }
        let shared: Vec<(usize, usize)> = old
            .iter()
            .enumerate()
            .filter_map(|(at, name)| Some((at, new.iter().position(|other| other == name)?)))
            .collect();
        // With fewer names in common, the first rows are other rows, or no header at all.
        if shared.len() * 2 < old.len().min(new.len()) {
            return Ok(numbered);
        }
        let missing = |names: &[String], others: &[String]| -> Vec<String> {
            let of = names.iter().filter(|name| !others.contains(name));
            of.cloned().collect()
        };
        Ok(Self {
            added: missing(&new, &old),
            removed: missing(&old, &new),
            shared: Some(shared),
            old,
            new,
        })
    }
}

/// Whether a first row names the columns: every cell is another text that is no number.
fn is_header(cells: &[String]) -> bool {
    let mut seen = std::collections::HashSet::new();
    !cells.is_empty()
        && cells.iter().all(|cell| {
            let cell = cell.trim();
            !cell.is_empty() && cell.parse::<f64>().is_err() && seen.insert(cell)
        })
}

impl Shape for Columns {
    fn compared<'c>(&self, side: Side, cells: &'c [String]) -> Vec<&'c str> {
        let Some(shared) = &self.shared else {
            return cells.iter().map(String::as_str).collect();
        };
        let at = |(old, new): &(usize, usize)| match side {
            Side::Old => *old,
            Side::New => *new,
        };
        let mut compared: Vec<&str> = shared
            .iter()
            .map(|places| cells.get(at(places)).map_or("", String::as_str))
            .collect();
        // Cells beyond the named columns.
        let named = match side {
            Side::Old => self.old.len(),
            Side::New => self.new.len(),
        };
        compared.extend(cells.iter().skip(named).map(String::as_str));
        compared
    }

    fn whole(&self, side: Side, _: usize, cells: &[String]) -> Row {
        let names = match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        };
        cells
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let name = names.get(at).cloned();
                let name = name.unwrap_or_else(|| format!("column {}", at + 1));
                (name, Value::String(cell.clone()))
            })
            .collect()
    }
}
