//! The task that owns one configuration.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_gateway::{Gateway, ToolCall};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::AFTER_CANCEL;
use super::config::{Checkpoint, CoordinatorConfig, Event};
use super::event::{self, Occurrence};
use super::files::{Files, Opened, Run};
use super::record;
use super::trigger::Watch;
use crate::metrics::Metrics;

/// What the owner is asked for. `done` is told when that has happened.
#[derive(Debug)]
pub(super) enum Message {
    /// Record a call.
    Call {
        call: ToolCall,
        done: oneshot::Sender<()>,
    },
    /// Look at the triggers, and let actions end.
    Drain {
        limit: Duration,
        done: oneshot::Sender<()>,
    },
    /// End.
    Stop {
        grace: Duration,
        done: oneshot::Sender<()>,
    },
}

/// An event that has not happened yet.
struct Waiting {
    event: Event,
    watch: Watch,
}

/// What actions reach.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) gateway: Gateway,
    pub(super) metrics: Arc<Metrics>,
}

/// One configuration at work.
pub(super) struct Owner {
    files: Files,
    sequence: u64,
    started_at: jiff::Timestamp,
    waiting: Vec<Waiting>,
    on_calls: bool,
    every: Option<Duration>,
    actions: Arc<Actions>,
    surroundings: Surroundings,
    max_recorded_bytes: usize,
}

impl Owner {
    /// Opens the files of the run and takes up what was recorded earlier in it.
    pub(super) async fn open(
        root: PathBuf,
        run: Run,
        config: CoordinatorConfig,
        kept: Value,
        surroundings: Surroundings,
        max_recorded_bytes: usize,
    ) -> io::Result<Self> {
        let events: Vec<Event> = config
            .events
            .into_iter()
            .filter(|one| one.enabled)
            .collect();
        let ids: Vec<String> = events
            .iter()
            .map(|event| event.event_id.0.clone())
            .collect();
        let opened = tokio::task::spawn_blocking(move || {
            let opened = Files::open(&root, run, &kept)?;
            for id in &ids {
                event::close_abandoned(&opened.files.occurrence_path(id), opened.files.run())?;
            }
            Ok::<Opened, io::Error>(opened)
        });
        let opened = opened.await.map_err(io::Error::other)??;
        let mut waiting: Vec<Waiting> = events
            .into_iter()
            .map(|event| Waiting {
                watch: Watch::new(event.trigger.clone()),
                event,
            })
            .collect();
        for line in opened.earlier {
            let sequence = line.sequence;
            let call = record::recorded(line);
            for one in &mut waiting {
                one.watch.note(sequence, &call);
            }
        }
        let intervals = config.checkpoints.iter().filter_map(|one| match one {
            Checkpoint::Periodic { interval_seconds } => Some(interval_seconds.0),
            Checkpoint::ToolCall => None,
        });
        Ok(Self {
            files: opened.files,
            sequence: opened.sequence,
            started_at: opened.started_at,
            waiting,
            on_calls: config.checkpoints.contains(&Checkpoint::ToolCall),
            every: intervals.min(),
            actions: Arc::new(Actions::default()),
            surroundings,
            max_recorded_bytes,
        })
    }

    /// Works until it is stopped, or nobody can ask it for anything any more.
    pub(super) async fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        let mut ticks = self.every.map(|every| {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks
        });
        loop {
            let tick = async {
                match &mut ticks {
                    Some(ticks) => ticks.tick().await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                message = messages.recv() => message,
                _ = tick => {
                    self.look(&json!({"type": "periodic"})).await;
                    continue;
                }
            };
            match message {
                Some(Message::Call { call, done }) => {
                    self.call(&call).await;
                    // The caller gets its answer now, whatever the triggers find.
                    let _ = done.send(());
                    if self.on_calls {
                        let sequence = self.sequence;
                        self.look(&json!({"type": "tool_call", "sequence": sequence}))
                            .await;
                    }
                }
                Some(Message::Drain { limit, done }) => {
                    self.look(&json!({"type": "drain"})).await;
                    // Beside this task: the actions that it waits for call tools, which are recorded here.
                    let actions = self.actions.clone();
                    tokio::spawn(async move {
                        actions.end_within(limit).await;
                        let _ = done.send(());
                    });
                }
                Some(Message::Stop { grace, done }) => {
                    let actions = self.actions.clone();
                    let mut ending = std::pin::pin!(actions.end_within(grace));
                    loop {
                        tokio::select! {
                            () = &mut ending => break,
                            Some(message) = messages.recv() => self.while_stopping(message).await,
                            else => break,
                        }
                    }
                    let _ = done.send(());
                    return;
                }
                None => return self.actions.end_within(Duration::ZERO).await,
            }
        }
    }

    /// Calls of actions that end are recorded; nothing else is begun.
    async fn while_stopping(&mut self, message: Message) {
        match message {
            Message::Call { call, done } => {
                self.call(&call).await;
                let _ = done.send(());
            }
            Message::Drain { done, .. } | Message::Stop { done, .. } => {
                let _ = done.send(());
            }
        }
    }

    async fn call(&mut self, call: &ToolCall) {
        self.sequence += 1;
        let line = record::line(self.sequence, call, self.max_recorded_bytes);
        match self.files.record(&line).await {
            Ok(()) => tracing::info!(
                sequence = self.sequence,
                actor = call.actor,
                tool = call.tool,
                attribution = ?call.attribution,
                "a tool call is recorded"
            ),
            Err(error) => {
                tracing::error!(%error, tool = call.tool, "a tool call cannot be recorded");
            }
        }
        for one in &mut self.waiting {
            one.watch.note(self.sequence, call);
        }
    }

    /// Lets every event happen whose trigger holds.
    async fn look(&mut self, checkpoint: &Value) {
        let elapsed = jiff::Timestamp::now().duration_since(self.started_at);
        let elapsed = Duration::try_from(elapsed).unwrap_or_default();
        let mut happening = Vec::new();
        self.waiting.retain(|one| match one.watch.holds(elapsed) {
            Some(trigger) => {
                happening.push((one.event.clone(), trigger));
                false
            }
            None => true,
        });
        for (event, trigger) in happening {
            self.happen(event, trigger, checkpoint.clone()).await;
        }
    }

    async fn happen(&self, event: Event, trigger: Value, checkpoint: Value) {
        let id = event.event_id.0.clone();
        let path = self.files.occurrence_path(&id);
        let occurrence = Occurrence::new(path, self.files.run(), &id, &checkpoint, &trigger);
        match occurrence.claim().await {
            Ok(Some(occurrence)) => {
                tracing::info!(event = id, "an event of the coordinator happens");
                let cancel = self.actions.cancel_token();
                let acting = occurrence.run(event.actions, self.surroundings.clone(), cancel);
                self.actions.spawn(acting);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, event = id, "an event cannot be recorded, so it does not happen");
            }
        }
    }
}

/// The events whose actions are running.
struct Actions {
    running: watch::Sender<usize>,
    cancel: Mutex<CancellationToken>,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            running: watch::Sender::new(0),
            cancel: Mutex::default(),
        }
    }
}

impl Actions {
    fn cancel_token(&self) -> CancellationToken {
        self.cancel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn spawn(self: &Arc<Self>, acting: impl Future<Output = ()> + Send + 'static) {
        self.running.send_modify(|running| *running += 1);
        let actions = self.clone();
        tokio::spawn(async move {
            // A task of its own, so that a panic counts as an end.
            if let Err(error) = tokio::spawn(acting).await {
                tracing::error!(%error, "the actions of an event failed");
            }
            actions.running.send_modify(|running| *running -= 1);
        });
    }

    /// Waits until nothing is running; cancels what is, after `limit`.
    async fn end_within(&self, limit: Duration) {
        let mut running = self.running.subscribe();
        let ended = running.wait_for(|running| *running == 0);
        if tokio::time::timeout(limit, ended).await.is_ok() {
            return;
        }
        tracing::warn!("actions of the coordinator are cancelled");
        {
            let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
            cancel.cancel();
            // Events that happen later are not concerned.
            *cancel = CancellationToken::new();
        }
        let ended = running.wait_for(|running| *running == 0);
        if tokio::time::timeout(AFTER_CANCEL, ended).await.is_err() {
            tracing::error!("actions of the coordinator do not end");
        }
    }
}
