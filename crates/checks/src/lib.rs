//! Evals that decide without a judge: files, tables, cells, tool calls, answers, programs.
//!
//! [`all`] are the entries for a table of evals (`spec/grading.md` §6 and §6.5). Each has typed
//! settings and gives the same verdict on the same worlds and trajectory every time.

mod answer_letter;
mod calendar;
mod code_check;
mod code_execution;
mod command;
mod content_length;
mod field;
mod file_diff;
mod golden_db;
mod golden_file;
mod json_field;
mod page_count;
mod path_pattern;
mod pattern_match;
mod program;
mod shell_pattern;
mod spreadsheet;
mod sql;
mod template;
mod tool_call;

use std::sync::Arc;

use eval::{AnyEval, Eval, Typed, object};
use serde_json::Value;

/// All of them.
#[must_use]
pub fn all() -> Vec<Arc<dyn AnyEval>> {
    fn entry(eval: impl Eval) -> Arc<dyn AnyEval> {
        Arc::new(Typed::new(eval))
    }
    let mut evals = vec![
        entry(template::Template),
        entry(pattern_match::PatternMatchCheck),
        entry(file_diff::FileDiffCheck),
        entry(content_length::ContentLengthCheck),
        entry(tool_call::ToolCallCheck),
        entry(tool_call::Milestones),
        entry(golden_db::GoldenDbMatch),
        entry(sql::SqlValidator),
        entry(sql::SqlFieldCheck),
        entry(json_field::JsonFieldCheck),
        entry(page_count::PageCountCheck),
        entry(golden_file::GoldenFileMatch),
        entry(answer_letter::McqExactMatch),
        entry(calendar::CalendarFieldCheck),
        entry(code_check::CodeCheck),
        entry(code_execution::CodeExecution),
        entry(command::CommandEval),
    ];
    evals.extend(spreadsheet::IDS.map(|id| entry(spreadsheet::Spreadsheet { id })));
    evals
}

/// A whole number without a fraction, as people write it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is 0 and the size is checked"
)]
fn tidy(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}
