//! What the generations of Gemini take, from their names (<https://ai.google.dev/gemini-api/docs/thinking>).

/// How a model can be made to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Not at all.
    Never,
    /// With a budget of tokens, from the first number to the second; 0 turns it off where the third
    /// says so.
    Budget {
        least: u64,
        most: u64,
        can_stop: bool,
    },
    /// With one of these levels, the lowest first; it cannot be turned off.
    Levels(&'static [&'static str]),
}

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// How it thinks.
    pub(crate) thinking: Thinking,
    /// Calls and results have ids, and the first call of a step must have a thought signature.
    pub(crate) signed_calls: bool,
    /// Pictures and documents may stand within a function response.
    pub(crate) media_in_results: bool,
    /// The resolution of a picture is set on its part rather than for the whole request.
    pub(crate) part_resolution: bool,
    /// It takes penalties for repetition.
    pub(crate) penalties: bool,
    /// JSON can be demanded beside functions.
    pub(crate) json_beside_tools: bool,
    /// It takes JSON Schema for answers (`responseJsonSchema`).
    pub(crate) json_schema: bool,
}

const MODERN: Abilities = Abilities {
    thinking: Thinking::Levels(&["minimal", "low", "medium", "high"]),
    signed_calls: true,
    media_in_results: true,
    part_resolution: true,
    penalties: false,
    json_beside_tools: true,
    json_schema: true,
};

const EARLIER: Abilities = Abilities {
    thinking: Thinking::Never,
    signed_calls: false,
    media_in_results: false,
    part_resolution: false,
    penalties: true,
    json_beside_tools: false,
    json_schema: true,
};

/// What `model` takes. A name without a version, such as `gemini-flash-latest`, is that of a new model.
pub(crate) fn abilities(model: &str) -> Abilities {
    let is = |word: &str| model.split(['-', '/']).any(|part| part == word);
    match version(model) {
        Some(version) if version < (2, 0) => Abilities {
            json_schema: false,
            ..EARLIER
        },
        Some(version) if version < (2, 5) => EARLIER,
        Some(version) if version < (3, 0) => Abilities {
            thinking: if is("pro") {
                Thinking::Budget {
                    least: 128,
                    most: 32_768,
                    can_stop: false,
                }
            } else {
                Thinking::Budget {
                    least: if is("lite") { 512 } else { 128 },
                    most: 24_576,
                    can_stop: true,
                }
            },
            ..EARLIER
        },
        Some((3, 0)) if is("pro") => Abilities {
            thinking: Thinking::Levels(&["low", "high"]),
            ..MODERN
        },
        _ if is("pro") => Abilities {
            thinking: Thinking::Levels(&["low", "medium", "high"]),
            ..MODERN
        },
        _ => MODERN,
    }
}

/// Major and minor version in names such as `gemini-2.5-pro-preview-05-06` or `gemini-3-flash-preview`.
pub fn version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("gemini-")?;
    let number = name.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_told_apart_by_name() {
        let thinking = |model| abilities(model).thinking;
        assert_eq!(thinking("gemini-2.0-flash-001"), Thinking::Never);
        assert!(
            !abilities("gemini-1.5-pro").json_schema && abilities("gemini-2.0-flash").json_schema
        );
        assert!(matches!(
            thinking("gemini-2.5-pro-preview-05-06"),
            Thinking::Budget {
                least: 128,
                most: 32_768,
                can_stop: false
            }
        ));
        assert!(matches!(
            thinking("gemini-2.5-flash-lite"),
            Thinking::Budget {
                least: 512,
                can_stop: true,
                ..
            }
        ));
        assert_eq!(
            thinking("gemini-3-pro-preview"),
            Thinking::Levels(&["low", "high"])
        );
        assert_eq!(
            thinking("gemini-3.1-pro-preview"),
            Thinking::Levels(&["low", "medium", "high"])
        );
        for new in [
            "gemini-3-flash-preview",
            "gemini-3.5-flash",
            "gemini-flash-latest",
            "tunedModels/mine",
        ] {
            assert_eq!(abilities(new), MODERN, "{new}");
        }
        assert!(!abilities("publishers/google/models/gemini-2.5-flash").signed_calls);
    }
}
