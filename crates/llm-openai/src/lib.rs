//! Models of servers that speak OpenAI's interfaces.
//!
//! [`OpenAi`] speaks chat completions, as OpenAI, compatible servers and proxies do, each in its
//! [`Dialect`]. [`Responses`] speaks the interface on which newer models reason and call tools at once.
//! [`EitherInterface`] asks over the one that a call needs. [`azure`] has the addresses of Azure.

pub mod azure;
mod chat;
mod responses;

pub use chat::{Choice, Dialect, EitherInterface, OpenAi};
pub use responses::Responses;
