//! Who is at the other end: OpenAI, a server that speaks its format, or a proxy for all providers.

/// How strictly the other end takes the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI itself: only fields that its interface names.
    OpenAi,
    /// Another server with its format: fields that it may have sent are sent back, such as
    /// `reasoning_content`; parameters are its own business.
    Compatible,
    /// A proxy that translates for other providers: everything is kept (`spec/llm.md` §20).
    Proxy,
}

impl Dialect {
    /// The dialect of the server `host`.
    pub fn of_host(host: &str) -> Self {
        if host == "openai.com" || host.ends_with(".openai.com") {
            Self::OpenAi
        } else {
            Self::Compatible
        }
    }
}

/// Whether `model` is one of OpenAI's reasoning models, `None` for a name that says nothing.
pub(crate) fn is_reasoning_model(model: &str) -> Option<bool> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
    if starts(&["o1", "o3", "o4", "codex-mini", "computer-use-preview"]) {
        Some(true)
    } else if starts(&["gpt-3", "gpt-4", "chatgpt-"]) || model.contains("-chat") {
        Some(false)
    } else {
        version(model).map(|version| version >= (5, 0))
    }
}

/// Major and minor version of names such as `gpt-5.4-mini`.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.strip_prefix("gpt-")?;
    let mut numbers = name.split('-').next()?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = match numbers.next() {
        Some(minor) => minor.parse().ok()?,
        None => 0,
    };
    Some((major, minor))
}

/// When a call of a model cannot go to chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Never.
    Nothing,
    /// While it is to reason and to call tools at once.
    ResponsesForTools,
    /// Always: the model is served by the Responses interface only.
    Responses,
}

/// Models that are served by the Responses interface only: how their names begin, and what stands in
/// them.
const RESPONSES_ONLY: &[(&str, &str)] = &[
    ("gpt-5", "-pro"),
    ("gpt-5", "-codex"),
    ("gpt-6", "-pro"),
    ("gpt-6", "-codex"),
    ("o1-pro", ""),
    ("o3-pro", ""),
    ("o3-deep-research", ""),
    ("o4-mini-deep-research", ""),
    ("codex-mini", ""),
    ("computer-use-preview", ""),
];

/// From this version on chat completions take tools only while the model does not reason.
const TOOLS_EXCLUDE_REASONING: (u32, u32) = (5, 4);

/// What `model` needs.
pub(crate) fn needs(model: &str) -> Needs {
    let is_listed = RESPONSES_ONLY
        .iter()
        .any(|(beginning, part)| model.starts_with(beginning) && model.contains(part));
    if is_listed {
        Needs::Responses
    } else if is_reasoning_model(model) == Some(true)
        && version(model).is_some_and(|version| version >= TOOLS_EXCLUDE_REASONING)
    {
        Needs::ResponsesForTools
    } else {
        Needs::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_models_are_told_apart() {
        assert_eq!(Dialect::of_host("eu.api.openai.com"), Dialect::OpenAi);
        assert_eq!(Dialect::of_host("notopenai.com"), Dialect::Compatible);
        assert_eq!(is_reasoning_model("gpt-5-mini"), Some(true));
        assert_eq!(is_reasoning_model("gpt-5-chat-latest"), Some(false));
        assert_eq!(is_reasoning_model("gpt-4.1"), Some(false));
        assert_eq!(is_reasoning_model("llama-3"), None);
        assert_eq!(is_reasoning_model("gpt-5.3-chat-latest"), Some(false));
        assert_eq!(is_reasoning_model("gpt-6"), Some(true));
        assert_eq!(is_reasoning_model("gpt-oss-120b"), None);
        for (model, expected) in [
            ("gpt-4.1", Needs::Nothing),
            ("gpt-5", Needs::Nothing),
            ("gpt-5.2", Needs::Nothing),
            ("gpt-5.4-mini", Needs::ResponsesForTools),
            ("gpt-5.10", Needs::ResponsesForTools),
            ("gpt-5.4-chat-latest", Needs::Nothing),
            ("gpt-5-pro-2025-10-06", Needs::Responses),
            ("gpt-5.1-codex-max", Needs::Responses),
            ("o3-pro", Needs::Responses),
            ("o3", Needs::Nothing),
            ("llama-3-pro", Needs::Nothing),
        ] {
            assert_eq!(needs(model), expected, "{model}");
        }
    }
}
