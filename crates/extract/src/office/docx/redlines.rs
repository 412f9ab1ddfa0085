//! Tracked changes (`spec/grading.md` §8.5).

use super::super::xml::{Node, attribute};

/// Characters of one change that are shown.
const SHOWN: usize = 1_000;

/// The tracked changes of a document, in its order.
#[derive(Default)]
pub(super) struct Redlines {
    open: Vec<Change>,
    done: Vec<Change>,
    in_text: bool,
}

struct Change {
    what: &'static str,
    author: String,
    place: String,
    text: String,
}

impl Redlines {
    /// Takes note of what is inserted, deleted and moved; `place` says where.
    pub(super) fn visit(&mut self, node: Node<'_, '_>, place: impl FnOnce() -> String) {
        match node {
            Node::Open(name, element) => {
                if let Some(what) = word(name) {
                    self.open.push(Change {
                        what,
                        author: attribute(element, "author").unwrap_or_default(),
                        place: place(),
                        text: String::new(),
                    });
                }
                self.in_text |= matches!(name, "t" | "delText");
            }
            Node::Text(text) if self.in_text => {
                if let Some(change) = self.open.last_mut() {
                    change.text.push_str(text);
                }
            }
            Node::Text(_) => {}
            Node::Close("t" | "delText") => self.in_text = false,
            Node::Close(name) => {
                if word(name).is_some()
                    && let Some(change) = self.open.pop()
                    // Marks of paragraphs and rows are changes without text.
                    && !change.text.trim().is_empty()
                {
                    self.done.push(change);
                }
            }
        }
    }

    /// The changes under the names of those who made them.
    pub(super) fn into_text(self) -> Option<String> {
        let mut authors: Vec<&str> = Vec::new();
        for change in &self.done {
            if !authors.contains(&change.author.as_str()) {
                authors.push(&change.author);
            }
        }
        let mut text = "=== DOCUMENT REDLINES ===\n".to_owned();
        for author in &authors {
            text.push_str(&format!("Author: {author}\n"));
            for change in self.done.iter().filter(|change| change.author == *author) {
                let shown: String = change.text.chars().take(SHOWN).collect();
                text.push_str(&format!(
                    "[{}] {}: \"{shown}\"\n",
                    change.place, change.what
                ));
            }
        }
        (!authors.is_empty()).then_some(text)
    }
}

fn word(element: &str) -> Option<&'static str> {
    Some(match element {
        "ins" => "INSERTED",
        "del" => "DELETED",
        "moveFrom" => "MOVED FROM",
        "moveTo" => "MOVED TO",
        _ => return None,
    })
}

/// What a paragraph is called as the place of changes after it, if it is like a heading: it begins
/// with SECTION or ARTICLE and a number, or with a dotted number.
pub(super) fn heading_like(paragraph: &str) -> Option<String> {
    let mut words = paragraph.split_whitespace();
    let first = words.next()?;
    let is_number = |word: &str| {
        let word = word.trim_end_matches([':', '.', ')', ',']);
        let roman = word.chars().all(|c| "IVXLCivxlc".contains(c));
        !word.is_empty() && (roman || word.split('.').all(|part| part.parse::<u32>().is_ok()))
    };
    let named = matches!(first.to_uppercase().as_str(), "SECTION" | "ARTICLE")
        && words.next().is_some_and(is_number);
    let dotted =
        first.contains('.') && first.starts_with(|c: char| c.is_ascii_digit()) && is_number(first);
    if !named && !dotted {
        return None;
    }
    // The dot of the number itself ends no sentence.
    let number = if named {
        words_end(paragraph, 2)
    } else {
        first.len()
    };
    let sentence = match paragraph[number..].find(". ") {
        Some(end) => &paragraph[..=number + end],
        None => paragraph,
    };
    Some(sentence.chars().take(60).collect())
}

/// Where the word of this number (from 1) ends.
fn words_end(text: &str, count: usize) -> usize {
    let mut end = 0;
    for word in text.split_whitespace().take(count) {
        end += text[end..].find(word).unwrap_or(0) + word.len();
    }
    end
}
