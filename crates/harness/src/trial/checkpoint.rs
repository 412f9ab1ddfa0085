//! Worlds saved while the agent works, and trials that go on from them.
//!
//! What a killed trial leaves of its world cannot be trusted: the environment is gone, or a call was
//! in the middle of something. A saved world can: it is taken between two steps, when no call is on
//! its way, and named with the number of the event that comes next. A trial that goes on takes that
//! world and exactly the events before it.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent_core::{BetweenSteps, Checkpoint, EventLog, read_events};
use formats::document;
use formats::event::Event;
use formats::run::{FORMAT_VERSION, WorldCheckpoint, file};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use sandbox::EnvironmentClient;

use super::TrialId;
use crate::progress::{News, Progress};
use crate::run::{RunError, now};

/// What an earlier attempt at a trial left to go on from.
pub(crate) struct Earlier {
    /// The events up to the saved world.
    pub(crate) events: Vec<Event>,
    /// The saved world.
    pub(crate) world: PathBuf,
}

/// What came of looking for a checkpoint.
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// There is one, and it cannot be used for this reason.
    Unusable(String),
    /// The trial can go on from it.
    Earlier(Earlier),
}

impl Earlier {
    /// Takes what the attempt in `aside` left over to `folder`.
    pub(crate) fn take(aside: &Path, folder: &Path) -> Result<Found, RunError> {
        let record = aside.join(file::CHECKPOINT);
        if !record.exists() {
            return Ok(Found::Nothing);
        }
        let (saved, events) = match read(aside, &record) {
            Ok(usable) => usable,
            Err(reason) => return Ok(Found::Unusable(reason)),
        };
        let world = folder.join(&saved.world);
        let failed = |source| RunError::io("take over the saved world of", aside, source);
        std::fs::create_dir_all(folder).map_err(failed)?;
        match std::fs::rename(aside.join(&saved.world), &world) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Found::Unusable(format!("`{}` is not there", saved.world)));
            }
            Err(error) => return Err(failed(error)),
        }
        std::fs::rename(record, folder.join(file::CHECKPOINT)).map_err(failed)?;
        Ok(Found::Earlier(Self { events, world }))
    }

    /// Steps of the agent in the events.
    pub(crate) fn steps(&self) -> u64 {
        self.events.last().and_then(|event| event.step).unwrap_or(0)
    }
}

/// The checkpoint at `record` and the events of the attempt up to it, or why they are of no use.
fn read(aside: &Path, record: &Path) -> Result<(WorldCheckpoint, Vec<Event>), String> {
    let saved: WorldCheckpoint =
        document::read("checkpoint", record).map_err(|error| error.to_string())?;
    if saved.format_version != FORMAT_VERSION {
        return Err(format!(
            "it has format version {}, not {FORMAT_VERSION}",
            saved.format_version
        ));
    }
    if Path::new(&saved.world).file_name() != Some(saved.world.as_ref()) {
        return Err(format!("`{}` is no name of a file", saved.world));
    }
    let mut events = read_events(aside.join(file::EVENTS))
        .map_err(|error| format!("`{}`: {error}", file::EVENTS))?;
    events.retain(|event| event.seq < saved.next_seq);
    let (there, wanted) = (events.len() as u64, saved.next_seq);
    if there != wanted || Checkpoint::from_events(&events).is_none() {
        return Err(format!(
            "{there} of the {wanted} events before it are there"
        ));
    }
    Ok((saved, events))
}

/// Saves the world every few steps.
pub(crate) struct Saver {
    pub(crate) client: EnvironmentClient,
    pub(crate) folder: PathBuf,
    pub(crate) every: NonZeroU32,
    pub(crate) log: Arc<EventLog>,
    pub(crate) trial: TrialId,
    pub(crate) progress: Arc<dyn Progress>,
    /// Model calls so far.
    pub(crate) asked: AtomicU32,
}

impl BetweenSteps for Saver {
    fn between_steps(&self, next_seq: u64) -> BoxFuture<'_, ()> {
        async move {
            let asked = self.asked.fetch_add(1, Ordering::Relaxed);
            // Before the first call the world is as it was.
            if asked == 0 || asked % self.every != 0 {
                return;
            }
            if let Err(reason) = self.save(next_seq).await {
                let remark = format!("the world could not be saved to go on from: {reason}");
                self.progress.news(&self.trial, News::Remark(&remark));
            }
        }
        .boxed()
    }
}

impl Saver {
    /// The world first, then the record that names it, then the former world goes: whenever this is
    /// cut off, the record names a whole world.
    async fn save(&self, next_seq: u64) -> Result<(), String> {
        let world = format!("checkpoint-{next_seq}.tar.gz");
        self.client
            .snapshot(&self.folder.join(&world))
            .await
            .map_err(|error| error.to_string())?;
        self.log.finish().map_err(|error| error.to_string())?;
        let record = self.folder.join(file::CHECKPOINT);
        let former = document::read::<WorldCheckpoint>("checkpoint", &record).ok();
        let saved = WorldCheckpoint {
            format_version: FORMAT_VERSION,
            time: now(),
            next_seq,
            world,
        };
        document::write("checkpoint", &record, &saved).map_err(|error| error.to_string())?;
        if let Some(former) = former.filter(|former| former.world != saved.world) {
            remove(&self.folder.join(former.world));
        }
        Ok(())
    }
}

/// Removes the saved world of a trial that needs no repetition.
pub(super) fn discard(folder: &Path) {
    let record = folder.join(file::CHECKPOINT);
    if let Ok(saved) = document::read::<WorldCheckpoint>("checkpoint", &record) {
        remove(&folder.join(saved.world));
        remove(&record);
    }
}

/// Best effort: what stays only takes space.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}
