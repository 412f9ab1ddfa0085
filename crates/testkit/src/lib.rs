//! Checking stubs of model providers and MCP servers.
//!
//! A stub stands in for a real server in tests and, by `archipelago stub`, on the command line. It
//! refuses what the real one refuses, so that a client that passes here passes there.

pub mod anthropic;
pub mod azure;
pub mod bedrock;
#[cfg(feature = "documents")]
pub mod documents;
pub mod gemini;
pub mod google_tokens;
pub mod mcp;
pub mod openai;
mod requirement;
mod script;
pub mod stub;
mod unreachable;
pub mod vertex;

pub use requirement::available;
pub use script::{runs, script};
pub use unreachable::Unreachable;
