//! Asking the model.

use std::time::Duration;

use formats::chat::{Content, Message, Role, ToolCall, ToolDefinition};
use formats::event::EventKind;
use formats::owner::{Failure, Owner};
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, FinishReason, Hooks,
    RetryNotice, WaitNotice,
};

use tracing::Instrument;

use super::{Run, model_failure};
use crate::images::ImagePolicy;
use crate::spans;

/// A reply of the model, which has joined the conversation unless it was empty.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What it amounts to.
    pub kind: TurnKind,
    /// The text, empty for none.
    pub text: String,
    /// The tool calls in order, each with an id of its own.
    pub calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What the call cost in US dollars, where the price is known.
    pub cost_usd: Option<f64>,
    /// What the call used, if the provider says.
    pub usage: Option<formats::chat::Usage>,
}

/// What a reply amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    /// The model wants tools to be called.
    Calls,
    /// The model said something and was done.
    Text,
    /// Neither calls nor something that could be an answer.
    Unusable(Unusable),
}

/// Why a reply cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// Neither text nor calls.
    Empty,
    /// It ran into the limit of its length.
    CutOff,
    /// A filter withheld or cut it.
    Filtered,
    /// The model failed to write a call.
    MalformedCall,
}

impl Unusable {
    /// A stable word for files.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Empty => "empty_replies",
            Self::CutOff => "replies_cut_off",
            Self::Filtered => "content_filter",
            Self::MalformedCall => "malformed_calls",
        }
    }

    /// What happened, for the model and for people.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Empty => "the last reply had neither text nor tool calls",
            Self::CutOff => "the last reply was cut off at its length limit",
            Self::Filtered => "the last reply was withheld by a content filter",
            Self::MalformedCall => "the tool call in the last reply could not be read",
        }
    }
}

/// So many unusable replies in a row end a run (pitfall A8).
pub(crate) const MAX_UNUSABLE: u32 = 3;

impl Run {
    /// Sends the conversation to the model with `tools`; `limit` holds for each attempt. The reply
    /// joins the conversation.
    ///
    /// # Errors
    /// The [`ChatError`] that repeating could not mend.
    pub async fn ask(
        &mut self,
        tools: &[ToolDefinition],
        limit: Duration,
    ) -> Result<Turn, ChatError> {
        for call in self.conversation.open_calls().to_vec() {
            self.skip_call(&call, "Not called: the turn was left.");
        }
        self.flush_deferred();
        if let Some(between) = &self.between_steps {
            between.between_steps(self.recorder.next_seq()).await;
        }
        self.recorder.emit(EventKind::Request {
            messages: self.messages().len(),
            tools: tools.len(),
        });
        let fitting = self.fitting_pictures(tools).await?;
        let request = ChatRequest {
            messages: fitting.as_deref().unwrap_or(self.conversation.context()),
            tools,
            extra_args: &self.context.extra_args,
            timeout: limit,
            labels: CallLabels {
                trajectory_id: Some(&self.context.trajectory_id),
                ..CallLabels::default()
            },
        };
        let response = self.chat(request).await?;
        Ok(self.take_in(response))
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ChatError> {
        let span = spans::chat(&self.model);
        let tell_retry = |notice: RetryNotice<'_>| self.tell_retry(&notice);
        let tell_wait = |notice: WaitNotice| self.tell_wait(notice);
        let hooks = Hooks {
            on_retry: Some(&tell_retry),
            on_wait: Some(&tell_wait),
            ..Hooks::default()
        };
        let asking = Box::pin(self.model.chat_with(request, hooks));
        let outcome = asking.instrument(span.clone()).await;
        spans::chat_ended(&span, &outcome);
        outcome
    }

    /// The conversation with pictures as the provider takes them, where they have to be changed.
    async fn fitting_pictures(
        &mut self,
        tools: &[ToolDefinition],
    ) -> Result<Option<Vec<Message>>, ChatError> {
        if !ImagePolicy::applies_to(self.model.name()) {
            return Ok(None);
        }
        let work = self.pictures.plan(self.conversation.context(), tools);
        let work = work.map_err(|reason| ChatError {
            kind: ChatErrorKind::TooLarge,
            provider: self.model.provider().to_owned(),
            status: None,
            message: reason,
            retry_after: None,
            request_id: None,
            final_word: true,
        })?;
        let Some(work) = work else { return Ok(None) };
        if !work.is_done() {
            // Decoding and encoding take a while: not on a thread that serves others.
            let made = tokio::task::spawn_blocking({
                let work = work.clone();
                move || work.carry_out()
            });
            self.pictures.keep(made.await.unwrap_or_default());
        }
        Ok(Some(
            self.pictures.apply(&work, self.conversation.context()),
        ))
    }

    /// Asks the model something beside the conversation, without tools.
    pub(crate) async fn ask_aside(
        &self,
        messages: &[Message],
        limit: Duration,
    ) -> Result<ChatResponse, ChatError> {
        let request = ChatRequest {
            messages,
            tools: &[],
            extra_args: &self.context.extra_args,
            timeout: limit,
            labels: CallLabels::default(),
        };
        self.chat(request).await
    }

    fn tell_retry(&self, notice: &RetryNotice<'_>) {
        self.recorder.emit(EventKind::Retry {
            attempt: notice.attempt,
            wait_seconds: notice.wait.as_secs_f64(),
            failure: Failure::from(notice.error),
        });
    }

    fn tell_wait(&self, notice: WaitNotice) {
        self.recorder.emit(EventKind::Waited {
            seconds: notice.waited.as_secs_f64(),
            reason: notice.reason.as_str().to_owned(),
        });
    }

    fn take_in(&mut self, response: ChatResponse) -> Turn {
        let mut message = response.message;
        message.role = Role::Assistant;
        drop_blank_blocks(&mut message);
        for id in self.conversation.make_ids_distinct(&mut message) {
            self.warn(format!(
                "the call id `{id}` was used before; it was replaced"
            ));
        }
        self.usage.add(response.usage.as_ref(), &message);
        let kind = kind_of(&message, &response.finish_reason);
        let turn = Turn {
            kind,
            text: message.text().into_owned(),
            calls: message.tool_calls.clone(),
            finish_reason: response.finish_reason.clone(),
            cost_usd: response.cost_usd,
            usage: response.usage.clone(),
        };
        if let Some(text) = message.reasoning_content() {
            self.recorder.emit(EventKind::Reasoning {
                text: text.to_owned(),
            });
        }
        self.recorder.emit(EventKind::Response {
            message: message.clone(),
            finish_reason: response.finish_reason.as_str().to_owned(),
            usage: response.usage.clone(),
            cost_usd: response.cost_usd,
            duration: response.duration.as_secs_f64(),
        });
        let joins = !says_nothing(&message);
        if joins {
            self.join(message);
        }
        if let Some(usage) = &response.usage {
            // An empty reply is not sent back.
            let reply = if joins { usage.completion_tokens } else { 0 };
            self.size.reported(usage.prompt_tokens + reply);
        }
        self.unanswered = 0;
        if !matches!(kind, TurnKind::Unusable(_)) {
            self.unusable = 0;
        }
        turn
    }

    /// Decides about a model call that failed in spite of repetitions: one that timed out or brought
    /// no readable reply uses up its step, three of them in a row or anything else end the run. In
    /// the second case the model is asked to go on in the agent's words `request`.
    ///
    /// # Errors
    /// The failure that ends the run.
    pub fn survive(&mut self, error: &ChatError, request: &str) -> Result<(), Failure> {
        self.unanswered += 1;
        if self.unanswered >= MAX_UNUSABLE {
            return Err(model_failure(error));
        }
        match error.kind {
            ChatErrorKind::Timeout => {
                self.warn(format!("the step is used up: {error}"));
                Ok(())
            }
            ChatErrorKind::MalformedReply => {
                self.warn(format!("the step is used up: {error}"));
                self.say(Message::user(request));
                Ok(())
            }
            _ => Err(model_failure(error)),
        }
    }

    /// Asks the model to go on after an unusable reply, in the agent's words `request`.
    ///
    /// # Errors
    /// After three such replies in a row, the failure that ends the run.
    pub fn ask_to_continue(&mut self, why: Unusable, request: &str) -> Result<(), Failure> {
        self.unusable += 1;
        if self.unusable >= MAX_UNUSABLE {
            return Err(Failure::new(
                Owner::Model,
                why.kind(),
                format!(
                    "{MAX_UNUSABLE} replies in a row could not be used; {}",
                    why.reason()
                ),
            ));
        }
        self.warn(why.reason());
        self.say(Message::user(format!("Note: {}. {request}", why.reason())));
        Ok(())
    }
}

pub(crate) fn kind_of(message: &Message, finish_reason: &FinishReason) -> TurnKind {
    if !message.tool_calls.is_empty() {
        return TurnKind::Calls;
    }
    match finish_reason {
        FinishReason::MalformedCall => TurnKind::Unusable(Unusable::MalformedCall),
        FinishReason::ContentFilter => TurnKind::Unusable(Unusable::Filtered),
        FinishReason::Length => TurnKind::Unusable(Unusable::CutOff),
        _ if message.content.as_ref().is_none_or(Content::is_blank) => {
            TurnKind::Unusable(Unusable::Empty)
        }
        _ => TurnKind::Text,
    }
}

/// Takes blank texts out of a list of blocks: no provider takes them back (pitfall A8).
fn drop_blank_blocks(message: &mut Message) {
    if let Some(Content::Blocks(blocks)) = &mut message.content {
        blocks.retain(|block| block.as_text().is_none_or(|text| !text.trim().is_empty()));
        if blocks.is_empty() {
            message.content = None;
        }
    }
}

/// Whether a reply adds nothing to the conversation: no provider takes an assistant turn without
/// text and calls.
pub(crate) fn says_nothing(message: &Message) -> bool {
    message.tool_calls.is_empty() && message.content.as_ref().is_none_or(Content::is_blank)
}
