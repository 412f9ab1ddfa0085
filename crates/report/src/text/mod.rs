//! Reports for a terminal or a log.

pub(crate) mod changes;
mod run;
pub(crate) mod steps;
mod trial;
pub(crate) mod verifiers;

pub use changes::diff;
pub use run::{budget, run};
pub use steps::Steps;
pub use trial::trial;

/// How text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether words are coloured. Everything can be understood without; the caller decides by
    /// `NO_COLOR` and by whether there is a terminal.
    pub colour: bool,
    /// Columns of a line.
    pub width: usize,
}

impl Default for Style {
    /// No colour, 100 columns.
    fn default() -> Self {
        Self {
            colour: false,
            width: 100,
        }
    }
}

/// The few colours that reports use (ECMA-48, select graphic rendition).
#[derive(Debug, Clone, Copy)]
enum Colour {
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Style {
    /// Coloured output at the default width.
    #[must_use]
    pub fn coloured() -> Self {
        Self {
            colour: true,
            ..Self::default()
        }
    }

    fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => 1,
            Colour::Dim => 2,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
