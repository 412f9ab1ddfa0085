//! The services that answer chat calls.

pub(crate) mod anthropic;
mod endpoint;
mod exchange;
mod failure;
#[cfg(test)]
mod golden;
mod media;
pub(crate) mod openai;
pub(crate) mod presets;
pub(crate) mod scripted;
mod sse;

pub(crate) use endpoint::Endpoint;
