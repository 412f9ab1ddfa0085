//! What a verifier may look at: the answer, the tool calls, the changes of the world, its files.
//!
//! Each piece is made once, when the first verifier asks for it, and shared by all. A piece that
//! cannot be made is an error of the verifiers that ask for it and of no other.

mod artifact;
mod changes;
mod databases;
mod db_diff;
mod drawings;
mod error;
mod gateway_cli;
mod json_rows;
mod limits;
mod parts;
mod rows;
mod sql_dump;
mod sql_rows;
mod table;
mod tool_calls;
mod visible;
mod worlds;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use formats::Object;
use formats::chat::{Content, Message, Role};
use formats::trajectory::Trajectory;
use snapshot::World;
use tokio::sync::OnceCell;

use self::drawings::Drawings;

pub use artifact::{Artifact, Changes, PartOf};
pub use databases::Answer;
pub use db_diff::{ALL_ROWS_BYTES, DatabaseChanges, RowSources};
pub use drawings::Drawing;
pub use error::EvidenceError;
pub use limits::EvidenceLimits;
pub use rows::WorldFile;
pub use tool_calls::{EMPTY_OUTPUT, RecordedCall};
pub use visible::display_path;
pub use worlds::{FinalFile, InitialFile, WantedFile};

/// A piece that is made once, by whoever asks first.
type Shared<T> = Arc<OnceCell<Result<Arc<T>, EvidenceError>>>;

/// One of the two worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before the agent worked.
    Initial,
    /// After it.
    Final,
}

/// What the agent said, did and changed.
pub struct Evidence {
    trajectory: Trajectory,
    initial: PathBuf,
    after: PathBuf,
    limits: Arc<EvidenceLimits>,
    answer: OnceLock<String>,
    calls: OnceLock<Vec<RecordedCall>>,
    hidden_calls: OnceLock<Vec<RecordedCall>>,
    changes: OnceCell<Result<Arc<Changes>, EvidenceError>>,
    rows: Mutex<HashMap<RowSources, Shared<DatabaseChanges>>>,
    drawings: Drawings,
    goldens: Vec<PathBuf>,
}

impl Evidence {
    /// What can be seen of `trajectory` and of the worlds at two paths, each an archive or a
    /// folder that `snapshot` can open. Nothing is read yet.
    #[must_use]
    pub fn new(
        trajectory: Trajectory,
        initial: PathBuf,
        after: PathBuf,
        limits: EvidenceLimits,
    ) -> Self {
        Self {
            trajectory,
            initial,
            after,
            drawings: Drawings::new(&limits),
            limits: Arc::new(limits),
            answer: OnceLock::new(),
            calls: OnceLock::new(),
            hidden_calls: OnceLock::new(),
            changes: OnceCell::new(),
            rows: Mutex::default(),
            goldens: Vec::new(),
        }
    }

    /// The same with other correct end states.
    #[must_use]
    pub fn with_goldens(mut self, goldens: Vec<PathBuf>) -> Self {
        self.goldens = goldens;
        self
    }

    /// Other correct end states, as archives or folders, in the order in which they were given.
    #[must_use]
    pub fn golden_snapshots(&self) -> &[PathBuf] {
        &self.goldens
    }

    /// The limits of what is read out of the worlds.
    #[must_use]
    pub fn limits(&self) -> &EvidenceLimits {
        &self.limits
    }

    /// The first pages of a document of the world as pictures, by its path as people know it or in
    /// the snapshot. A document that cannot be drawn is a drawing without pages, which says why.
    ///
    /// # Errors
    /// [`EvidenceError`] where the world cannot be read, and where the programs that draw are not
    /// there or draw no other document either.
    pub async fn drawing(&self, side: Side, path: &str) -> Result<Arc<Drawing>, EvidenceError> {
        let place = self.drawings.place(side, path);
        let drawing = place.get_or_init(|| async {
            let slot = self.drawings.slots.acquire().await;
            let wanted = path.to_owned();
            let drawn = self
                .in_world(side, move |world, limits| {
                    drawings::draw(world, &wanted, limits).map(Arc::new)
                })
                .await;
            drop(slot);
            if let Ok(drawing) = &drawn {
                self.drawings
                    .account(side, path, drawing, self.limits.drawn_bytes);
            }
            drawn
        });
        drawing.await.clone()
    }

    /// Runs `work` on the open world, on a thread where it may block.
    ///
    /// # Errors
    /// [`EvidenceError`] where the world cannot be read, and what `work` returns.
    pub async fn in_world<T, E>(
        &self,
        side: Side,
        work: impl FnOnce(&World, &EvidenceLimits) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<EvidenceError> + Send + 'static,
    {
        let (what, path) = match side {
            Side::Initial => ("initial", self.initial.clone()),
            Side::Final => ("final", self.after.clone()),
        };
        let limits = Arc::clone(&self.limits);
        blocking("reading the world", move || {
            work(&worlds::open(what, &path)?, &limits)
        })
        .await
    }

    /// Runs a query on a database of the world: by alias, by path, by the end of a path, or by
    /// nothing where there is only one (`spec/grading.md` §6.3.9). It cannot write.
    ///
    /// # Errors
    /// [`EvidenceError`] where there is no such database, or the query fails.
    pub async fn query(
        &self,
        side: Side,
        database: &str,
        sql: &str,
        parameters: Object,
    ) -> Result<Answer, EvidenceError> {
        let (database, sql) = (database.to_owned(), sql.to_owned());
        self.in_world(side, move |world, limits| {
            databases::query(world, &database, &sql, &parameters, limits)
        })
        .await
    }

    /// The changed rows of the worlds. Those of one choice of `sources` are made once.
    ///
    /// # Errors
    /// [`EvidenceError`] where a world cannot be read.
    pub async fn database_changes(
        &self,
        sources: &RowSources,
    ) -> Result<Arc<DatabaseChanges>, EvidenceError> {
        let cell = {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(rows.entry(sources.clone()).or_default())
        };
        cell.get_or_init(|| async {
            let (initial, after) = (self.initial.clone(), self.after.clone());
            let (sources, limits) = (sources.clone(), Arc::clone(&self.limits));
            blocking("comparing rows", move || {
                db_diff::between(&initial, &after, &sources, &limits).map(Arc::new)
            })
            .await
        })
        .await
        .clone()
    }

    /// What of the rows of the final world differs from those of the correct end state number
    /// `golden` (from 0).
    ///
    /// # Errors
    /// [`EvidenceError`] where there is no such end state, or a world cannot be read.
    pub async fn differences_from_golden(
        &self,
        golden: usize,
        sources: &RowSources,
    ) -> Result<DatabaseChanges, EvidenceError> {
        let path = self.golden(golden)?;
        let (after, sources) = (self.after.clone(), sources.clone());
        let limits = Arc::clone(&self.limits);
        blocking("comparing rows", move || {
            db_diff::between(&path, &after, &sources, &limits)
        })
        .await
    }

    /// The tables of the databases of the correct end state number `golden` (from 0), each with
    /// the path of its database in front.
    ///
    /// # Errors
    /// [`EvidenceError`] where there is no such end state, or it cannot be read.
    pub async fn golden_tables(
        &self,
        golden: usize,
    ) -> Result<Vec<(String, String)>, EvidenceError> {
        let path = self.golden(golden)?;
        let limits = Arc::clone(&self.limits);
        blocking("reading a correct end state", move || {
            databases::tables(&worlds::open("correct", &path)?, &limits)
        })
        .await
    }

    fn golden(&self, number: usize) -> Result<PathBuf, EvidenceError> {
        self.goldens.get(number).cloned().ok_or_else(|| {
            EvidenceError::request(format!("there is no golden snapshot number {number}"))
        })
    }

    /// The trajectory.
    #[must_use]
    pub const fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// The agent's answer (`spec/grading.md` §2.9).
    #[must_use]
    pub fn answer(&self) -> &str {
        self.answer.get_or_init(|| self.trajectory.answer())
    }

    /// The tool calls with their outputs.
    #[must_use]
    pub fn tool_calls(&self) -> &[RecordedCall] {
        self.calls
            .get_or_init(|| tool_calls::extract(&self.trajectory.messages))
    }

    /// The tool calls, and after them those made through the gateway's command line in a shell.
    #[must_use]
    pub fn calls_with_gateway_cli(&self) -> Vec<&RecordedCall> {
        let hidden = self
            .hidden_calls
            .get_or_init(|| gateway_cli::unwrap(self.tool_calls()));
        self.tool_calls().iter().chain(hidden).collect()
    }

    /// The task as the agent was given it at first: the first user message with text (`spec/grading.md` §6.2); empty
    /// where there is none.
    #[must_use]
    pub fn task_text(&self) -> String {
        self.spoken_turns()
            .find(|turn| turn.role == Role::User)
            .map(|turn| turn.text().into_owned())
            .unwrap_or_default()
    }

    /// The task with everything that was said about it: the only user message with text, or, where there are
    /// several, the conversation of user and assistant with the speaker in front of each turn (§5.6).
    #[must_use]
    pub fn conversation_text(&self) -> String {
        let of_user = |turn: &&Message| turn.role == Role::User;
        if self.spoken_turns().filter(of_user).count() < 2 {
            return self.task_text();
        }
        self.spoken_turns()
            .map(|turn| format!("[{}]\n{}", turn.role.as_str(), turn.text()))
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// What user and assistant said in words.
    fn spoken_turns(&self) -> impl Iterator<Item = &Message> {
        self.trajectory.messages.iter().filter(|message| {
            matches!(message.role, Role::User | Role::Assistant)
                && !message.content.as_ref().is_none_or(Content::is_blank)
                && !message.text().trim().is_empty()
        })
    }

    /// What changed between the two worlds, with contents.
    ///
    /// # Errors
    /// [`EvidenceError`] where a world cannot be read.
    pub async fn changes(&self) -> Result<Arc<Changes>, EvidenceError> {
        self.changes
            .get_or_init(|| async {
                let (initial, after) = (self.initial.clone(), self.after.clone());
                let limits = Arc::clone(&self.limits);
                blocking("comparing the worlds", move || {
                    changes::between(&initial, &after, &limits).map(Arc::new)
                })
                .await
            })
            .await
            .clone()
    }

    /// The files of the final world whose display path `wanted` accepts, unchanged ones included.
    ///
    /// # Errors
    /// [`EvidenceError`] where the world cannot be read.
    pub async fn final_files(
        &self,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<FinalFile>, EvidenceError> {
        let after = self.after.clone();
        let limits = Arc::clone(&self.limits);
        blocking("reading the final world", move || {
            worlds::files(&after, wanted, &limits)
        })
        .await
    }

    /// Files of the initial world, whole or one sheet or slide of each. Those that are not there are
    /// left out; one that cannot be read has a note that says so, and no text.
    ///
    /// # Errors
    /// [`EvidenceError`] where the world cannot be read.
    pub async fn initial_files(
        &self,
        wanted: Vec<WantedFile>,
    ) -> Result<Vec<InitialFile>, EvidenceError> {
        let initial = self.initial.clone();
        let limits = Arc::clone(&self.limits);
        blocking("reading the initial world", move || {
            worlds::named(&initial, &wanted, &limits)
        })
        .await
    }
}

/// Runs `work` on a thread where it may block. A panic is the error of this piece of evidence.
async fn blocking<T, E>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<EvidenceError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            let text = format!("{what} was ended: {error}");
            Err(EvidenceError::unreadable(text).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(messages: &serde_json::Value) -> Evidence {
        let trajectory = serde_json::json!({
            "messages": messages, "status": "completed", "time_elapsed": 1.0,
        });
        Evidence::new(
            serde_json::from_value(trajectory).unwrap(),
            PathBuf::new(),
            PathBuf::new(),
            EvidenceLimits::default(),
        )
    }

    #[test]
    fn a_single_user_message_is_the_task() {
        let evidence = evidence(&serde_json::json!([
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "find it"}, {"type": "image_url", "image_url": {"url": "data:,"}}]},
            {"role": "user", "content": "  "},
            {"role": "assistant", "content": "found"},
        ]));
        assert_eq!(evidence.task_text(), "find it");
        assert_eq!(evidence.conversation_text(), "find it");
    }

    #[test]
    fn several_user_messages_are_told_as_a_conversation() {
        let evidence = evidence(&serde_json::json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "tool", "content": "left out", "tool_call_id": "c"},
            {"role": "user", "content": "three"},
        ]));
        assert_eq!(evidence.task_text(), "one");
        assert_eq!(
            evidence.conversation_text(),
            "[user]\none\n\n[assistant]\ntwo\n\n[user]\nthree"
        );
        let empty = self::evidence(&serde_json::json!([]));
        assert_eq!(
            (empty.task_text(), empty.conversation_text()),
            Default::default()
        );
    }
}
