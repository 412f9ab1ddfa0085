//! Changed rows of databases and of large csv files (`spec/grading.md` §4.5).

use std::io::{self, Read};

use extract::{ChangeLimits, Content, ContentChanges, content_changes, is_database};
use snapshot::{Change, Entry, World};

/// A file of a world, to be compared by its content. The write-ahead log of a database that lies
/// beside it belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct WorldFile<'w> {
    world: &'w World,
    entry: &'w Entry,
}

impl<'w> WorldFile<'w> {
    /// The file `entry` of `world`.
    #[must_use]
    pub const fn new(world: &'w World, entry: &'w Entry) -> Self {
        Self { world, entry }
    }

    fn read_entry(&self, entry: &Entry) -> io::Result<Box<dyn Read + 'w>> {
        match self.world.reader(entry) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Content for WorldFile<'_> {
    fn size(&self) -> u64 {
        self.entry.size()
    }

    fn read(&self) -> io::Result<Box<dyn Read + '_>> {
        self.read_entry(self.entry)
    }

    fn write_ahead_log(&self) -> io::Result<Option<Box<dyn Read + '_>>> {
        self.world
            .get(&format!("{}-wal", self.entry.path()))
            .filter(|log| log.is_file())
            .map(|log| self.read_entry(log))
            .transpose()
    }
}

/// The changed rows of the file of `change`, where rows are how it is to be compared: of a database,
/// of the database that a write-ahead log belongs to, and of a csv file of more than `large` bytes.
pub(crate) fn of(
    before: &World,
    after: &World,
    change: &Change,
    large: u64,
) -> Option<Result<ContentChanges, String>> {
    let (name, old, new) = match change.path.strip_suffix("-wal") {
        Some(database) => (database, before.get(database), after.get(database)),
        None => (
            change.path.as_str(),
            change.before.as_ref(),
            change.after.as_ref(),
        ),
    };
    let old = old
        .filter(|e| e.is_file())
        .map(|e| WorldFile::new(before, e));
    let new = new
        .filter(|e| e.is_file())
        .map(|e| WorldFile::new(after, e));
    let files = [old.as_ref(), new.as_ref()];
    let mut files = files.into_iter().flatten();
    let is_large_csv =
        extract::extension(name) == "csv" && files.clone().map(Content::size).sum::<u64>() > large;
    if !is_large_csv && !files.any(|file| is_database(file).unwrap_or(false)) {
        return None;
    }
    let changes = content_changes(
        name,
        old.as_ref().map(|file| file as &dyn Content),
        new.as_ref().map(|file| file as &dyn Content),
        &ChangeLimits::default(),
    );
    Some(changes.map_err(|error| error.to_string()))
}
