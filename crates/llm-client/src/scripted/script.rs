//! The script file.

use std::path::{Path, PathBuf};

use formats::chat::{Content, Message, Usage};
use serde::Deserialize;
use serde_json::Value;

/// Most bytes of a script file.
const LARGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// A script: rules that look at the conversation, and turns in order for the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// What the model says at its first, second, … turn.
    #[serde(default)]
    pub(crate) turns: Vec<Turn>,
    /// What it says instead where a condition holds; the first one counts.
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
}

/// One answer under a condition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) when: Condition,
    pub(crate) reply: Turn,
}

/// What must hold of the conversation; all that is given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// The turn's number, counted from 0.
    #[serde(default)]
    turn: Option<usize>,
    /// The text of the last message contains this.
    #[serde(default)]
    last_message_contains: Option<Texts>,
    /// The text of some message contains this.
    #[serde(default)]
    any_message_contains: Option<Texts>,
    /// No message's text contains this.
    #[serde(default)]
    no_message_contains: Option<Texts>,
    /// The role of the last message, such as `tool`.
    #[serde(default)]
    last_role: Option<String>,
}

/// One text, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// One answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// The text (or content parts).
    #[serde(default)]
    pub(crate) content: Option<Content>,
    /// A value whose JSON text is the content; for judges.
    #[serde(default)]
    pub(crate) json: Option<Value>,
    #[serde(default)]
    pub(crate) tool_calls: Vec<Call>,
    /// `stop` or `tool_calls` if unset, whichever fits.
    #[serde(default)]
    pub(crate) finish_reason: Option<String>,
    /// An estimate if unset.
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
    /// How long the model thinks, in milliseconds.
    #[serde(default)]
    pub(crate) delay_ms: u64,
}

/// One tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// An object, or the raw text that the model writes in its place.
    #[serde(default = "no_arguments")]
    pub(crate) arguments: Value,
    /// Made up if unset.
    #[serde(default)]
    pub(crate) id: Option<String>,
}

fn no_arguments() -> Value {
    Value::Object(formats::Object::new())
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("cannot read the script {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the script {} has {size} bytes, limit is {LARGEST_SCRIPT}", path.display())]
    TooLarge { path: PathBuf, size: u64 },
    #[error("the script {} is wrong: {source}", path.display())]
    Syntax {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("the script {}: {place} {rule}", path.display())]
    Rule {
        path: PathBuf,
        place: String,
        rule: &'static str,
    },
}

impl Script {
    /// Reads the file at `path`: an object with `turns` and `rules`, or a plain array of turns.
    pub(crate) fn load(path: &Path) -> Result<Self, ScriptError> {
        let read_error = |source| ScriptError::Read {
            path: path.to_owned(),
            source,
        };
        let size = std::fs::metadata(path).map_err(read_error)?.len();
        if size > LARGEST_SCRIPT {
            return Err(ScriptError::TooLarge {
                path: path.to_owned(),
                size,
            });
        }
        let text = std::fs::read_to_string(path).map_err(read_error)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, ScriptError> {
        // Looked at by hand: an untagged enum would lose the line of a mistake.
        let parsed = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map(|turns| Self {
                turns,
                rules: Vec::new(),
            })
        } else {
            serde_json::from_str(text)
        };
        let script: Self = parsed.map_err(|source| ScriptError::Syntax {
            path: path.to_owned(),
            source,
        })?;
        script.check(path)?;
        Ok(script)
    }

    fn check(&self, path: &Path) -> Result<(), ScriptError> {
        let wrong = |place: String, rule| {
            Err(ScriptError::Rule {
                path: path.to_owned(),
                place,
                rule,
            })
        };
        if self.turns.is_empty() && self.rules.is_empty() {
            return wrong("it".to_owned(), "has neither turns nor rules");
        }
        let turns = self
            .turns
            .iter()
            .enumerate()
            .map(|(index, turn)| (format!("turns[{index}]"), turn));
        let replies = self
            .rules
            .iter()
            .enumerate()
            .map(|(index, rule)| (format!("rules[{index}].reply"), &rule.reply));
        for (place, turn) in turns.chain(replies) {
            if turn.content.is_some() && turn.json.is_some() {
                return wrong(place, "has both `content` and `json`");
            }
            if turn.content.is_none() && turn.json.is_none() && turn.tool_calls.is_empty() {
                return wrong(
                    place,
                    "has neither `content` nor `json` nor `tool_calls` (an empty reply is `\"content\": \"\"`)",
                );
            }
        }
        Ok(())
    }
}

impl Condition {
    /// Whether everything that is given holds of `messages`, which are at the turn `number`.
    pub(crate) fn holds(&self, messages: &[Message], number: usize) -> bool {
        let last = messages.last();
        let all = |texts: &Option<Texts>, holds: &dyn Fn(&str) -> bool| {
            texts
                .as_ref()
                .is_none_or(|texts| texts.as_slice().iter().all(|text| holds(text)))
        };
        let some_message =
            |text: &str| messages.iter().any(|message| message.text().contains(text));
        self.turn.is_none_or(|turn| turn == number)
            && self
                .last_role
                .as_ref()
                .is_none_or(|role| last.is_some_and(|message| message.role.as_str() == role))
            && all(&self.last_message_contains, &|text| {
                last.is_some_and(|message| message.text().contains(text))
            })
            && all(&self.any_message_contains, &some_message)
            && all(&self.no_message_contains, &|text| !some_message(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, String> {
        Script::parse(text, Path::new("s.json")).map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, expected) in [
            ("{\n  \"turns\": [,]\n}", "line 2 column 13"),
            (
                "{\"turns\": [{\"contents\": \"x\"}]}",
                "unknown field `contents`",
            ),
            (
                "[{\"content\": \"x\", \"tool_call\": []}]",
                "unknown field `tool_call`",
            ),
            ("{\"turns\": []}", "neither turns nor rules"),
            ("[{}]", "turns[0] has neither"),
            ("[{\"content\": \"\", \"json\": {}}]", "turns[0] has both"),
            (
                "{\"rules\": [{\"when\": {\"first\": 1}, \"reply\": {\"content\": \"\"}}]}",
                "unknown field `first`",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains(expected) && error.contains("s.json"),
                "{error}"
            );
        }
    }

    #[test]
    fn conditions_are_joined_by_and() {
        let script = parse(
            r#"{"rules": [{"when": {"turn": 1, "last_message_contains": ["a", "b"],
                "any_message_contains": "start", "no_message_contains": "stop", "last_role": "user"},
                "reply": {"content": "yes"}}]}"#,
        )
        .unwrap();
        let when = &script.rules[0].when;
        let fits = [Message::system("start"), Message::user("b a")];
        assert!(when.holds(&fits, 1));
        assert!(!when.holds(&fits, 0));
        assert!(!when.holds(&fits[1..], 1));
        assert!(!when.holds(&[Message::system("start"), Message::user("a")], 1));
        assert!(!when.holds(&[Message::user("start stop"), Message::user("ab")], 1));
        assert!(!when.holds(&[Message::user("start"), Message::tool("c", "f", "ab")], 1));
        assert!(!when.holds(&[], 1));
    }
}
