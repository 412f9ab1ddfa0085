//! Marks for the prompt cache (`spec/llm.md` §6.3, §18.5).

use std::borrow::Cow;

use serde_json::json;

use super::conversation::Conversation;
use super::tools::Tool;
use super::wire::{Mark, Part, ResultContent, Speaker};

/// Most marks of a request.
const MOST_MARKS: usize = 4;

/// A mark of ours: what comes before it is kept for five minutes.
fn own_mark() -> Mark<'static> {
    Some(Cow::Owned(json!({"type": "ephemeral", "ttl": "5m"})))
}

/// Marks the last tool, the system text and, with `last_message`, the last message, unless the caller
/// set marks of their own: marks of different lifetimes may not stand in any order.
pub(crate) fn mark(
    tools: &mut [Tool<'_>],
    conversation: &mut Conversation<'_>,
    last_message: bool,
) {
    let mut count = 0;
    each_mark(tools, conversation, &mut || {
        count += 1;
        true
    });
    if count > 0 {
        return;
    }
    if let Some(tool) = tools.last_mut() {
        tool.set_mark(own_mark());
    }
    if let Some(part) = conversation.system.last_mut() {
        part.set_mark(own_mark());
    }
    let last = conversation
        .turns
        .last_mut()
        // What the assistant began is gone on with, and differs next time.
        .filter(|turn| last_message && turn.role != Speaker::Assistant);
    if let Some(part) =
        last.and_then(|turn| turn.content.iter_mut().rfind(|part| part.takes_mark()))
    {
        part.set_mark(own_mark());
    }
}

/// Takes all marks away, for models without a prompt cache.
pub(crate) fn clear(tools: &mut [Tool<'_>], conversation: &mut Conversation<'_>) {
    each_mark(tools, conversation, &mut || false);
}

/// Takes away the first marks where there are more than Anthropic takes: a later one covers what
/// stands before an earlier one.
pub(crate) fn cap(tools: &mut [Tool<'_>], conversation: &mut Conversation<'_>) {
    let mut count = 0;
    each_mark(tools, conversation, &mut || {
        count += 1;
        true
    });
    let mut surplus = usize::saturating_sub(count, MOST_MARKS);
    if surplus == 0 {
        return;
    }
    tracing::warn!(
        marks = count,
        most = MOST_MARKS,
        "prompt-cache marks are left out"
    );
    each_mark(tools, conversation, &mut || {
        let keep = surplus == 0;
        surplus = surplus.saturating_sub(1);
        keep
    });
}

/// Visits all marks in the order of the cache; those for which `keep` is false go.
fn each_mark(
    tools: &mut [Tool<'_>],
    conversation: &mut Conversation<'_>,
    keep: &mut dyn FnMut() -> bool,
) {
    for tool in tools {
        if tool.has_mark() && !keep() {
            tool.set_mark(None);
        }
    }
    let turns = conversation
        .turns
        .iter_mut()
        .flat_map(|turn| &mut turn.content);
    for part in conversation.system.iter_mut().chain(turns) {
        if let Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } = part
        {
            for inner in parts {
                visit(inner, keep);
            }
        }
        visit(part, keep);
    }
}

fn visit(part: &mut Part<'_>, keep: &mut dyn FnMut() -> bool) {
    if part.mark().is_some() && !keep() {
        part.set_mark(None);
    }
}
