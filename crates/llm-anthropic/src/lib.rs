//! Claude over Anthropic's Messages interface, and models at AWS Bedrock.
//!
//! [`Anthropic`] speaks Messages at Anthropic's own servers and at Vertex AI. [`bedrock`] speaks AWS's
//! Converse, which has the same rules of turns, calls and results in other words.

pub mod bedrock;
mod messages;

pub use messages::Anthropic;
