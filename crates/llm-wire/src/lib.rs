//! What one chat call is, and how any provider is reached.
//!
//! A [`Provider`] makes one attempt of a [`ChatRequest`] and gives a [`Reply`] or a [`ChatError`] that
//! knows its owner. What all providers share is here: the settings among the arguments of a call
//! ([`extra_args`]), servers and their credentials ([`Endpoint`], [`AccessTokens`]), exchanges and
//! streams over HTTP ([`exchange`]), the meaning of refusals ([`failure`]), histories, names and schemas
//! that no provider takes as they are ([`repair`]), and what models take and cost ([`known_model`]).
//!
//! The crate knows no provider.

mod access;
pub mod answer_tool;
mod call;
mod endpoint;
mod error;
pub mod exchange;
pub mod extra_args;
pub mod failure;
mod given;
mod media;
mod prices;
mod provider;
pub mod repair;
pub mod secrets;
mod sse;
pub mod tokens;

pub use access::{AccessToken, AccessTokens};
pub use call::{CallLabels, ChatRequest, ChatResponse, FinishReason};
pub use endpoint::Endpoint;
pub use error::{ChatError, ChatErrorKind, ModelNameError};
pub use given::Given;
pub use media::DataUri;
pub use prices::{KnownModel, Price, claude_version, known_model, price_of, table_version};
pub use provider::{Delta, DeltaSink, Provider, Reply};
