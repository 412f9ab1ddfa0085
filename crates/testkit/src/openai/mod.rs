//! OpenAI's chat completions, scripted and strict.
//!
//! [`OpenAiStub`] runs on a loopback port until it is dropped. Requests that the real interface
//! refuses get its kind of error; all others get the next turn of the [`Script`]. Every request is
//! kept for the test to look at.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use testkit::openai::{OpenAiStub, Script, Turn};
//!
//! let stub = OpenAiStub::start(Script::new([
//!     Turn::fails(429).header("retry-after-ms", "5"),
//!     Turn::calls("list", serde_json::json!({"path": "/"})),
//!     Turn::says("Done."),
//! ]))
//! .await?;
//! // OPENAI_BASE_URL and OPENAI_API_KEY of the client under test:
//! let settings = (stub.base_url(), stub.key());
//! # let _ = settings;
//! assert_eq!(stub.requests().len(), 0);
//! # Ok(()) }
//! ```

mod answer;
mod check;
mod connection;
mod schema;
mod script;
mod server;

pub use script::{Call, Fault, Script, ScriptError, Turn};
pub use server::{OpenAiStub, Options, Recorded, serve};
