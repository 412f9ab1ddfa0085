//! Shortening a conversation that fills the model's context (`spec/agents.md` §13).
//!
//! The model itself summarises what is older; the newest messages follow as text. The system
//! messages and the task, the first user message, stay as they are. Everything is bounded by shares
//! of the context, so that neither the request for a summary nor its outcome can overflow it.

mod text;

use std::time::Duration;

use formats::chat::{Message, Role};
use formats::owner::{Failure, Owner};
use llm_client::{ChatError, ChatErrorKind, tokens};

use crate::run::{Run, is_instruction, model_failure};
use text::Allowance;

/// Summarising is due when the conversation is longer than this and
const KEEP_RECENT: usize = 10;
/// fills more than this share of the context.
const TRIGGER_PERCENT: u64 = 70;

/// Shares of the context, in percent: the conversation in the request for a summary, the summary,
/// the newest messages.
const REQUEST_PERCENT: u64 = 50;
const SUMMARY_PERCENT: u64 = 10;
const RECENT_PERCENT: u64 = 15;

/// How often a summary is asked for with half as much text when the request does not fit.
const HALVINGS: u32 = 3;

/// Limit of one attempt of the request.
const TIMEOUT: Duration = Duration::from_secs(300);

const SYSTEM: &str =
    "You summarise the work of an AI agent so that it can go on without the original conversation.";

const INSTRUCTIONS: &str = "Write a compact account of the state of this work, under these headings:\n\
    1. Task and goal\n\
    2. Progress: actions, their key results, discoveries\n\
    3. Current state and next steps\n\
    4. Key details: paths, names, values, exact error texts, addresses, ids, configuration\n\
    Be specific: what you leave out is lost.";

const SUMMARY_HEADING: &str = "# Summary of the work so far";
const RECENT_HEADING: &str = "# Latest activity";
const BETWEEN: &str = "\n\n---\n\n";
const GO_ON: &str = "Continue from this state. Do not repeat what is done.";

/// Shortens the conversation of one run, as often as needed.
pub(crate) struct Compactor {
    context_tokens: u64,
    /// Outcome of the last time.
    former: Option<Former>,
}

struct Former {
    summary: String,
    /// The newest messages of then, as text: at the next time they are old.
    recent: String,
}

impl Former {
    /// What stands for the conversation up to here.
    fn message(&self) -> Message {
        let Self { summary, recent } = self;
        Message::user(format!(
            "{SUMMARY_HEADING}\n\n{summary}{BETWEEN}{RECENT_HEADING}\n\n{recent}{BETWEEN}{GO_ON}"
        ))
    }

    /// The reverse of [`Former::message`].
    fn read(message: &Message) -> Option<Self> {
        let text = message.text();
        let text = text.strip_prefix(SUMMARY_HEADING)?.strip_prefix("\n\n")?;
        let text = text.strip_suffix(GO_ON)?.strip_suffix(BETWEEN)?;
        let (summary, recent) = text.split_once(&format!("{BETWEEN}{RECENT_HEADING}\n\n"))?;
        Some(Self {
            summary: summary.to_owned(),
            recent: recent.to_owned(),
        })
    }
}

impl Compactor {
    /// The compactor of a run that goes on: what it made of the conversation last stands there.
    pub(crate) fn of(context_tokens: u64, run: &Run) -> Self {
        Self {
            context_tokens,
            former: run.conversation.stand_in().and_then(Former::read),
        }
    }

    const fn share(&self, percent: u64) -> u64 {
        self.context_tokens / 100 * percent
    }

    /// Whether the context is filling up.
    pub(crate) fn is_due(&self, run: &Run) -> bool {
        if run.context_tokens() <= self.share(TRIGGER_PERCENT) {
            return false;
        }
        let spoken = run.messages().iter().filter(|m| !is_instruction(m));
        spoken.count() > KEEP_RECENT
    }

    /// Shortens the conversation; tells whether it got shorter. The conversation stays as it is
    /// unless everything went well.
    pub(crate) async fn compact(&mut self, run: &mut Run) -> Result<bool, Failure> {
        let (kept, fresh) = run.conversation.split_for_summary();
        // At least half is summarised, also of a short conversation with large messages.
        let mut cut = fresh.len() - KEEP_RECENT.min(fresh.len() / 2);
        while cut > 0 && fresh.get(cut).is_some_and(|m| m.role == Role::Tool) {
            cut -= 1;
        }
        let (old, recent) = fresh.split_at(cut);
        if old.is_empty() {
            return Ok(false);
        }
        let recent = text::of(recent, Allowance::RECENT, self.share(RECENT_PERCENT));
        let kept: Vec<Message> = kept.into_iter().cloned().collect();
        let (summary, usage) = match self.summarise(run, old).await {
            Ok(summary) => summary,
            Err(failure) => {
                run.usage.add_summary(None, false);
                return Err(failure);
            }
        };
        let mut context = kept;
        let former = Former { summary, recent };
        context.push(former.message());
        self.former = Some(former);
        let before = run.context_tokens();
        run.replace_context(context, usage.clone());
        let shorter = run.context_tokens() < before;
        run.usage.add_summary(usage.as_ref(), shorter);
        Ok(shorter)
    }

    async fn summarise(
        &self,
        run: &Run,
        old: &[Message],
    ) -> Result<(String, Option<formats::chat::Usage>), Failure> {
        let mut budget = self.share(REQUEST_PERCENT);
        for _ in 0..HALVINGS {
            let request = [
                Message::system(SYSTEM),
                Message::user(self.request_text(old, budget)),
            ];
            match run.ask_aside(&request, TIMEOUT).await {
                Ok(reply) => {
                    let summary = reply.message.text();
                    let summary = text::cut_to_tokens(summary.trim(), self.share(SUMMARY_PERCENT));
                    if summary.is_empty() {
                        return Err(empty_summary());
                    }
                    return Ok((summary, reply.usage));
                }
                Err(error) if error.kind == ChatErrorKind::ContextWindow => budget /= 2,
                Err(error) => return Err(failed(&error)),
            }
        }
        Err(Failure::new(
            Owner::Model,
            ChatErrorKind::ContextWindow.as_str(),
            "not even a part of the conversation fits into a request for a summary",
        ))
    }

    fn request_text(&self, old: &[Message], budget: u64) -> String {
        let mut parts = Vec::new();
        let mut left = budget;
        if let Some(former) = &self.former {
            let summary = format!("{SUMMARY_HEADING}\n\n{}", former.summary);
            let recent = text::cut_to_tokens(&former.recent, budget / 4);
            left = left
                .saturating_sub(tokens::of_text(&summary))
                .saturating_sub(tokens::of_text(&recent));
            parts.push(summary);
            parts.push(format!("# Activity since then\n\n{recent}"));
        }
        parts.push(text::of(old, Allowance::OLD, left.max(budget / 4)));
        let conversation = parts.join("\n\n");
        format!("<conversation>\n{conversation}\n</conversation>\n\n{INSTRUCTIONS}")
    }
}

fn failed(error: &ChatError) -> Failure {
    let failure = model_failure(error);
    Failure {
        message: format!("the summary failed: {}", failure.message),
        ..failure
    }
}

fn empty_summary() -> Failure {
    Failure::new(
        Owner::Model,
        "empty_summary",
        "the model gave an empty summary",
    )
}

#[cfg(test)]
mod tests {
    use formats::chat::ToolCall;
    use proptest::prelude::*;

    use super::*;

    /// What headings, marks and instructions take.
    const AROUND: u64 = 300;

    fn message() -> impl Strategy<Value = Message> {
        (0..4usize, 0..30_000usize, 0..3usize).prop_map(|(kind, length, calls)| {
            let text = "wörd ".repeat(length / 5);
            match kind {
                0 => Message::user(text),
                1 | 2 => Message::tool("c", "read", text),
                _ => {
                    let mut message = Message::assistant(text);
                    message.tool_calls = (0..calls)
                        .map(|_| ToolCall::new("c", "write", "x".repeat(length)))
                        .collect();
                    message
                }
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever the messages are: neither what is asked for a summary nor what takes the place
        /// of the conversation takes more than its share, also when there was a summary before.
        #[test]
        fn compaction_never_overflows(
            old in prop::collection::vec(message(), 0..40),
            recent in prop::collection::vec(message(), 0..15),
            reply in 0..200_000usize,
            context_tokens in prop::sample::select(vec![1_000u64, 8_000, 128_000, 1_000_000]),
        ) {
            let mut compactor = Compactor { context_tokens, former: None };
            for _ in 0..2 {
                let budget = compactor.share(REQUEST_PERCENT);
                let asked = compactor.request_text(&old, budget);
                prop_assert!(tokens::of_text(&asked) <= budget + AROUND);
                let summary = "fact ".repeat(reply / 5);
                let former = Former {
                    summary: text::cut_to_tokens(&summary, compactor.share(SUMMARY_PERCENT)),
                    recent: text::of(&recent, Allowance::RECENT, compactor.share(RECENT_PERCENT)),
                };
                let size = tokens::of_message(&former.message());
                let share = compactor.share(SUMMARY_PERCENT + RECENT_PERCENT);
                prop_assert!(size <= share + AROUND, "{size} of {share}");
                compactor.former = Some(former);
            }
        }
    }

    #[test]
    fn what_stands_for_the_conversation_can_be_read_back() {
        let former = Former {
            summary: "It is at /a.\n\n---\n\nAnd more.".to_owned(),
            recent: "**USER**\ngo".to_owned(),
        };
        let read = Former::read(&former.message()).unwrap();
        assert_eq!((read.summary, read.recent), (former.summary, former.recent));
        assert!(Former::read(&Message::user("go")).is_none());
    }
}
