//! Text of bounded length.

use crate::document::{Document, Format};
use crate::limits::Limits;

/// Collects text up to a number of characters and remembers whether something was left out.
pub(crate) struct TextSink {
    text: String,
    chars: usize,
    limit: usize,
    truncated: bool,
}

impl TextSink {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            limit: limits.text_chars,
            truncated: false,
        }
    }

    /// Adds `text`, or as much of it as fits.
    pub(crate) fn push(&mut self, text: &str) {
        let room = self.limit - self.chars;
        match text.char_indices().nth(room) {
            None => {
                self.chars += text.chars().count();
                self.text.push_str(text);
            }
            Some((end, _)) => {
                self.text.push_str(&text[..end]);
                self.chars = self.limit;
                self.truncated = true;
            }
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.push(text);
        self.push("\n");
    }

    /// Whether nothing more fits; a reason to stop reading.
    pub(crate) const fn is_full(&self) -> bool {
        self.truncated
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn into_document(self, format: Format) -> Document {
        let mut document = Document {
            format,
            text: self.text,
            truncated: self.truncated,
            ..Document::default()
        };
        if self.truncated {
            document.notes.push(format!(
                "the text is cut after {} characters (limit `text_chars`)",
                self.limit
            ));
        }
        document
    }
}
