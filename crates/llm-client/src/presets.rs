//! The table of providers: where they are and which variables hold their credentials.

use crate::vertex;
use llm_gemini::google;

/// The format that a provider's servers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// OpenAI's chat completions: `llm-openai`.
    ChatCompletions,
    /// Anthropic's messages: `llm-anthropic`.
    AnthropicMessages,
    /// Google's generateContent: `llm-gemini`.
    GenerateContent,
    /// Google's and Anthropic's formats at Vertex AI: `vertex`.
    Vertex,
    /// OpenAI's formats at Azure's addresses: `llm_openai::azure`.
    Azure,
    /// AWS's Converse: `llm_anthropic::bedrock`.
    BedrockConverse,
}

impl Wire {
    /// Whether chats go over one of OpenAI's interfaces.
    pub(crate) fn is_openai(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::Azure)
    }
}

/// A provider: where its servers are, what they speak, which variables hold its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preset {
    /// The first part of model names.
    pub(crate) name: &'static str,
    /// What its servers speak.
    pub(crate) wire: Wire,
    /// Where its servers are; `None` where only the user can know.
    pub(crate) base_url: Option<&'static str>,
    /// Variables that hold another base URL; the first one that is set wins.
    pub(crate) base_variables: &'static [&'static str],
    /// Variables that hold the key; the first one that is set wins.
    pub(crate) key_variables: &'static [&'static str],
    /// Whether it answers only with a key.
    pub(crate) needs_key: bool,
}

const fn hosted(
    name: &'static str,
    base_url: &'static str,
    base_variables: &'static [&'static str],
    key_variables: &'static [&'static str],
) -> Preset {
    Preset {
        name,
        wire: Wire::ChatCompletions,
        base_url: Some(base_url),
        base_variables,
        key_variables,
        needs_key: true,
    }
}

const fn local(
    name: &'static str,
    base_url: Option<&'static str>,
    base_variables: &'static [&'static str],
    key_variables: &'static [&'static str],
) -> Preset {
    Preset {
        name,
        wire: Wire::ChatCompletions,
        base_url,
        base_variables,
        key_variables,
        needs_key: false,
    }
}

impl Preset {
    const fn speaking(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }
}

/// All providers, `openai` first.
pub(crate) const PRESETS: &[Preset] = &[
    hosted(
        "openai",
        "https://api.openai.com/v1",
        &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        &["OPENAI_API_KEY"],
    ),
    hosted(
        "anthropic",
        "https://api.anthropic.com",
        &["ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"],
        &["ANTHROPIC_API_KEY"],
    )
    .speaking(Wire::AnthropicMessages),
    Preset {
        name: "azure",
        wire: Wire::Azure,
        base_url: None,
        base_variables: &["AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"],
        key_variables: &["AZURE_API_KEY", "AZURE_OPENAI_API_KEY"],
        // A token does as well.
        needs_key: false,
    },
    Preset {
        name: "bedrock",
        wire: Wire::BedrockConverse,
        // It depends on the region.
        base_url: None,
        base_variables: &[
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
            "AWS_BEDROCK_RUNTIME_ENDPOINT",
            "AWS_ENDPOINT_URL",
        ],
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        // AWS's keys do as well.
        needs_key: false,
    },
    hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        &["GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"],
        &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
    )
    .speaking(Wire::GenerateContent),
    Preset {
        name: "vertex_ai",
        wire: Wire::Vertex,
        // The location is part of it.
        base_url: None,
        base_variables: &["VERTEXAI_API_BASE"],
        key_variables: google::CREDENTIALS,
        needs_key: true,
    },
    hosted(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_BASE"],
        &["OPENROUTER_API_KEY"],
    ),
    hosted(
        "groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_BASE"],
        &["GROQ_API_KEY"],
    ),
    hosted(
        "together_ai",
        "https://api.together.xyz/v1",
        &["TOGETHER_AI_API_BASE"],
        &["TOGETHERAI_API_KEY", "TOGETHER_API_KEY"],
    ),
    hosted(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_AI_API_BASE"],
        &["FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"],
    ),
    hosted(
        "deepseek",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_BASE"],
        &["DEEPSEEK_API_KEY"],
    ),
    hosted(
        "xai",
        "https://api.x.ai/v1",
        &["XAI_API_BASE"],
        &["XAI_API_KEY"],
    ),
    hosted(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_BASE"],
        &["MISTRAL_API_KEY"],
    ),
    hosted(
        "cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_BASE"],
        &["CEREBRAS_API_KEY"],
    ),
    hosted(
        "perplexity",
        "https://api.perplexity.ai",
        &["PERPLEXITY_API_BASE"],
        &["PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"],
    ),
    hosted(
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        &["DEEPINFRA_API_BASE"],
        &["DEEPINFRA_API_KEY"],
    ),
    hosted(
        "moonshot",
        "https://api.moonshot.ai/v1",
        &["MOONSHOT_API_BASE"],
        &["MOONSHOT_API_KEY"],
    ),
    hosted(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_BASE"],
        &["DASHSCOPE_API_KEY"],
    ),
    hosted(
        "nvidia_nim",
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_NIM_API_BASE"],
        &["NVIDIA_NIM_API_KEY"],
    ),
    local(
        "ollama",
        Some("http://localhost:11434/v1"),
        &["OLLAMA_OPENAI_BASE"],
        &["OLLAMA_API_KEY"],
    ),
    local(
        "lm_studio",
        Some("http://localhost:1234/v1"),
        &["LM_STUDIO_API_BASE"],
        &["LM_STUDIO_API_KEY"],
    ),
    local(
        "hosted_vllm",
        None,
        &["HOSTED_VLLM_API_BASE"],
        &["HOSTED_VLLM_API_KEY"],
    ),
    local(
        "litellm_proxy",
        None,
        &[PROXY_BASE_VARIABLE],
        &[PROXY_KEY_VARIABLE],
    ),
];

/// Providers that need a translation of their own, which this version lacks.
pub(crate) const NOT_YET: &[&str] = &["cohere"];

/// Base URL of a proxy that serves all providers (`spec/llm.md` §3, §20).
pub(crate) const PROXY_BASE_VARIABLE: &str = "LITELLM_PROXY_API_BASE";
/// Key of that proxy.
pub(crate) const PROXY_KEY_VARIABLE: &str = "LITELLM_PROXY_API_KEY";
/// A token for Anthropic's interface, sent as `Authorization: Bearer`.
pub(crate) const ANTHROPIC_TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// The version of Azure's interface.
pub(crate) const AZURE_VERSION_VARIABLES: &[&str] = &["AZURE_API_VERSION", "OPENAI_API_VERSION"];
/// A token of Microsoft Entra ID.
pub(crate) const AZURE_TOKEN_VARIABLES: &[&str] = &["AZURE_AD_TOKEN", "AZURE_OPENAI_AD_TOKEN"];
/// Organisation of the account at OpenAI.
pub(crate) const ORGANIZATION_VARIABLE: &str = "OPENAI_ORGANIZATION";
/// Project of the account at OpenAI.
pub(crate) const PROJECT_VARIABLE: &str = "OPENAI_PROJECT";

/// The preset of the provider `name`.
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Every variable that the table names.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    PRESETS
        .iter()
        .flat_map(|preset| preset.base_variables.iter().chain(preset.key_variables))
        .copied()
        .chain([
            ORGANIZATION_VARIABLE,
            PROJECT_VARIABLE,
            ANTHROPIC_TOKEN_VARIABLE,
        ])
        .chain(AZURE_VERSION_VARIABLES.iter().copied())
        .chain(AZURE_TOKEN_VARIABLES.iter().copied())
        .chain(vertex::PROJECTS.iter().copied())
        .chain(vertex::LOCATIONS.iter().copied())
        .chain(google::VARIABLES.iter().copied())
        .chain(llm_anthropic::bedrock::VARIABLES.iter().copied())
}

/// The names of all providers that are servers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS
        .iter()
        .map(|preset| preset.name)
        .chain(NOT_YET.iter().copied())
}

/// The names of all providers, for error messages.
pub(crate) fn known() -> String {
    let mut names: Vec<&str> = PRESETS
        .iter()
        .map(|preset| preset.name)
        .chain(["replay", "scripted"])
        .collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_addresses_have_no_slash_at_the_end() {
        let mut names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        names.extend(NOT_YET);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for preset in PRESETS {
            if let Some(base) = preset.base_url {
                assert!(!base.ends_with('/'), "{base}");
            }
            assert!(!preset.key_variables.is_empty(), "{}", preset.name);
        }
    }
}
