//! Tool names on the wire.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use formats::chat::{Message, ToolDefinition};

/// Longest name.
const LONGEST: usize = 64;

/// Which names are taken.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// `^[A-Za-z0-9_-]{1,64}$`: tools at OpenAI and Anthropic.
    #[default]
    Word,
    /// The same, and no digit or hyphen first: tools at Google.
    LetterFirst,
    /// `^[A-Za-z_][A-Za-z0-9_]{0,63}$`: parameters at Google.
    Identifier,
}

impl NameRule {
    /// Whether `name` is taken.
    pub fn fits(self, name: &str) -> bool {
        (1..=LONGEST).contains(&name.len())
            && name.chars().all(|character| self.takes(character))
            && name.chars().next().is_some_and(|first| self.begins(first))
    }

    /// A name in the place of one that is not taken: its readable part and a check sum.
    pub fn mapped(self, name: &str) -> String {
        let sum = format!("{:08x}", check_sum(name.as_bytes()));
        let mut wire = String::with_capacity(LONGEST);
        for character in name.chars() {
            let character = if self.takes(character) {
                character
            } else {
                '_'
            };
            if wire.is_empty() && !self.begins(character) {
                wire.push('_');
            }
            if wire.len() == LONGEST - sum.len() - 1 {
                break;
            }
            wire.push(character);
        }
        wire.push('_');
        wire.push_str(&sum);
        wire
    }

    fn takes(self, character: char) -> bool {
        character.is_ascii_alphanumeric()
            || character == '_'
            || (character == '-' && self != Self::Identifier)
    }

    fn begins(self, character: char) -> bool {
        self == Self::Word || character.is_ascii_alphabetic() || character == '_'
    }
}

/// The names of one request that have to be written differently.
///
/// A name that fits stays as it is. Any other name becomes its readable part plus a check sum, so
/// that it does not depend on the other tools of the request, and is the same at every step.
#[derive(Debug, Default)]
pub struct ToolNames {
    rule: NameRule,
    to_wire: HashMap<String, String>,
    from_wire: HashMap<String, String>,
}

impl ToolNames {
    /// The names of `tools` and of all calls in `messages`, as words.
    pub fn new(tools: &[ToolDefinition], messages: &[Message]) -> Self {
        Self::under(NameRule::Word, tools, messages)
    }

    /// The names of `tools` and of all calls in `messages` under `rule`.
    pub fn under(rule: NameRule, tools: &[ToolDefinition], messages: &[Message]) -> Self {
        let offered = tools.iter().map(|tool| tool.function.name.as_str());
        let called = messages
            .iter()
            .flat_map(|message| &message.tool_calls)
            .map(|call| call.function.name.as_str());
        let all = offered.chain(called);
        let mut odd = Vec::new();
        for name in all.clone().filter(|name| !rule.fits(name)) {
            if !odd.contains(&name) {
                odd.push(name);
            }
        }
        let mut names = Self {
            rule,
            ..Self::default()
        };
        if odd.is_empty() {
            return names;
        }
        let taken: HashSet<&str> = all.filter(|name| rule.fits(name)).collect();
        for name in odd {
            let mut wire = rule.mapped(name);
            let mut count = 1_u32;
            while taken.contains(wire.as_str()) || names.from_wire.contains_key(&wire) {
                count += 1;
                wire = rule.mapped(&format!("{name} {count}"));
            }
            names.to_wire.insert(name.to_owned(), wire.clone());
            names.from_wire.insert(wire, name.to_owned());
        }
        names
    }

    /// The name on the wire of the tool `name`.
    pub fn wire<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        if self.rule.fits(name) {
            return Cow::Borrowed(name);
        }
        match self.to_wire.get(name) {
            Some(wire) => Cow::Borrowed(wire),
            None => Cow::Owned(self.rule.mapped(name)),
        }
    }

    /// The tool that the model calls by the name `wire`.
    pub fn original<'n>(&'n self, wire: &'n str) -> &'n str {
        self.from_wire.get(wire).map_or(wire, String::as_str)
    }
}

/// FNV-1a with 32 bits: small, and the same for all time, which the standard library's hasher does
/// not promise.
pub(super) fn check_sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tools(names: &[String]) -> Vec<ToolDefinition> {
        names
            .iter()
            .map(|name| ToolDefinition::new(name, "", json!({})))
            .collect()
    }

    #[test]
    fn check_sum_is_the_published_one() {
        // From the list of test vectors of the FNV authors.
        assert_eq!(check_sum(b""), 0x811c_9dc5);
        assert_eq!(check_sum(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn a_name_that_fits_is_never_taken_over() {
        let odd = "fs.read".to_owned();
        let thief = NameRule::Word.mapped(&odd);
        let names = ToolNames::new(&tools(&[odd.clone(), thief.clone()]), &[]);
        assert_eq!(names.wire(&thief), thief.as_str());
        assert_eq!(names.original(&thief), thief);
        assert_ne!(names.wire(&odd), thief.as_str());
        assert_eq!(names.original(&names.wire(&odd)), odd);
    }

    #[test]
    fn rules_differ_in_their_first_character_and_in_hyphens() {
        for (name, word, letter_first, identifier) in [
            ("read", true, true, true),
            ("read-file", true, true, false),
            ("2fast", true, false, false),
            ("-x", true, false, false),
            ("_x", true, true, true),
            ("a.b", false, false, false),
            ("größe", false, false, false),
            ("", false, false, false),
        ] {
            assert_eq!(NameRule::Word.fits(name), word, "{name}");
            assert_eq!(NameRule::LetterFirst.fits(name), letter_first, "{name}");
            assert_eq!(NameRule::Identifier.fits(name), identifier, "{name}");
        }
        assert!(NameRule::LetterFirst.mapped("2fast").starts_with("_2fast_"));
    }

    proptest! {
        #[test]
        fn names_fit_are_unique_and_come_back(
            names in proptest::collection::hash_set(".{0,80}", 0..12),
            rule in proptest::sample::select(vec![NameRule::Word, NameRule::LetterFirst, NameRule::Identifier]),
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let map = ToolNames::under(rule, &tools(&names), &[]);
            let mut seen = HashSet::new();
            for name in &names {
                let wire = map.wire(name).into_owned();
                prop_assert!(rule.fits(&wire), "{wire:?}");
                prop_assert_eq!(map.original(&wire), name);
                prop_assert!(seen.insert(wire));
            }
        }

        #[test]
        fn a_name_does_not_depend_on_its_neighbours(name in ".{1,80}", other in "[a-z.]{1,10}") {
            let alone = ToolNames::new(&tools(std::slice::from_ref(&name)), &[]).wire(&name).into_owned();
            let together = ToolNames::new(&tools(&[other, name.clone()]), &[]).wire(&name).into_owned();
            prop_assert_eq!(alone, together);
        }
    }
}
