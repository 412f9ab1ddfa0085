//! What the generations of Claude take, from their names (`spec/llm.md` §5.5, §18.2, §18.3).

use llm_wire::{claude_version, known_model};

/// How a model can be made to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Not at all.
    Never,
    /// With a budget of tokens.
    Budget,
    /// By itself, with an effort; a budget is still taken.
    Adaptive,
    /// By itself only; a budget is refused.
    AdaptiveOnly,
}

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// How it thinks.
    pub(crate) thinking: Thinking,
    /// Whether it thinks unless it is told not to; then it cannot be made to call one tool.
    pub(crate) thinks_unasked: bool,
    /// Whether it cannot be told not to think, nor be made to call a tool.
    pub(crate) always_thinks: bool,
    /// Whether it takes `temperature`, `top_p` and `top_k`.
    pub(crate) sampling: bool,
    /// Whether it takes `temperature` and `top_p` together.
    pub(crate) both_samplings: bool,
    /// Whether an assistant's turn at the end is taken as the beginning of the reply.
    pub(crate) prefill: bool,
    /// Whether system messages may stand between the turns.
    pub(crate) system_turns: bool,
    /// Whether it keeps to a JSON schema natively (`output_config.format`).
    pub(crate) output_format: bool,
    /// Most tokens of a reply where the model table does not know the model.
    max_output: u64,
}

/// Abilities from a version on, newest first.
const GENERATIONS: &[((u32, u32), Abilities)] = &[
    (
        (5, 0),
        Abilities {
            system_turns: true,
            thinks_unasked: true,
            ..MODERN
        },
    ),
    ((4, 7), MODERN),
    (
        (4, 6),
        Abilities {
            thinking: Thinking::Adaptive,
            sampling: true,
            ..MODERN
        },
    ),
    (
        (4, 5),
        Abilities {
            output_format: true,
            both_samplings: false,
            ..BUDGETED
        },
    ),
    ((3, 7), BUDGETED),
    (
        (3, 5),
        Abilities {
            thinking: Thinking::Never,
            max_output: 8192,
            ..BUDGETED
        },
    ),
    (
        (0, 0),
        Abilities {
            thinking: Thinking::Never,
            max_output: 4096,
            ..BUDGETED
        },
    ),
];

const MODERN: Abilities = Abilities {
    thinking: Thinking::AdaptiveOnly,
    thinks_unasked: false,
    always_thinks: false,
    sampling: false,
    both_samplings: false,
    prefill: false,
    system_turns: false,
    output_format: true,
    max_output: 128_000,
};

const BUDGETED: Abilities = Abilities {
    thinking: Thinking::Budget,
    thinks_unasked: false,
    always_thinks: false,
    sampling: true,
    both_samplings: true,
    prefill: true,
    system_turns: false,
    output_format: false,
    max_output: 32_000,
};

/// Families that always think, and since when (Anthropic's pages of models, November 2026).
const ALWAYS_THINKING: &[(&str, (u32, u32))] =
    &[("fable", (5, 0)), ("mythos", (5, 0)), ("opus", (5, 5))];

/// What is taken for granted of a name without a version: little.
const UNKNOWN: Abilities = Abilities {
    thinking: Thinking::Adaptive,
    sampling: true,
    max_output: 32_000,
    ..MODERN
};

/// What `model` takes.
pub(crate) fn abilities(model: &str) -> Abilities {
    let Some(version) = claude_version(model) else {
        return UNKNOWN;
    };
    let generation = GENERATIONS.iter().find(|(from, _)| version >= *from);
    let mut abilities = generation.map_or(UNKNOWN, |(_, abilities)| *abilities);
    abilities.always_thinks = ALWAYS_THINKING
        .iter()
        .any(|(family, from)| model.contains(family) && version >= *from);
    abilities
}

/// Most tokens of a reply of `model`: from the model table, else by generation.
///
/// Anthropic wants a limit with every request. The model's own limit is the default, as nothing but
/// tokens that are really written is paid for.
pub(crate) fn max_output(model: &str) -> u64 {
    known_model(model).map_or(abilities(model).max_output, |known| known.max_output_tokens)
}

/// Whether `model` can think: the generations since 3.7 can.
pub(crate) fn thinks(model: &str) -> bool {
    abilities(model).thinking != Thinking::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_all_spellings() {
        for (name, expected) in [
            ("claude-sonnet-4-5", Some((4, 5))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-3-7-sonnet@20250219", Some((3, 7))),
            ("claude-3-opus-20240229", Some((3, 0))),
            ("claude-2.1", Some((2, 1))),
            ("claude-opus-5", Some((5, 0))),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", Some((4, 1))),
            ("anthropic.claude-opus-5-v1:0", Some((5, 0))),
            ("claude-next", None),
            ("some-model-4", None),
        ] {
            assert_eq!(claude_version(name), expected, "{name}");
        }
    }

    #[test]
    fn limits_come_from_the_table_first() {
        assert_eq!(max_output("claude-opus-4-1"), 32_000);
        assert_eq!(max_output("claude-sonnet-4-5-20250929"), 64_000);
        assert_eq!(max_output("claude-3-5-haiku-20241022"), 8192);
        assert_eq!(max_output("claude-opus-5"), 128_000);
    }

    #[test]
    fn generations_think_in_their_own_way() {
        let thinking = |name| abilities(name).thinking;
        assert_eq!(thinking("claude-3-5-sonnet-20241022"), Thinking::Never);
        assert_eq!(thinking("claude-haiku-4-5"), Thinking::Budget);
        assert_eq!(thinking("claude-sonnet-4-6"), Thinking::Adaptive);
        assert_eq!(thinking("claude-opus-4-7"), Thinking::AdaptiveOnly);
        assert!(abilities("claude-sonnet-4-6").sampling && !abilities("claude-opus-4-7").sampling);
        assert!(abilities("claude-opus-5").system_turns);
        let always = |name| abilities(name).always_thinks;
        assert!(always("claude-opus-5-5") && always("claude-fable-5-1"));
        assert!(!always("claude-opus-5") && !always("claude-sonnet-5-5"));
        assert!(!abilities("claude-sonnet-4-6").prefill && abilities("claude-opus-4-5").prefill);
    }
}
