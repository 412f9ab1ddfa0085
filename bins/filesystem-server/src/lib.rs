//! The MCP file server for worlds: the agent's eyes and hands on the files of one directory, over stdio.
//!
//! The contract is `mcp-servers.md` §2: six reading tools, whose names, parameters and results are those of the
//! reference's file server. Five writing tools are added, and are absent unless they are asked for.
//!
//! Duties:
//! * **Confinement.** Nothing outside the root is read, written or measured, whatever the path says and whatever the
//!   links in the tree say, also while they are being changed by somebody else.
//! * **Bounds.** Every amount of work has a named limit ([`Limits`]); crossing it is said in the result.
//! * **Honesty.** File contents pass unaltered but for line ends; only the server's own messages speak of virtual paths.
//! * stdout carries the protocol and nothing else.
//!
//! The same code serves as the program `filesystem-server`, under that name inside the `archipelago` program
//! ([`run`]), and in process over any rmcp transport ([`FilesystemServer`]).

mod command;
mod files;
mod injected;
mod limits;
mod root;
mod server;
mod tools;

pub use command::run;
pub use limits::Limits;
pub use server::{FilesystemServer, RootError, Settings};
