//! Judge models: asking for a verdict, reading the reply, counting votes.
//!
//! A [`Judge`] is one model or a panel, each with a number of votes. It is shown a [`Question`]
//! and gives a [`Ruling`], or a [`JudgeError`] that says whose fault it is. Replies are read by
//! [`reply`], which takes nothing that says two things; texts of prompts stand in [`PromptSet`]s
//! with a version and a hash; [`Context`] says how much of the material a model can read.

mod ballot;
mod cache;
mod context;
mod error;
mod member;
mod meter;
mod options;
mod prompts;
pub mod reply;
mod settings;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use formats::Object;
use formats::chat::{Content, Message, ToolDefinition};
use formats::grades::JudgeUsage;
use formats::task::GradingSettings;
use llm_client::{CallLabels, ChatErrorKind, ChatRequest, ChatResponse, Models};
use serde_json::{Value, json};

pub use self::settings::{SettingsProblem, check_settings};
pub use ballot::{Decision, Opinion, Ruling, agreement};
pub use context::{Allocation, Context, Need, PICTURE, bounded, head_and_tail};
pub use error::{JudgeError, JudgeErrorKind};
pub use meter::sum;
pub use options::JudgeOptions;
pub use prompts::{PromptSet, marker_code};
pub use tools::{Tools, VerdictTool};

use self::ballot::{Vote, count};
use self::cache::{Cache, Key};
use self::member::Member;
use self::meter::{Budget, Meter};

/// Characters of a reply that are kept in a result and sent back with a correction.
const KEPT_REPLY_CHARS: usize = 20_000;

/// Most votes of one judge on one question.
pub(crate) const MAX_VOTES: u32 = 25;

/// The judge models with the settings of one grading run. Cloning is cheap.
#[derive(Clone)]
pub struct Judge {
    /// The judge that the settings name first, and the others of the panel.
    members: Arc<[Member]>,
    /// How often each is asked.
    votes: u32,
    settings: Arc<JudgeSettings>,
    trajectory_id: Arc<str>,
    attempts: u32,
    timeout: Duration,
    cache: Option<Arc<Cache>>,
    budget: Arc<Budget>,
    meter: Arc<Meter>,
}

/// What the grading settings say about verdicts.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct JudgeSettings {
    /// The system prompt that replaces the built-in one of the `output_llm` family.
    pub system_prompt: Option<String>,
    /// Whether a judge may say that it cannot tell.
    pub cannot_assess: bool,
    /// Whether negative criteria are judged.
    pub negative_criteria: bool,
}

/// What the judge is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// Role and rules.
    pub system: String,
    /// The case: text, or text and pictures.
    pub user: Content,
    /// The code of the markers in the texts, drawn for this question; empty without markers. It
    /// makes no difference to the cache of answers.
    pub code: String,
    /// The temperature where the settings say nothing of arguments at all.
    pub temperature: Option<f64>,
    /// Arguments of the call in place of those of the settings, where a kind of check has its own.
    pub arguments: Option<Object>,
    /// How often the judge is asked at most, where a kind of check has its own number.
    pub attempts: Option<u32>,
}

impl Question {
    /// A question without markers.
    pub fn new(system: impl Into<String>, user: impl Into<Content>) -> Self {
        Self {
            system: system.into(),
            user: user.into(),
            code: String::new(),
            temperature: None,
            arguments: None,
            attempts: None,
        }
    }

    /// The same question, whose markers have this code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }
}

/// The shape that an answer must have.
#[derive(Debug, Clone)]
pub struct Shape {
    /// A name for the provider: letters, digits, underscores.
    pub name: &'static str,
    /// JSON Schema of the answer; an object with all properties required. `null` asks for none.
    pub schema: Value,
}

impl Shape {
    /// An answer that is described in the prompt alone.
    #[must_use]
    pub const fn free(name: &'static str) -> Self {
        Self {
            name,
            schema: Value::Null,
        }
    }

    /// An object of these properties, in this order, all required.
    #[must_use]
    pub fn object(name: &'static str, properties: &Value) -> Self {
        let keys = properties.as_object().map(|p| p.keys().cloned());
        let required: Vec<String> = keys.into_iter().flatten().collect();
        Self {
            name,
            schema: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }),
        }
    }
}

impl Judge {
    /// The judges that `settings` name.
    ///
    /// # Errors
    /// [`JudgeErrorKind::Config`] or [`JudgeErrorKind::Auth`] where one cannot be used.
    pub fn resolve(
        settings: Option<&GradingSettings>,
        models: &Models,
        trajectory_id: &str,
        options: &JudgeOptions,
    ) -> Result<Self, JudgeError> {
        let settings = settings.ok_or_else(|| {
            JudgeError::config("no judge is set: the grading settings lack `llm_judge_model`")
        })?;
        let members = member::named(settings)
            .into_iter()
            .chain(member::added(settings, &options.panel))
            .map(|named| named.resolve(models, options))
            .collect::<Result<Vec<Member>, JudgeError>>()?;
        let system_prompt = settings
            .llm_judge_system_prompt
            .clone()
            .filter(|prompt| !prompt.is_empty());
        Ok(Self {
            members: members.into(),
            votes: options
                .votes
                .or(settings.llm_judge_votes)
                .unwrap_or(1)
                .clamp(1, MAX_VOTES),
            settings: Arc::new(JudgeSettings {
                // A prompt of others does not tell what `null` means.
                cannot_assess: settings.llm_judge_cannot_assess.unwrap_or(false)
                    && system_prompt.is_none(),
                negative_criteria: settings.llm_judge_negative_criteria.unwrap_or(false),
                system_prompt,
            }),
            trajectory_id: Arc::from(trajectory_id),
            attempts: options.attempts.max(1),
            timeout: options.timeout,
            cache: options.cache.clone().map(|f| Arc::new(Cache::new(f))),
            budget: Arc::new(Budget::new(options.max_usd)),
            meter: Arc::default(),
        })
    }

    /// The same judge with a meter of its own.
    #[must_use]
    pub fn metered(&self) -> Self {
        Self {
            meter: Arc::default(),
            ..self.clone()
        }
    }

    /// What was used since the judge got its meter.
    #[must_use]
    pub fn usage(&self) -> JudgeUsage {
        self.meter.usage()
    }

    /// Whether the judges may answer that they cannot tell.
    #[must_use]
    pub fn may_abstain(&self) -> bool {
        self.settings.cannot_assess
    }

    /// The JSON Schema of a decision.
    #[must_use]
    pub fn decision_type(&self) -> Value {
        if self.may_abstain() {
            json!({ "type": ["boolean", "null"] })
        } else {
            json!({ "type": "boolean" })
        }
    }

    /// What the grading settings say about verdicts.
    #[must_use]
    pub fn settings(&self) -> &JudgeSettings {
        &self.settings
    }

    /// The first judge's full name, `provider/model`.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.members[0].model.name()
    }

    /// The judges' full names, the first one first.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.model.name())
    }

    /// Asks all judges for their votes on `question` and counts them. Each is asked as by
    /// [`ask`](Self::ask).
    ///
    /// # Errors
    /// [`JudgeErrorKind::CannotAssess`] where the judges cannot tell or have no majority, and the errors
    /// of [`ask`](Self::ask) where so many votes failed that the others decide nothing.
    pub async fn decide(
        &self,
        question: Question,
        shape: &Shape,
        read: impl Fn(&str) -> Result<Opinion, String> + Sync + Send,
    ) -> Result<Ruling, JudgeError> {
        let (question, read) = (&question, &read);
        let votes = self.members.iter().flat_map(|member| {
            (0..self.votes).map(move |number| {
                Box::pin(async move {
                    Vote {
                        judge: member.model.name().to_owned(),
                        outcome: self.answer(member, number, question, shape, read).await,
                    }
                })
            })
        });
        count(futures::future::join_all(votes).await)
    }

    /// Asks the first judge `question` until `read` accepts the reply, at most as often as the
    /// options say.
    ///
    /// A reply that cannot be read is sent back with the reason. The provider is asked for an
    /// answer of `shape`; one that cannot enforce shapes is asked without.
    ///
    /// # Errors
    /// [`JudgeErrorKind::Output`] with all raw replies in the values where none could be read;
    /// the kinds of [`llm_client::ChatError`] where the call itself failed.
    pub async fn ask<T>(
        &self,
        question: Question,
        shape: &Shape,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, JudgeError> {
        Box::pin(self.answer(&self.members[0], 0, &question, shape, &read)).await
    }

    /// The answer of `member`, the cached one if there is one.
    async fn answer<T>(
        &self,
        member: &Member,
        vote: u32,
        question: &Question,
        shape: &Shape,
        read: &impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, JudgeError> {
        let opening = [
            Message::system(question.system.as_str()),
            text_or_blocks(question.user.clone()),
        ];
        let own = question.arguments.as_ref();
        let mut extra_args = own.unwrap_or(&member.extra_args).clone();
        if let (true, Some(temperature)) = (member.plain, question.temperature) {
            extra_args.insert("temperature".to_owned(), temperature.into());
        }
        if !shape.schema.is_null() {
            extra_args
                .entry("response_format")
                .or_insert_with(|| response_format(shape));
        }
        let kept = self.cache.as_ref().map(|cache| {
            let parts = json!({
                "model": member.model.name(), "extra_args": extra_args, "messages": opening, "vote": vote,
            });
            (cache, Key::of(&parts, &question.code))
        });
        if let Some((cache, key)) = &kept
            && let Some(reply) = cache.get(key).await
            && let Ok(answer) = read(&reply)
        {
            self.meter.cached();
            return Ok(answer);
        }
        let asked = self.until_read(member, question, &opening, &mut extra_args, read);
        let (answer, reply) = Box::pin(asked).await?;
        if let Some((cache, key)) = &kept {
            cache.put(key, member.model.name(), &reply).await;
        }
        Ok(answer)
    }

    /// Asks until `read` accepts the reply, which comes second.
    async fn until_read<T>(
        &self,
        member: &Member,
        question: &Question,
        opening: &[Message],
        extra_args: &mut Object,
        read: &impl Fn(&str) -> Result<T, String>,
    ) -> Result<(T, String), JudgeError> {
        let mut messages = opening.to_vec();
        let mut unread = Vec::new();
        for _ in 0..question.attempts.unwrap_or(self.attempts) {
            let call = self.call(member, &question.code, &messages, &[], extra_args);
            let response = call.await?;
            let text = response.message.text().into_owned();
            let problem = match read(&text) {
                Ok(answer) => return Ok((answer, text)),
                Err(problem) => problem,
            };
            tracing::warn!(judge = member.model.name(), %problem, "unreadable reply of the judge");
            messages = correction(opening, &text, &problem);
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
        Err(JudgeError::new(JudgeErrorKind::Output, message).with_value("judge_replies", unread))
    }

    /// One call. Where the provider refuses the response format, or a temperature that nobody
    /// asked for, the call is made again without.
    async fn call(
        &self,
        member: &Member,
        code: &str,
        messages: &[Message],
        tools: &[ToolDefinition],
        extra_args: &mut Object,
    ) -> Result<ChatResponse, JudgeError> {
        loop {
            self.budget.check()?;
            let request = ChatRequest {
                messages,
                tools,
                extra_args,
                timeout: self.timeout,
                labels: CallLabels {
                    trajectory_id: Some(&self.trajectory_id),
                    service: Some("grading"),
                    nonce: Some(code),
                    ..CallLabels::default()
                },
            };
            match Box::pin(member.model.chat(request, &|_| {})).await {
                Ok(response) => {
                    self.meter.add(&response);
                    self.budget.add(&response);
                    return Ok(response);
                }
                Err(error) => {
                    let refused = error.kind == ChatErrorKind::UnsupportedParameter;
                    let ours: &[&str] = match (member.plain, error.message.contains("temperature"))
                    {
                        (true, true) => &["temperature", "response_format"],
                        (true, false) => &["response_format", "temperature"],
                        (false, _) => &["response_format"],
                    };
                    let dropped = ours
                        .iter()
                        .find(|key| refused && extra_args.shift_remove(**key).is_some());
                    let Some(key) = dropped else {
                        return Err(JudgeError::from(&error));
                    };
                    tracing::info!(judge = member.model.name(), key, "asked again without");
                }
            }
        }
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
#[must_use]
pub fn beginning(text: &str, limit: usize) -> &str {
    text.char_indices()
        .nth(limit)
        .map_or(text, |(end, _)| &text[..end])
}
