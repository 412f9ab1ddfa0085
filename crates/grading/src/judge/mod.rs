//! Asking a judge model for a verdict of a given shape (`spec/grading.md` §5.9, §9).

pub(crate) mod context;
pub(crate) mod prompts;
pub(crate) mod reply;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use formats::Object;
use formats::chat::{Content, Message};
use formats::grades::JudgeUsage;
use formats::task::GradingSettings;
use llm_client::{CallLabels, ChatErrorKind, ChatRequest, ChatResponse, Model, Models};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::error::{ErrorKind, EvalError};
use crate::input::GradeOptions;

/// Keys of a call that extra arguments must not replace (§9.2).
const RESERVED: [&str; 5] = ["model", "messages", "tools", "stream", "stream_options"];

/// Characters of a reply that are kept in a result and sent back with a correction.
const KEPT_REPLY_CHARS: usize = 20_000;

/// The judge model with the settings of one grading run. Cloning is cheap.
#[derive(Clone)]
pub struct Judge {
    model: Model,
    extra_args: Arc<Object>,
    /// The system prompt that replaces the built-in one of the `output_llm` family.
    pub(crate) system_prompt: Option<Arc<str>>,
    trajectory_id: Arc<str>,
    slots: Arc<Semaphore>,
    attempts: u32,
    timeout: Duration,
    meter: Arc<Mutex<JudgeUsage>>,
}

/// What the judge is shown.
#[derive(Debug, Clone)]
pub struct Question {
    /// Role and rules.
    pub system: String,
    /// The case: text, or text and pictures.
    pub user: Content,
}

/// The shape that an answer must have.
#[derive(Debug, Clone)]
pub struct Shape {
    /// A name for the provider: letters, digits, underscores.
    pub name: &'static str,
    /// JSON Schema of the answer; an object with all properties required.
    pub schema: Value,
}

impl Judge {
    /// The judge that `settings` name.
    pub(crate) fn resolve(
        settings: Option<&GradingSettings>,
        models: &Models,
        trajectory_id: &str,
        options: &GradeOptions,
    ) -> Result<Self, EvalError> {
        let settings = settings.ok_or_else(|| {
            EvalError::config("no judge is set: the grading settings lack `llm_judge_model`")
        })?;
        let extra_args = extra_args(settings);
        let model = models
            .resolve(&settings.llm_judge_model, &extra_args)
            .map_err(|error| EvalError::from(&error))?;
        let system_prompt = settings
            .llm_judge_system_prompt
            .as_deref()
            .filter(|prompt| !prompt.is_empty())
            .map(Arc::from);
        Ok(Self::new(model, extra_args, trajectory_id, options).with_system_prompt(system_prompt))
    }

    fn new(model: Model, extra_args: Object, trajectory_id: &str, options: &GradeOptions) -> Self {
        Self {
            model,
            extra_args: Arc::new(extra_args),
            system_prompt: None,
            trajectory_id: Arc::from(trajectory_id),
            slots: Arc::clone(&options.judge_slots),
            attempts: options.judge_attempts.max(1),
            timeout: options.judge_timeout,
            meter: Arc::default(),
        }
    }

    fn with_system_prompt(mut self, prompt: Option<Arc<str>>) -> Self {
        self.system_prompt = prompt;
        self
    }

    /// The same judge with a meter of its own.
    pub(crate) fn metered(&self) -> Self {
        Self {
            meter: Arc::default(),
            ..self.clone()
        }
    }

    /// What was used since the judge got its meter.
    pub(crate) fn usage(&self) -> JudgeUsage {
        *self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The judge's full name, `provider/model`.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// Asks `question` until `read` accepts the reply, at most as often as the options say.
    ///
    /// A reply that cannot be read is sent back with the reason. The provider is asked for an
    /// answer of `shape`; one that cannot enforce shapes is asked without.
    ///
    /// # Errors
    /// [`ErrorKind::JudgeOutput`] with all raw replies in the values where none could be read;
    /// the kinds of [`llm_client::ChatError`] where the call itself failed.
    pub async fn ask<T>(
        &self,
        question: Question,
        shape: &Shape,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, EvalError> {
        let opening = [
            Message::system(question.system),
            text_or_blocks(question.user),
        ];
        let mut messages = opening.to_vec();
        let mut extra_args = (*self.extra_args).clone();
        extra_args
            .entry("response_format")
            .or_insert_with(|| response_format(shape));
        let mut unread = Vec::new();
        for _ in 0..self.attempts {
            let response = self.call(&messages, &mut extra_args).await?;
            let text = response.message.text().into_owned();
            let problem = match read(&text) {
                Ok(answer) => return Ok(answer),
                Err(problem) => problem,
            };
            tracing::warn!(judge = self.model_name(), %problem, "unreadable reply of the judge");
            messages = correction(&opening, &text, &problem);
            unread.push(json!({
                "problem": problem,
                "finish_reason": response.finish_reason.as_str(),
                "reply": beginning(&text, KEPT_REPLY_CHARS),
            }));
        }
        let last = unread
            .last()
            .and_then(|reply| reply["problem"].as_str())
            .unwrap_or_default();
        let message = format!(
            "the judge gave no verdict that can be read in {} attempts; the last time: {last}",
            unread.len()
        );
        Err(EvalError::new(ErrorKind::JudgeOutput, message).with_value("judge_replies", unread))
    }

    /// One call. Where the provider refuses the response format, the call is made again without.
    async fn call(
        &self,
        messages: &[Message],
        extra_args: &mut Object,
    ) -> Result<ChatResponse, EvalError> {
        loop {
            let _slot = self.slots.acquire().await.map_err(|_| {
                EvalError::new(ErrorKind::Cancelled, "the judge takes no more calls")
            })?;
            let request = ChatRequest {
                messages,
                tools: &[],
                extra_args,
                timeout: self.timeout,
                labels: CallLabels {
                    trajectory_id: Some(&self.trajectory_id),
                    service: Some("grading"),
                    ..CallLabels::default()
                },
            };
            match Box::pin(self.model.chat(request, &|_| {})).await {
                Ok(response) => {
                    self.account(&response);
                    return Ok(response);
                }
                Err(error)
                    if error.kind == ChatErrorKind::UnsupportedParameter
                        && extra_args.shift_remove("response_format").is_some() =>
                {
                    tracing::info!(judge = self.model_name(), "asked without a response format");
                }
                Err(error) => return Err(EvalError::from(&error)),
            }
        }
    }

    fn account(&self, response: &ChatResponse) {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.calls += 1;
        if let Some(usage) = &response.usage {
            meter.prompt_tokens += usage.prompt_tokens;
            meter.completion_tokens += usage.completion_tokens;
        }
        match response.cost_usd {
            Some(cost) => meter.cost_usd += cost,
            None => meter.unpriced_calls += 1,
        }
    }
}

/// The extra arguments of every judge call, without those that the call itself decides.
pub(crate) fn extra_args(settings: &GradingSettings) -> Object {
    let mut extra_args = settings.llm_judge_extra_args.clone().unwrap_or_default();
    for key in RESERVED {
        if extra_args.shift_remove(key).is_some() {
            tracing::warn!(key, "ignored in `llm_judge_extra_args`");
        }
    }
    extra_args
}

/// The sum of two accounts.
pub(crate) fn sum(a: JudgeUsage, b: JudgeUsage) -> JudgeUsage {
    JudgeUsage {
        calls: a.calls + b.calls,
        prompt_tokens: a.prompt_tokens + b.prompt_tokens,
        completion_tokens: a.completion_tokens + b.completion_tokens,
        cost_usd: a.cost_usd + b.cost_usd,
        unpriced_calls: a.unpriced_calls + b.unpriced_calls,
    }
}

fn text_or_blocks(content: Content) -> Message {
    let mut message = Message::user("");
    message.content = Some(content);
    message
}

fn response_format(shape: &Shape) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": { "name": shape.name, "schema": shape.schema, "strict": true },
    })
}

/// The conversation with the unreadable reply and what is wrong with it.
fn correction(opening: &[Message], reply: &str, problem: &str) -> Vec<Message> {
    let mut messages = opening.to_vec();
    if reply.trim().is_empty() {
        // There is nothing to correct; an empty assistant message is refused by some providers.
        return messages;
    }
    messages.push(Message::assistant(beginning(reply, KEPT_REPLY_CHARS)));
    messages.push(Message::user(format!(
        "This reply cannot be used: {problem}. Answer again with nothing but the JSON object that was asked for."
    )));
    messages
}

/// At most `limit` characters of `text`.
fn beginning(text: &str, limit: usize) -> &str {
    text.char_indices()
        .nth(limit)
        .map_or(text, |(end, _)| &text[..end])
}
