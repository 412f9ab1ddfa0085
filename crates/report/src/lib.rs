//! Pages that people look at: a run, a trial, a diff.
//!
//! Everything here is a pure function from the documents of `formats` to text or HTML. The caller
//! reads the files and decides about colour and width; nothing is printed, read or looked up.
//!
//! - [`text::Steps`]: one line per thing that an agent does, while it does it;
//! - [`text::trial`]: what came of a trial, for a terminal;
//! - [`text::run`]: a table of many trials;
//! - [`html::trial_page`]: one trial as a page that needs nothing but itself;
//! - [`html::run_page`]: a run as such a page, with links to those of its trials.
//!
//! What models and tools wrote is not trusted: escape sequences and control characters are taken
//! out, lengths and numbers of lines are bounded, HTML is escaped, and only embedded pictures are
//! shown.

mod excerpt;
mod figures;
mod hints;
mod inside;
mod trial;

pub mod html;
pub mod text;

pub use excerpt::plain;
pub use hints::hint;
pub use trial::Trial;
