//! The evals of this crate (`spec/grading.md` §6). Each is an entry of the registry.

mod about_answer;
mod answer_letter;
mod apex_v1;
mod calendar;
mod code_check;
mod code_execution;
mod command;
mod content_length;
mod criterion_output;
mod db_diff;
mod deep_research;
mod field;
mod file_diff;
mod formatting;
mod golden_comparison;
mod golden_file;
mod golden_response;
mod json_field;
mod output_llm;
mod page_count;
mod path_pattern;
mod pattern_match;
mod prompts;
mod response_tool;
mod sections;
mod shell_pattern;
mod short_answer;
mod slide_style;
mod spreadsheet;
mod sql;
mod template;
mod tool_call;

use crate::registry::Registry;

pub(crate) fn register(registry: &mut Registry) {
    registry
        .register(template::Template)
        .register(pattern_match::PatternMatchCheck)
        .register(file_diff::FileDiffCheck)
        .register(content_length::ContentLengthCheck)
        .register(tool_call::ToolCallCheck)
        .register(tool_call::ToolCallLlmCheck)
        .register(tool_call::ToolShares)
        .register(tool_call::Milestones)
        .register(response_tool::ResponseToolVerifier)
        .register(short_answer::ShortAnswer)
        .register(criterion_output::CriterionOutput)
        .register(output_llm::MultiRepresentation)
        .register(golden_response::GoldenResponseMatch)
        .register(apex_v1::ApexV1)
        .register(deep_research::DeepResearch)
        .register(db_diff::GoldenDbMatch)
        .register(sql::SqlValidator)
        .register(sql::SqlFieldCheck)
        .register(json_field::JsonFieldCheck)
        .register(page_count::PageCountCheck)
        .register(golden_file::GoldenFileMatch)
        .register(answer_letter::McqExactMatch)
        .register(slide_style::SlideStyle)
        .register(calendar::CalendarFieldCheck)
        .register(code_check::CodeCheck::new())
        .register(code_execution::CodeExecution::new())
        .register(command::CommandEval);
    for id in spreadsheet::IDS {
        registry.register(spreadsheet::Spreadsheet { id });
    }
    for id in golden_comparison::IDS {
        registry.register(golden_comparison::GoldenComparison { id });
    }
    for (id, files) in formatting::IDS {
        registry.register(formatting::Formatting { id, files });
    }
    for (id, sight) in db_diff::IDS {
        registry.register(db_diff::DbDiff { id, sight });
    }
    for id in output_llm::IDS {
        registry.register(output_llm::OutputLlm { id });
    }
}

/// The members of a JSON object literal.
fn object(value: serde_json::Value) -> formats::Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => formats::Object::new(),
    }
}
