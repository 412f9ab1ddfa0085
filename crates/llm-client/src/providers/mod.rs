//! The services that answer chat calls.

pub(crate) mod openai;
pub(crate) mod presets;
pub(crate) mod scripted;
