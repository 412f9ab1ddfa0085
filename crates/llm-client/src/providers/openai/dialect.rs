//! Who is at the other end: OpenAI, a server that speaks its format, or a proxy for all providers.

/// How strictly the other end takes the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
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
    pub(crate) fn of_host(host: &str) -> Self {
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
    if starts(&["gpt-5-chat", "gpt-3.5", "gpt-4", "chatgpt-"]) {
        Some(false)
    } else if starts(&["gpt-5", "o1", "o3", "o4"]) {
        Some(true)
    } else {
        None
    }
}

/// Whether OpenAI takes tools for `model` on chat completions only while it does not reason: so for
/// gpt-5.4 and newer.
pub(crate) fn tools_exclude_reasoning(model: &str) -> bool {
    let Some(version) = model.strip_prefix("gpt-5.") else {
        return false;
    };
    let digits = version
        .split(|character: char| !character.is_ascii_digit())
        .next()
        .unwrap_or_default();
    digits.parse::<u32>().is_ok_and(|minor| minor >= 4)
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
        assert!(tools_exclude_reasoning("gpt-5.4-mini"));
        assert!(tools_exclude_reasoning("gpt-5.10"));
        assert!(!tools_exclude_reasoning("gpt-5.2"));
        assert!(!tools_exclude_reasoning("gpt-5"));
    }
}
