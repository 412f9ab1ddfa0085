//! Judges that look at the material by tools before they decide.

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::ballot::{Opinion, Ruling, Vote, count};
use crate::cache::Key;
use crate::error::{JudgeError, JudgeErrorKind};
use crate::member::Member;
use crate::{Context, Judge, KEPT_REPLY_CHARS, Question, beginning, text_or_blocks};

/// Calls of one judge about one question at most.
const MAX_CALLS: usize = 250;

/// Characters of one answer of a tool that the judge is shown.
const ANSWER_CHARS: usize = 10_000;

/// Share of the context after which tools answer no more.
const USABLE: f64 = 0.85;

/// What a judge is told in place of an answer when its context is full.
const NO_ROOM: &str = r#"{"error":"there is no room for more material; give the verdict now"}"#;

/// The tools of a question.
pub trait Tools: Send + Sync {
    /// What the judge is told about them, without the tool of the verdict.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// The answer to a call, mistakes of the judge included: it is told of them and goes on.
    ///
    /// # Errors
    /// What makes a verdict impossible, such as material that cannot be read.
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Object,
    ) -> BoxFuture<'a, Result<Value, JudgeError>>;
}

/// The tool by which a judge gives its verdict.
#[derive(Debug, Clone)]
pub struct VerdictTool {
    /// What the judge is told about it. Its arguments are the verdict.
    pub definition: ToolDefinition,
}

/// A conversation with one judge.
struct Talk<'a> {
    judge: &'a Judge,
    member: &'a Member,
    /// Which vote of this judge it is.
    number: u32,
    code: &'a str,
    tools: &'a dyn Tools,
    definitions: Vec<ToolDefinition>,
    verdict: &'a str,
    extra_args: Object,
    messages: Vec<Message>,
    /// Tokens that the context still has room for.
    room: u64,
    context: Context,
}

impl Judge {
    /// As [`decide`](Self::decide), with tools: each judge asks them as often as it likes and then
    /// calls the tool `verdict`, whose arguments are read by `read`. An answer without a call that
    /// `read` accepts is a verdict too.
    ///
    /// # Errors
    /// Those of [`decide`](Self::decide), and what a tool could not do.
    pub async fn decide_with_tools(
        &self,
        question: Question,
        tools: &dyn Tools,
        verdict: &VerdictTool,
        read: impl Fn(&str) -> Result<Opinion, String> + Sync + Send,
    ) -> Result<Ruling, JudgeError> {
        let (question, read) = (&question, &read);
        let votes = self.members.iter().flat_map(|member| {
            (0..self.votes).map(move |number| {
                Box::pin(async move {
                    let talk = Talk::new(self, member, number, question, tools, verdict);
                    Vote {
                        judge: member.model.name().to_owned(),
                        outcome: Box::pin(talk.until_verdict(read)).await,
                    }
                })
            })
        });
        count(futures::future::join_all(votes).await)
    }
}

impl<'a> Talk<'a> {
    fn new(
        judge: &'a Judge,
        member: &'a Member,
        number: u32,
        question: &'a Question,
        tools: &'a dyn Tools,
        verdict: &'a VerdictTool,
    ) -> Self {
        let context = Context::of(member.model.name());
        let spent = context.tokens(&question.system) + context.tokens(&question.user.text());
        let mut definitions = tools.definitions();
        definitions.push(verdict.definition.clone());
        Self {
            judge,
            member,
            number,
            code: &question.code,
            tools,
            definitions,
            verdict: &verdict.definition.function.name,
            extra_args: member.extra_args.clone(),
            messages: vec![
                Message::system(question.system.as_str()),
                text_or_blocks(question.user.clone()),
            ],
            room: context.share(USABLE).saturating_sub(spent),
            context,
        }
    }

    async fn until_verdict(
        mut self,
        read: &(impl Fn(&str) -> Result<Opinion, String> + Sync + Send),
    ) -> Result<Opinion, JudgeError> {
        let mut unread: Vec<Value> = Vec::new();
        for _ in 0..MAX_CALLS {
            let reply = self.reply().await?;
            let problem = match self.verdict_in(&reply, read) {
                Some(Ok(opinion)) => return Ok(opinion),
                Some(Err(problem)) => Some(problem),
                None => None,
            };
            if let Some(problem) = &problem {
                let said = reply.text();
                unread.push(json!({
                    "problem": problem, "reply": beginning(&said, KEPT_REPLY_CHARS),
                }));
                if unread.len() >= self.judge.attempts as usize {
                    break;
                }
            }
            self.answer(reply, problem).await?;
        }
        let text = if unread.is_empty() {
            format!("the judge gave no verdict in {MAX_CALLS} calls")
        } else {
            let times = unread.len();
            format!("the judge gave no verdict that can be read in {times} attempts")
        };
        Err(JudgeError::new(JudgeErrorKind::Output, text).with_value("judge_replies", unread))
    }

    /// The judge's next message, the kept one if there is one.
    async fn reply(&mut self) -> Result<Message, JudgeError> {
        let name = self.member.model.name();
        let kept = self.judge.cache.as_ref().map(|cache| {
            let parts = json!({
                "model": name, "extra_args": self.extra_args, "messages": self.messages,
                "tools": self.definitions, "vote": self.number,
            });
            (cache, Key::of(&parts, self.code))
        });
        if let Some((cache, key)) = &kept
            && let Some(text) = cache.get(key).await
            && let Ok(message) = serde_json::from_str(&text)
        {
            self.judge.meter.cached();
            return Ok(message);
        }
        let call = self.judge.call(
            self.member,
            self.code,
            &self.messages,
            &self.definitions,
            &mut self.extra_args,
        );
        let message = Box::pin(call).await?.message;
        if let Some((cache, key)) = &kept
            && let Ok(text) = serde_json::to_string(&message)
        {
            cache.put(key, name, &text).await;
        }
        Ok(message)
    }

    /// The verdict of `reply`: of a call of the tool for it, or of a text without calls. `None`
    /// where it only asks tools.
    fn verdict_in(
        &self,
        reply: &Message,
        read: &impl Fn(&str) -> Result<Opinion, String>,
    ) -> Option<Result<Opinion, String>> {
        let calls = &reply.tool_calls;
        if let Some(call) = calls.iter().find(|call| call.function.name == self.verdict) {
            return Some(read(&call.function.arguments));
        }
        calls.is_empty().then(|| read(&reply.text()))
    }

    /// Adds `reply` and what it is answered.
    async fn answer(&mut self, reply: Message, problem: Option<String>) -> Result<(), JudgeError> {
        let calls = reply.tool_calls.clone();
        if !reply.text().trim().is_empty() || !calls.is_empty() {
            self.messages.push(reply);
        }
        if calls.is_empty() {
            let problem = problem.unwrap_or_default();
            self.messages.push(Message::user(format!(
                "This reply cannot be used: {problem}. Call `{}` with your verdict.",
                self.verdict
            )));
            return Ok(());
        }
        for call in calls {
            let name = &call.function.name;
            let text = if *name == self.verdict {
                let problem = problem.as_deref().unwrap_or("it was not read");
                json!({ "error": problem }).to_string()
            } else {
                match serde_json::from_str::<Object>(&call.function.arguments) {
                    Ok(arguments) => self.tools.call(name, &arguments).await?.to_string(),
                    Err(error) => {
                        json!({ "error": format!("the arguments are no JSON object: {error}") })
                            .to_string()
                    }
                }
            };
            let text = self.fitting(&text);
            self.messages
                .push(Message::tool(call.id.as_str(), name.as_str(), text));
        }
        Ok(())
    }

    /// `text` within the limit of one answer and the room that is left.
    fn fitting(&mut self, text: &str) -> String {
        let shown = beginning(text, ANSWER_CHARS);
        let tokens = self.context.tokens(shown);
        if tokens > self.room {
            self.room = 0;
            return NO_ROOM.to_owned();
        }
        self.room -= tokens;
        if shown.len() == text.len() {
            text.to_owned()
        } else {
            format!("{shown}… (cut: the answer is longer than {ANSWER_CHARS} characters)")
        }
    }
}
