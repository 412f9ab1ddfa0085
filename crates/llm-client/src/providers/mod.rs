//! The services that answer chat calls.

mod failure;
pub(crate) mod openai;
pub(crate) mod presets;
pub(crate) mod scripted;
