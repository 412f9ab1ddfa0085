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
mod call;
mod equipment;
mod error;
mod extra_args;
mod gateway;
mod model;
mod models;
mod prices;
mod provider;
mod providers;
mod rate;
mod recording;
mod repair;
mod retry;
pub mod tokens;

pub use budget::{Budget, BudgetLimits, Spent};
pub use cache::{Cache, CacheError, CacheLimits};
pub use call::{CallLabels, ChatRequest, ChatResponse, FinishReason};
pub use equipment::SettingsError;
pub use error::{ChatError, ChatErrorKind, ModelNameError};
pub use gateway::Gateway;
pub use model::{Hooks, Model};
pub use models::Models;
pub use prices::{KnownModel, Price, known_model, price_of, table_version};
pub use provider::{Delta, DeltaSink, Provider, Reply};
pub use rate::{RateLimit, RateLimits, SettingError, WaitNotice, WaitReason};
pub use recording::{Recording, RecordingError, Tape};
pub use retry::{RetryNotice, RetryPolicy};
