//! A model that says what a test tells it to, and refuses what real providers refuse.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use formats::chat::{Block, Message, Role, ToolCall, ToolDefinition, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use llm_client::{
    ChatError, ChatErrorKind, ChatRequest, FinishReason, Model, Provider, Reply, RetryPolicy,
};
use serde_json::{Value, json};

/// What the model does when it is asked.
pub enum Say {
    Reply(Message, FinishReason, Option<Usage>),
    Fail(ChatErrorKind, &'static str),
    Hang,
}

/// A text.
pub fn text(text: &str) -> Say {
    Say::Reply(Message::assistant(text), FinishReason::Stop, usage(10, 5))
}

/// Calls, each of a tool with arguments; ids are `c1`, `c2`, … in the reply.
pub fn calls(calls: &[(&str, Value)]) -> Say {
    let calls: Vec<(String, &str, String)> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| (format!("c{}", index + 1), *name, arguments.to_string()))
        .collect();
    raw_calls(
        &calls
            .iter()
            .map(|(id, name, raw)| (id.as_str(), *name, raw.as_str()))
            .collect::<Vec<_>>(),
    )
}

/// Calls as id, tool and raw arguments.
pub fn raw_calls(calls: &[(&str, &str, &str)]) -> Say {
    let mut message = Message::assistant("");
    message.content = None;
    message.tool_calls = calls
        .iter()
        .map(|(id, name, arguments)| ToolCall::new(*id, *name, *arguments))
        .collect();
    Say::Reply(message, FinishReason::ToolCalls, usage(10, 5))
}

pub fn usage(prompt: u64, completion: u64) -> Option<Usage> {
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        ..Usage::default()
    })
}

impl Say {
    pub fn used(self, prompt: u64, completion: u64) -> Self {
        match self {
            Self::Reply(message, reason, _) => {
                Self::Reply(message, reason, usage(prompt, completion))
            }
            other => other,
        }
    }

    pub fn because(self, reason: FinishReason) -> Self {
        match self {
            Self::Reply(message, _, usage) => Self::Reply(message, reason, usage),
            other => other,
        }
    }
}

/// What the model was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub messages: Vec<Message>,
    pub tools: Vec<ToolDefinition>,
}

impl Asked {
    pub fn lines(&self) -> Vec<String> {
        self.messages.iter().map(super::line).collect()
    }

    pub fn tool_names(&self) -> Vec<&str> {
        self.tools
            .iter()
            .map(|tool| tool.function.name.as_str())
            .collect()
    }
}

#[derive(Clone)]
pub struct Script {
    turns: Arc<Mutex<VecDeque<Say>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    provider: &'static str,
}

impl Script {
    pub fn new(turns: impl IntoIterator<Item = Say>) -> Self {
        Self {
            turns: Arc::new(Mutex::new(turns.into_iter().collect())),
            asked: Arc::default(),
            provider: "openai",
        }
    }

    pub fn model(&self) -> Model {
        self.named("openai/fake")
    }

    pub fn named(&self, name: &'static str) -> Model {
        let mut script = self.clone();
        script.provider = name.split('/').next().unwrap();
        Model::new(name, Arc::new(script)).with_retry(RetryPolicy {
            attempts: 1,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(1),
            total: Duration::from_secs(60),
        })
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn left(&self) -> usize {
        self.turns.lock().unwrap().len()
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        self.provider
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        self.asked.lock().unwrap().push(Asked {
            messages: request.messages.to_vec(),
            tools: request.tools.to_vec(),
        });
        let refused = objection(request.messages);
        let say = self.turns.lock().unwrap().pop_front();
        async move {
            if let Some(objection) = refused {
                return Err(error(ChatErrorKind::BadRequest, &objection));
            }
            match say {
                Some(Say::Reply(message, finish_reason, usage)) => Ok(Reply {
                    message,
                    finish_reason,
                    usage,
                    model: "fake-1".into(),
                    raw: json!({}),
                    cost_usd: None,
                    request_id: None,
                }),
                Some(Say::Fail(kind, text)) => Err(error(kind, text)),
                Some(Say::Hang) => std::future::pending().await,
                None => Err(error(ChatErrorKind::BadRequest, "the script is over")),
            }
        }
        .boxed()
    }
}

fn error(kind: ChatErrorKind, message: &str) -> ChatError {
    ChatError {
        kind,
        provider: "fake".into(),
        status: None,
        message: message.into(),
        retry_after: None,
        request_id: None,
        final_word: false,
    }
}

/// What a real provider would object to in a conversation.
pub fn objection(messages: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            match open.iter().position(|known| *known == id) {
                Some(at) => {
                    open.remove(at);
                }
                None => return Some(format!("message {index} answers no open call: `{id}`")),
            }
        } else if let Some(id) = open.first() {
            return Some(format!("message {index} comes before the answer to `{id}`"));
        }
        for call in &message.tool_calls {
            if call.id.is_empty() || !ids.insert(call.id.as_str()) {
                return Some(format!(
                    "message {index}: the id `{}` is used twice",
                    call.id
                ));
            }
            open.push(&call.id);
        }
        if let Some(content) = &message.content {
            let blocks = content.blocks();
            if blocks
                .iter()
                .filter_map(Block::as_text)
                .any(|text| text.trim().is_empty())
            {
                return Some(format!("message {index} has a blank text block"));
            }
            if message.role != Role::Assistant && content.is_blank() {
                return Some(format!("message {index} is blank"));
            }
        } else if message.tool_calls.is_empty() {
            return Some(format!("message {index} has neither content nor calls"));
        }
    }
    open.first()
        .map(|id| format!("the call `{id}` has no answer"))
}
