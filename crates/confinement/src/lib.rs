//! Programs of others: kept from the machine, within limits, ended with all they start.
//!
//! [`Confined::command`] makes the command; [`Group`] ends what became of it.

mod command;
mod group;
mod isolation;

pub use command::Confined;
pub use group::Group;
pub use isolation::{Isolation, IsolationRule};
