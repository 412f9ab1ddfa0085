//! Spans of a run in the words of OpenTelemetry's conventions for generative AI.
//!
//! With the feature `otel` a run opens `tracing` spans: `invoke_agent` around the run, `chat`
//! around each model call, `execute_tool` around each tool call. Field names are those of the
//! conventions in the version below, `otel.name`, `otel.kind` and `otel.status_code` are what
//! `tracing-opentelemetry` takes for name, kind and status. Which subscriber exports them is the
//! program's business. Without the feature there are no spans and no cost. What was said is never in
//! a span.

use formats::chat::ToolCall;
use llm_client::{ChatError, ChatResponse, Model};
use tracing::Span;
use tracing::field::Empty;

use crate::tools::{CallError, ToolOutput};

/// The version of the semantic conventions whose names the spans use.
pub const GEN_AI_CONVENTIONS: &str = "1.37.0";

const ON: bool = cfg!(feature = "otel");

/// Around a run.
pub(crate) fn invoke_agent(agent: &str, trajectory_id: &str, model: &Model) -> Span {
    if !ON {
        return Span::none();
    }
    tracing::info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {agent}"),
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = model.provider(),
        gen_ai.request.model = bare(model.name()),
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = trajectory_id,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Around a model call, repetitions included.
pub(crate) fn chat(model: &Model) -> Span {
    if !ON {
        return Span::none();
    }
    let name = bare(model.name());
    tracing::info_span!(
        "chat",
        otel.name = format!("chat {name}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider(),
        gen_ai.request.model = name,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records how a model call ended.
pub(crate) fn chat_ended(span: &Span, outcome: &Result<ChatResponse, ChatError>) {
    match outcome {
        Ok(response) => {
            span.record("gen_ai.response.model", response.model.as_str());
            let reasons = format!("[\"{}\"]", response.finish_reason.as_str());
            span.record("gen_ai.response.finish_reasons", reasons.as_str());
            if let Some(usage) = &response.usage {
                span.record("gen_ai.usage.input_tokens", whole(usage.prompt_tokens));
                span.record("gen_ai.usage.output_tokens", whole(usage.completion_tokens));
            }
        }
        Err(error) => failed(span, error.kind.as_str()),
    }
}

/// Around a tool call.
pub(crate) fn execute_tool(call: &ToolCall) -> Span {
    if !ON {
        return Span::none();
    }
    let name = call.function.name.as_str();
    tracing::info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {name}"),
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = call.id.as_str(),
        gen_ai.tool.type = "function",
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records how a tool call ended.
pub(crate) fn tool_ended(span: &Span, outcome: &Result<ToolOutput, CallError>) {
    match outcome {
        Ok(output) if output.is_error => failed(span, "tool_error"),
        Ok(_) => {}
        Err(error) => failed(span, error.kind()),
    }
}

/// Records what ended the work of a span.
pub(crate) fn failed(span: &Span, kind: &str) {
    span.record("error.type", kind);
    // Only this makes the span a failed one.
    span.record("otel.status_code", "ERROR");
}

/// A count as exporters take it: unsigned numbers would arrive as texts.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The model without the provider before it.
fn bare(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, name)| name)
}
