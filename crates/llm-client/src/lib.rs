//! One chat call, any provider: translate, send, retry, meter.
//!
//! [`Models`] turns a name such as `openai/gpt-4.1` into a [`Model`], checking the credentials
//! before anything is sent. [`Model::chat`] makes one logical call: it repeats what can succeed
//! when repeated, within a time limit, and returns a [`ChatResponse`] or a typed [`ChatError`]
//! that knows its owner.
//!
//! The crate knows nothing of agents or MCP.

mod around;
mod budget;
mod cache;
mod equipment;
mod gateway;
mod model;
mod models;
mod presets;
mod rate;
mod recording;
mod replay;
mod retry;
mod scripted;
mod vertex;

pub use budget::{Budget, BudgetLimits, Spent};
pub use cache::{Cache, CacheError, CacheLimits};
pub use equipment::SettingsError;
pub use gateway::Gateway;
pub use llm_wire::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, Delta, DeltaSink,
    FinishReason, KnownModel, ModelNameError, Price, Provider, Reply, known_model, price_of,
    table_version, tokens,
};
pub use model::{Hooks, Model};
pub use models::Models;
pub use rate::{RateLimit, RateLimits, SettingError, WaitNotice, WaitReason};
pub use recording::{Recording, RecordingError, Tape};
pub use retry::{RetryNotice, RetryPolicy};
