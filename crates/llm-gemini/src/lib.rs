//! Gemini over Google's `generateContent` interface, and Google's access tokens.
//!
//! [`Gemini`] is one model at the Gemini API or at Vertex AI. [`google`] finds the credentials of
//! Google Cloud and keeps the access tokens that they give, for whatever is asked there.

mod generate;
pub mod google;

pub use generate::{Gemini, version};
