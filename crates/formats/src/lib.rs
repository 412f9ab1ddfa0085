//! The JSON documents that cross a program boundary.
//!
//! Every file that one of our programs writes and another one reads, and every body of the
//! environment's HTTP interface, has its type here: chat messages ([`chat`]), the files of a task
//! ([`task`], [`apps`], [`agent`]), what an agent run leaves behind ([`trajectory`], [`event`], [`blobs`]),
//! what grading leaves behind ([`grades`]), the difference of two worlds ([`diff`]) and the run
//! folder ([`run`]). Each type has a JSON Schema by `schemars`; [`schema`] lists them by name.
//!
//! Two rules hold for all of them. Documents that the Python reference also reads or writes keep
//! its keys and meanings; we add keys, never change or drop one. Keys that we do not know are kept
//! where the document is passed on (messages, trajectories) and ignored where it ends with us.

pub mod agent;
pub mod apps;
pub mod blobs;
pub mod chat;
pub mod diff;
pub mod document;
pub mod event;
pub mod grades;
pub mod lenient;
pub mod media;
pub mod owner;
pub mod run;
pub mod schema;
pub mod task;
pub mod trajectory;

/// A JSON object with its keys in the order in which they came.
pub type Object = serde_json::Map<String, serde_json::Value>;
