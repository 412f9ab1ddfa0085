//! What every provider refuses, mended once before translation.
//!
//! Models, agents and users write histories and schemas that no provider takes: calls without
//! results, results without calls, arguments that are no JSON, names with dots. Failing on them
//! would end a run for good, since the same history comes again with every step; so they are
//! mended on the way out, and the conversation itself stays as it is. All functions are pure, give
//! the same answer for the same input at every step (prompt caches live on that), and borrow.

mod arguments;
mod history;
mod ids;
mod names;
mod schema;
mod words;

pub use arguments::sendable_arguments;
pub use history::{Entry, NO_RESULT, mended};
pub use ids::{WireIds, own_ids};
pub use names::{NameRule, ToolNames};
pub use schema::{
    Renamed, complete_parameters, gemini_parameters, gemini_schema, openai_parameters,
    rooted_parameters,
};
pub use words::{EMPTY, NOTHING, OPENING, OPERATOR_NOTE};
