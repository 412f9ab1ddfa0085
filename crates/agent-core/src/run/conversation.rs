//! The conversation of a run: what the model sees, and the whole record.

use std::collections::HashSet;

use formats::chat::{Block, Content, KnownBlock, Message, Role, ToolCall};

/// Messages in order. What the model sees (`context`) is kept as one list, so that a request
/// borrows it without a copy; what was summarised away is kept for the record.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// What is no longer in the context, in order.
    archive: Vec<Message>,
    /// What the model sees.
    context: Vec<Message>,
    /// How many messages at the head of the context stand for the archive and are not part of the
    /// record themselves.
    standing_in: usize,
    /// Calls of the last assistant turn that have no answer yet, in order.
    open_calls: Vec<ToolCall>,
    /// Calls of that turn that were begun, by their ids, in the order in which they were.
    begun: Vec<String>,
    /// Every call id so far.
    ids: HashSet<String>,
}

impl Conversation {
    pub(crate) fn new(initial: Vec<Message>) -> Self {
        let ids = initial
            .iter()
            .flat_map(|message| &message.tool_calls)
            .map(|call| call.id.clone())
            .collect();
        Self {
            context: initial,
            ids,
            ..Self::default()
        }
    }

    /// What the model sees.
    pub(crate) fn context(&self) -> &[Message] {
        &self.context
    }

    /// A call of the turn begins. One that was begun before keeps its place.
    pub(crate) fn begin(&mut self, call_id: &str) {
        if !self.has_begun(call_id) {
            self.begun.push(call_id.to_owned());
        }
    }

    /// Whether a call of the turn was begun.
    pub(crate) fn has_begun(&self, call_id: &str) -> bool {
        self.begun.iter().any(|known| known == call_id)
    }

    /// Adds a message. Results of calls that ran side by side stand in the order in which the calls
    /// were begun, whenever they come.
    pub(crate) fn push(&mut self, message: Message) {
        let mut place = self.context.len();
        match message.role {
            Role::Assistant => {
                self.open_calls.clone_from(&message.tool_calls);
                let ids = message.tool_calls.iter().map(|call| call.id.clone());
                self.ids.extend(ids);
                self.begun.clear();
            }
            Role::Tool => {
                self.open_calls
                    .retain(|call| Some(&call.id) != message.tool_call_id.as_ref());
                let own = self.began_as(&message);
                let later = self.context.iter().rev().take_while(|before| {
                    before.role == Role::Tool && own.is_some() && self.began_as(before) > own
                });
                place -= later.count();
            }
            _ => {}
        }
        self.context.insert(place, message);
    }

    /// The place of the call that a message answers among those that were begun.
    pub(crate) fn began_as(&self, answer: &Message) -> Option<usize> {
        let id = answer.tool_call_id.as_ref()?;
        self.begun.iter().position(|known| known == id)
    }

    /// Gives every call of `message` an id of its own in the whole run (pitfall A6). Returns the
    /// ids that were taken before.
    pub(crate) fn make_ids_distinct(&mut self, message: &mut Message) -> Vec<String> {
        let mut taken = Vec::new();
        for call in &mut message.tool_calls {
            if call.id.is_empty() || self.ids.contains(&call.id) {
                let mut number = self.ids.len() + 1;
                let mut id = format!("call_{number}");
                while self.ids.contains(&id) {
                    number += 1;
                    id = format!("call_{number}");
                }
                let former = std::mem::replace(&mut call.id, id);
                if !former.is_empty() {
                    taken.push(former);
                }
            }
            self.ids.insert(call.id.clone());
        }
        taken
    }

    /// Calls without an answer, in order.
    pub(crate) fn open_calls(&self) -> &[ToolCall] {
        &self.open_calls
    }

    /// Answers every open call for a record that ends here. Events say nothing of it: a run that
    /// goes on later still makes the calls.
    pub(crate) fn close_calls(&mut self) {
        for call in std::mem::take(&mut self.open_calls) {
            let words = "No result: the process ended during the run.";
            self.push(Message::tool(&call.id, &call.function.name, words));
        }
    }

    /// What stays as it is when the conversation is summarised (system messages and the task, which
    /// is the first user message), and what is new since the last time.
    pub(crate) fn split_for_summary(&self) -> (Vec<&Message>, &[Message]) {
        let task = self.context.iter().position(|m| m.role == Role::User);
        let kept = self
            .context
            .iter()
            .enumerate()
            .filter(|(index, m)| is_instruction(m) || Some(*index) == task)
            .map(|(_, message)| message)
            .collect();
        let head = self
            .context
            .iter()
            .take_while(|m| is_instruction(m))
            .count();
        let after_task = match task {
            Some(index) if index == head => head + 1,
            _ => head,
        };
        let fresh = after_task.max(self.standing_in);
        (kept, self.context.get(fresh..).unwrap_or_default())
    }

    /// Puts `context` in the place of what the model sees; what it saw becomes part of the record.
    /// The new context stands for the record, it is not a part of it.
    pub(crate) fn replace_context(&mut self, context: Vec<Message>) {
        let former = std::mem::replace(&mut self.context, context);
        self.archive
            .extend(former.into_iter().skip(self.standing_in));
        self.standing_in = self.context.len();
    }

    /// Everything that was said and done, in order, without what only stands for it.
    pub(crate) fn record(&self) -> impl Iterator<Item = &Message> {
        let present = self.context.iter().skip(self.standing_in);
        self.archive.iter().chain(present)
    }

    /// The message that stands for what was summarised away, if something was.
    pub(crate) fn stand_in(&self) -> Option<&Message> {
        self.context.get(self.standing_in.checked_sub(1)?)
    }

    /// The whole record, pictures in tool messages left out (`spec/agents.md` §4.5).
    pub(crate) fn into_record(self) -> Vec<Message> {
        let mut messages = self.archive;
        messages.extend(self.context.into_iter().skip(self.standing_in));
        for message in &mut messages {
            elide_pictures(message);
        }
        messages
    }
}

/// Whether a message is the operator's, not part of what is spoken.
pub(crate) fn is_instruction(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// In a tool message, replaces every part that is not text by words; pictures in user messages
/// stay, since deferred pictures are there.
pub(crate) fn elide_pictures(message: &mut Message) {
    if message.role != Role::Tool {
        return;
    }
    let Some(Content::Blocks(blocks)) = &mut message.content else {
        return;
    };
    for block in blocks {
        let kind = match block {
            Block::Known(KnownBlock::Text { .. }) => continue,
            Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
                match image_url
                    .url
                    .strip_prefix("data:")
                    .and_then(|url| url.split_once([';', ',']))
                {
                    Some((media_type, _)) => format!("image_url, {media_type}"),
                    None => "image_url".to_owned(),
                }
            }
            Block::Other(value) => match value.get("type").and_then(serde_json::Value::as_str) {
                Some(kind) => kind.to_owned(),
                None => continue,
            },
            _ => continue,
        };
        *block = Block::text(format!("[{kind}: content left out of this record]"));
    }
}
