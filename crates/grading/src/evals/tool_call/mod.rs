//! Evals in which a judge model looks at the tool calls.

mod by_judge;
mod shares;

pub(super) use self::by_judge::ToolCallLlmCheck;
pub(super) use self::shares::ToolShares;
