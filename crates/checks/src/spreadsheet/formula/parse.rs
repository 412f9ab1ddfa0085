//! The text of a formula as a tree.

use super::{Worth, result};

/// Expressions inside of each other at most.
const MAX_DEPTH: usize = 64;

/// Cells of one range at most.
const MAX_RANGE: u64 = 500_000;

/// A formula, or a part of one.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Number(f64),
    Text(String),
    Truth(bool),
    Reference(Reference),
    Negative(Box<Expression>),
    Percent(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
}

/// The last row that a sheet can have, from 0.
pub(super) const LAST_ROW: u32 = 1_048_575;

/// Cells of a sheet, from the upper left to the lower right one; rows and columns from 0. Whole
/// columns end in the [`LAST_ROW`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) sheet: Option<String>,
    pub(super) first: (u32, u32),
    pub(super) last: (u32, u32),
}

/// What stands between two values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operator {
    Join,
    Compare(Test),
    Calculate(fn(f64, f64) -> Worth),
}

/// Reads a formula, with `=` in front or without.
///
/// # Errors
/// What in it is not known here.
pub(super) fn formula(text: &str) -> Result<Expression, String> {
    let text = text.trim();
    let text = text.strip_prefix('=').unwrap_or(text);
    let mut parser = Parser {
        rest: text,
        depth: 0,
    };
    let expression = parser.expression(0)?;
    parser.blank();
    if parser.rest.is_empty() {
        Ok(expression)
    } else {
        Err(parser.unknown())
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

fn divided(a: f64, b: f64) -> Worth {
    if b == 0.0 {
        Worth::Error("#DIV/0!".to_owned())
    } else {
        result(a / b)
    }
}

/// What of an order of two values a comparison asks for.
pub(super) type Test = fn(std::cmp::Ordering) -> bool;

/// Comparisons; longer signs first.
pub(super) const COMPARISONS: [(&str, Test); 6] = [
    ("<>", std::cmp::Ordering::is_ne),
    ("<=", std::cmp::Ordering::is_le),
    (">=", std::cmp::Ordering::is_ge),
    ("=", std::cmp::Ordering::is_eq),
    ("<", std::cmp::Ordering::is_lt),
    (">", std::cmp::Ordering::is_gt),
];

/// Other operators with the strength with which they bind; comparisons bind least.
const OPERATORS: [(&str, u8, Operator); 6] = [
    ("&", 2, Operator::Join),
    ("+", 3, Operator::Calculate(|a, b| result(a + b))),
    ("-", 3, Operator::Calculate(|a, b| result(a - b))),
    ("*", 4, Operator::Calculate(|a, b| result(a * b))),
    ("/", 4, Operator::Calculate(divided)),
    ("^", 5, Operator::Calculate(|a, b| result(a.powf(b)))),
];

impl<'a> Parser<'a> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn unknown(&self) -> String {
        let shown: String = self.rest.chars().take(20).collect();
        if shown.is_empty() {
            "the formula is cut".to_owned()
        } else {
            format!("`{shown}` in the formula is not known")
        }
    }

    /// Operators that bind at least as strongly as `least`, from left to right.
    fn expression(&mut self, least: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("the formula is nested more than {MAX_DEPTH} deep"));
        }
        let mut left = self.operand()?;
        loop {
            self.blank();
            let comparisons = COMPARISONS.map(|(text, test)| (text, 1, Operator::Compare(test)));
            let mut operators = comparisons.into_iter().chain(OPERATORS);
            let found = operators
                .find(|(text, strength, _)| *strength >= least && self.rest.starts_with(text));
            let Some((text, strength, operator)) = found else {
                break;
            };
            self.take(text);
            let right = self.expression(strength + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    /// A value with the signs in front of it, which bind more strongly than `^`, and `%` behind it.
    fn operand(&mut self) -> Result<Expression, String> {
        self.blank();
        let mut negative = false;
        loop {
            if self.take("-") {
                negative = !negative;
            } else if !self.take("+") {
                break;
            }
            self.blank();
        }
        let mut value = self.value()?;
        self.blank();
        while self.take("%") {
            value = Expression::Percent(Box::new(value));
            self.blank();
        }
        Ok(if negative {
            Expression::Negative(Box::new(value))
        } else {
            value
        })
    }

    fn value(&mut self) -> Result<Expression, String> {
        if self.take("(") {
            let inner = self.expression(0)?;
            self.blank();
            return if self.take(")") {
                Ok(inner)
            } else {
                Err(self.unknown())
            };
        }
        if self.rest.starts_with('"') {
            return self.quoted('"').map(Expression::Text);
        }
        if self
            .rest
            .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return self.number();
        }
        if self.rest.starts_with('\'') {
            let sheet = self.quoted('\'')?;
            return if self.take("!") {
                self.reference(Some(sheet))
            } else {
                Err(self.unknown())
            };
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, behind) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(self.unknown());
        }
        if let Some(behind) = behind.strip_prefix('!') {
            self.rest = behind;
            return self.reference(Some(word.to_owned()));
        }
        if let Some(behind) = behind.strip_prefix('(') {
            self.rest = behind;
            let name = word.to_uppercase();
            let name = name.strip_prefix("_XLFN.").unwrap_or(&name).to_owned();
            return self.arguments().map(|given| Expression::Call(name, given));
        }
        match word.to_uppercase().as_str() {
            "TRUE" => {
                self.rest = behind;
                Ok(Expression::Truth(true))
            }
            "FALSE" => {
                self.rest = behind;
                Ok(Expression::Truth(false))
            }
            _ => self.reference(None),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        self.blank();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(0)?);
            self.blank();
            if self.take(")") {
                return Ok(arguments);
            }
            if !self.take(",") {
                return Err(self.unknown());
            }
        }
    }

    fn number(&mut self) -> Result<Expression, String> {
        let text = self.rest;
        let digits = |from: usize| {
            let rest = &text[from..];
            from + rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len())
        };
        let mut end = digits(0);
        if text[end..].starts_with('.') {
            end = digits(end + 1);
        }
        if text[end..].starts_with(['e', 'E']) {
            let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
            let last = digits(end + 1 + sign);
            if last > end + 1 + sign {
                end = last;
            }
        }
        let number = text[..end].parse().map_err(|_| self.unknown())?;
        self.rest = &text[end..];
        Ok(Expression::Number(number))
    }

    /// Text between `quote`s; a doubled one stands for itself.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                text.push(c);
            } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
                text.push(quote);
            } else {
                self.rest = &self.rest[at + c.len_utf8()..];
                return Ok(text);
            }
        }
        Err("the formula is cut".to_owned())
    }

    fn reference(&mut self, sheet: Option<String>) -> Result<Expression, String> {
        if let Some((one, other)) = self.columns() {
            return Ok(Expression::Reference(Reference {
                sheet,
                first: (0, one.min(other)),
                last: (LAST_ROW, one.max(other)),
            }));
        }
        let before = self.rest;
        let unknown = |rest: &str| Parser { rest, depth: 0 }.unknown();
        let one = self.cell().ok_or_else(|| unknown(before))?;
        let other = if self.take(":") {
            self.cell().ok_or_else(|| unknown(before))?
        } else {
            one
        };
        let first = (one.0.min(other.0), one.1.min(other.1));
        let last = (one.0.max(other.0), one.1.max(other.1));
        let count = u64::from(last.0 - first.0 + 1) * u64::from(last.1 - first.1 + 1);
        if count > MAX_RANGE {
            return Err(format!("a range of the formula has {count} cells"));
        }
        Ok(Expression::Reference(Reference { sheet, first, last }))
    }

    /// `$A:$C` as columns from 0.
    fn columns(&mut self) -> Option<(u32, u32)> {
        let is_part = |c: char| c.is_ascii_alphabetic() || c == '$';
        let word = |text: &'a str| {
            let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
            // With the row 1 it is the name of a cell.
            let name = format!("{}1", text[..end].replace('$', ""));
            let (_, column) = crate::spreadsheet::check::cell(&name)?;
            Some((column, &text[end..]))
        };
        let (one, rest) = word(self.rest)?;
        let (other, rest) = word(rest.strip_prefix(':')?)?;
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '(');
        if rest.starts_with(goes_on) {
            return None;
        }
        self.rest = rest;
        Some((one, other))
    }

    /// `$B$3` as row and column from 0.
    fn cell(&mut self) -> Option<(u32, u32)> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '$';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let name = self.rest[..end].replace('$', "");
        let (row, column) = crate::spreadsheet::check::cell(&name)?;
        self.rest = &self.rest[end..];
        Some((row, column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formulas come from agents: whatever is cut out of them, or put into them, ends in an answer.
    #[test]
    fn no_text_is_too_strange() {
        let samples = [
            "=IF('é!'!$A$1>=1.5E+3,\"a\"\"ß\",SUM(Straße!B2:C9)%)&-+2^3",
            "_xlfn.CONCAT(A1,TRUE,\"\")<>FALSE",
        ];
        let strange = [
            "", "\"", "'", "!", "(", ")", ",", ":", "$", "é", "1E", ".", "%", "=", "\u{0}",
        ];
        let mut read = 0;
        for sample in samples {
            assert!(formula(sample).is_ok(), "{sample}: {:?}", formula(sample));
            for (at, c) in sample.char_indices() {
                for inserted in strange {
                    let rest = &sample[at + c.len_utf8()..];
                    for text in [
                        format!("{}{inserted}{rest}", &sample[..at]),
                        format!("{}{inserted}", &sample[..at]),
                        format!("{inserted}{rest}"),
                    ] {
                        read += usize::from(formula(&text).is_ok());
                    }
                }
            }
        }
        // Many of them are formulas all the same.
        assert!(read > 100, "{read}");
    }

    #[test]
    fn references_are_rows_and_columns_from_0() {
        for (text, sheet, first, last) in [
            ("$C$2", None, (1, 2), (1, 2)),
            ("B9:A3", None, (2, 0), (8, 1)),
            ("$C:A", None, (0, 0), (LAST_ROW, 2)),
            ("Data!A1", Some("Data"), (0, 0), (0, 0)),
            ("'It''s'!A1:B2", Some("It's"), (0, 0), (1, 1)),
        ] {
            let Ok(Expression::Reference(reference)) = formula(text) else {
                panic!("{text} is no reference");
            };
            let sheet = sheet.map(str::to_owned);
            assert_eq!(reference, Reference { sheet, first, last }, "{text}");
        }
        for bad in [
            "A:A1",
            "1:1",
            "A1:B",
            "ABCD1",
            "A1:ZZZ1048576",
            "Name",
            "A1 B1",
            "{1,2}",
            "Data!",
        ] {
            assert!(formula(bad).is_err(), "{bad}");
        }
    }
}
