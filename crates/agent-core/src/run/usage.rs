//! Tokens of a run (`spec/agents.md` §15).

use formats::Object;
use formats::chat::{Content, Message, Usage};
use llm_client::tokens;
use serde::Serialize;
use serde_json::Value;

use crate::tools::image_tokens;

/// Sums over the calls of a run and a log of each.
#[derive(Debug, Default)]
pub(crate) struct UsageTally {
    totals: Totals,
    call_log: Vec<CallEntry>,
    compactions_before: u64,
    summaries: Summaries,
    /// Keys of the agent's own, such as budgets.
    own: Object,
    subagents: Vec<Value>,
}

#[derive(Debug, Default, Clone, Serialize)]
struct Totals {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    final_answer_tokens: u64,
    max_prompt_tokens: u64,
    compaction_count: u64,
    reasoning_tokens: u64,
    cached_tokens: u64,
    cache_creation_tokens: u64,
}

/// What summarising used; not part of the totals, which the reference defines without it.
#[derive(Debug, Default, Clone, Serialize)]
struct Summaries {
    compaction_calls: u64,
    compaction_prompt_tokens: u64,
    compaction_completion_tokens: u64,
}

#[derive(Debug, Default, Clone, Serialize)]
struct CallEntry {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_tokens: u64,
    cache_creation_tokens: u64,
    user_output_tokens: u64,
    reasoning_summary_tokens: u64,
    tool_call_input_tokens: u64,
    tool_call_output_tokens: u64,
    tool_call_output_image_tokens: u64,
    tool_call_output_image_count: u64,
    final_answer_tokens: u64,
    image_tokens: u64,
    marginal_input_tokens: u64,
    compactions_before: u64,
    compacted: bool,
}

impl UsageTally {
    /// Counts a call; one whose usage is not known is not counted.
    pub(crate) fn add(&mut self, usage: Option<&Usage>, message: &Message) {
        let Some(usage) = usage else { return };
        let user_output_tokens = tokens::of_text(&message.text());
        let tool_call_input_tokens = message
            .tool_calls
            .iter()
            .map(|call| {
                tokens::of_text(&call.function.name) + tokens::of_text(&call.function.arguments)
            })
            .sum();
        let reasoning_tokens = match usage.reasoning_tokens() {
            0 => tokens::of_text(&thinking(message)).min(
                usage
                    .completion_tokens
                    .saturating_sub(user_output_tokens)
                    .saturating_sub(tool_call_input_tokens),
            ),
            reported => reported,
        };
        let previous = self.call_log.last().map_or(0, |entry| entry.prompt_tokens);
        let entry = CallEntry {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.prompt_tokens + usage.completion_tokens,
            reasoning_tokens,
            cached_tokens: usage.cached_tokens(),
            cache_creation_tokens: usage.cache_creation_tokens(),
            user_output_tokens,
            reasoning_summary_tokens: message.reasoning_content().map_or(0, tokens::of_text),
            tool_call_input_tokens,
            image_tokens: usage.image_tokens(),
            marginal_input_tokens: usage.prompt_tokens.saturating_sub(previous),
            compactions_before: self.compactions_before,
            compacted: self.compactions_before > 0,
            ..CallEntry::default()
        };
        self.compactions_before = 0;
        let totals = &mut self.totals;
        totals.prompt_tokens += entry.prompt_tokens;
        totals.completion_tokens += entry.completion_tokens;
        totals.total_tokens += entry.total_tokens;
        totals.final_answer_tokens = entry.completion_tokens;
        totals.max_prompt_tokens = totals.max_prompt_tokens.max(entry.prompt_tokens);
        totals.reasoning_tokens += entry.reasoning_tokens;
        totals.cached_tokens += entry.cached_tokens;
        totals.cache_creation_tokens += entry.cache_creation_tokens;
        self.call_log.push(entry);
    }

    /// Counts the text of a tool message towards the last call.
    pub(crate) fn add_tool_text(&mut self, message: &Message) {
        if let Some(entry) = self.call_log.last_mut() {
            entry.tool_call_output_tokens += tokens::of_text(&message.text());
        }
    }

    /// Counts the pictures of a message that a step added towards the last call.
    pub(crate) fn add_pictures(&mut self, message: &Message, provider: &str, model: &str) {
        let (Some(entry), Some(Content::Blocks(blocks))) =
            (self.call_log.last_mut(), &message.content)
        else {
            return;
        };
        for url in blocks.iter().filter_map(formats::chat::Block::as_image_url) {
            entry.tool_call_output_image_count += 1;
            entry.tool_call_output_image_tokens += image_tokens(url, provider, model);
        }
    }

    /// The last call gave the answer.
    pub(crate) fn add_answer(&mut self, answer: &str) {
        if let Some(entry) = self.call_log.last_mut() {
            entry.final_answer_tokens = tokens::of_text(answer);
        }
    }

    /// The conversation was shortened, or the attempt failed (`shortened` false).
    pub(crate) fn add_summary(&mut self, usage: Option<&Usage>, shortened: bool) {
        self.summaries.compaction_calls += 1;
        if let Some(usage) = usage {
            self.summaries.compaction_prompt_tokens += usage.prompt_tokens;
            self.summaries.compaction_completion_tokens += usage.completion_tokens;
        }
        if shortened {
            self.totals.compaction_count += 1;
            self.compactions_before += 1;
        }
    }

    /// Prompt and completion tokens of all calls.
    pub(crate) fn spent(&self) -> u64 {
        self.totals.total_tokens
    }

    /// Keeps what a subagent used; it is no part of the totals.
    pub(crate) fn add_subagent(&mut self, account: Value) {
        self.subagents.push(account);
    }

    /// Sets a key of the agent's own.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.own.insert(key.to_owned(), value);
    }

    /// The `usage` object of the trajectory.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = object_of(&self.totals);
        if self.summaries.compaction_calls > 0 {
            object.extend(object_of(&self.summaries));
        }
        let log = self.call_log.iter().map(object_of).map(Value::Object);
        object.insert("call_log".to_owned(), log.collect());
        object.extend(self.own.clone());
        if !self.subagents.is_empty() {
            object.insert("subagents".to_owned(), self.subagents.clone().into());
        }
        object
    }
}

/// The thinking of a message in words: its thinking blocks, else its reasoning content.
fn thinking(message: &Message) -> String {
    let blocks = message
        .extra
        .get("thinking_blocks")
        .and_then(Value::as_array);
    let from_blocks: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("thinking")?.as_str())
        .collect();
    if from_blocks.is_empty() {
        message.reasoning_content().unwrap_or_default().to_owned()
    } else {
        from_blocks.join("\n")
    }
}

/// Plain structs of numbers always are objects.
fn object_of<T: Serialize>(value: &T) -> Object {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Object::new(),
    }
}
