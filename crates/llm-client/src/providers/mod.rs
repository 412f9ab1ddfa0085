//! The services that answer chat calls.

mod answer_tool;
pub(crate) mod anthropic;
pub(crate) mod azure;
pub(crate) mod bedrock;
mod endpoint;
pub(crate) mod exchange;
mod failure;
pub(crate) mod gemini;
mod given;
#[cfg(test)]
mod golden;
mod media;
pub(crate) mod openai;
pub(crate) mod presets;
pub(crate) mod replay;
pub(crate) mod responses;
pub(crate) mod scripted;
mod sse;
pub(crate) mod vertex;

pub(crate) use endpoint::Endpoint;
