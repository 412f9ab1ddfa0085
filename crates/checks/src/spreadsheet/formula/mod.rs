//! Results of formulas that no program has calculated yet: libraries write a workbook without them.
//!
//! Numbers, texts, operators, references and the functions of plain tables are known. What is not
//! known here is an error that says so, and never a wrong number.

mod functions;
mod parse;

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use self::functions::{apply, known};
use self::parse::{Expression, Operator, Reference};
use super::sheet::Book;

/// Cells that one calculation may look at.
const MAX_LOOKS: usize = 2_000_000;

/// The position of a sheet in the workbook, and row and column from 0.
type At = (usize, u32, u32);

/// Why an evaluation does not come to an end.
enum Stop {
    /// First these formulas are to be calculated. Chains of formulas can be as long as a sheet, so
    /// they are not followed by recursion.
    Needs(Vec<At>),
    /// There is no result.
    Unknown(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Unknown(reason)
    }
}

/// A value inside of a formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Worth {
    Empty,
    Number(f64),
    Text(String),
    Truth(bool),
    /// An error of the table, such as `#DIV/0!`.
    Error(String),
}

/// What an argument is: one value, or the cells of a range in rows.
#[derive(Debug, Clone)]
enum Argument {
    One(Worth),
    Range(Vec<Vec<Worth>>),
}

/// Calculates cells of a workbook.
pub(super) struct Calculation<'b, 'a> {
    book: &'b mut Book<'a>,
    known: HashMap<At, Worth>,
    looks_left: usize,
}

impl<'b, 'a> Calculation<'b, 'a> {
    pub(super) fn new(book: &'b mut Book<'a>) -> Self {
        Self {
            book,
            known: HashMap::new(),
            looks_left: MAX_LOOKS,
        }
    }

    /// The value of a cell of the sheet at the position `sheet` in the workbook.
    ///
    /// # Errors
    /// Why it cannot be calculated.
    pub(super) fn cell(&mut self, sheet: usize, row: u32, column: u32) -> Result<Value, String> {
        let wanted = (sheet, row, column);
        let mut open = vec![wanted];
        // Formulas that wait for others: one that such another needs has no result.
        let mut waiting = HashSet::new();
        while let Some(at) = open.last().copied() {
            if self.known.contains_key(&at) {
                open.pop();
                continue;
            }
            match self.formula(at) {
                Ok(worth) => {
                    self.known.insert(at, worth);
                    waiting.remove(&at);
                }
                Err(Stop::Needs(others)) => {
                    waiting.insert(at);
                    if others.iter().any(|other| waiting.contains(other)) {
                        return Err("it needs its own result".to_owned());
                    }
                    open.extend(others);
                }
                Err(Stop::Unknown(reason)) => return Err(reason),
            }
        }
        let worth = self.known.get(&wanted).cloned();
        Ok(worth.unwrap_or(Worth::Empty).into_json())
    }

    /// The result of the formula at `at`.
    fn formula(&mut self, at: At) -> Result<Worth, Stop> {
        let cells = self.book.cells(at.0)?;
        let formula = cells.get(&(at.1, at.2)).and_then(|c| c.formula.as_deref());
        let formula = formula.unwrap_or_default();
        let effort = formula.len() / 8;
        let expression = parse::formula(formula)?;
        self.spend(effort)?;
        Ok(match self.evaluate(&expression, at.0)? {
            // A formula that gives nothing shows 0.
            Worth::Empty => Worth::Number(0.0),
            worth => worth,
        })
    }

    /// Counts what is done; reading a formula counts as looking at some cells.
    fn spend(&mut self, looks: usize) -> Result<(), Stop> {
        self.looks_left = self.looks_left.checked_sub(looks).ok_or_else(|| {
            Stop::Unknown(format!("it looks at cells more than {MAX_LOOKS} times"))
        })?;
        Ok(())
    }

    /// The value of a cell; `None` where its formula is not calculated yet.
    fn worth(&mut self, at: At) -> Result<Option<Worth>, Stop> {
        self.spend(1)?;
        if let Some(known) = self.known.get(&at) {
            return Ok(Some(known.clone()));
        }
        Ok(match self.book.cells(at.0)?.get(&(at.1, at.2)) {
            None => Some(Worth::Empty),
            Some(cell) if cell.value.is_null() && cell.formula.is_some() => None,
            Some(cell) => Some(Worth::of(&cell.value)),
        })
    }

    fn evaluate(&mut self, expression: &Expression, sheet: usize) -> Result<Worth, Stop> {
        match expression {
            Expression::Number(number) => Ok(Worth::Number(*number)),
            Expression::Text(text) => Ok(Worth::Text(text.clone())),
            Expression::Truth(truth) => Ok(Worth::Truth(*truth)),
            Expression::Reference(reference) => match self.range(reference, sheet)?.as_slice() {
                [row] if row.len() == 1 => Ok(row[0].clone()),
                _ => Err("a range stands where one value is needed".to_owned().into()),
            },
            Expression::Negative(inner) => Ok(self
                .evaluate(inner, sheet)?
                .number()?
                .map_or_else(|error| error, |number| Worth::Number(-number))),
            Expression::Percent(inner) => Ok(self
                .evaluate(inner, sheet)?
                .number()?
                .map_or_else(|error| error, |number| Worth::Number(number / 100.0))),
            Expression::Binary(operator, left, right) => {
                let left = self.evaluate(left, sheet)?;
                let right = self.evaluate(right, sheet)?;
                Ok(operate(*operator, left, right)?)
            }
            Expression::Call(name, arguments) => self.call(name, arguments, sheet),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Expression], sheet: usize) -> Result<Worth, Stop> {
        // These look only at the argument that they need.
        match (name, arguments) {
            ("IF", [condition, rest @ ..]) if (1..=2).contains(&rest.len()) => {
                return match self.evaluate(condition, sheet)?.truth()? {
                    Err(error) => Ok(error),
                    Ok(true) => self.evaluate(&rest[0], sheet),
                    Ok(false) => match rest.get(1) {
                        Some(otherwise) => self.evaluate(otherwise, sheet),
                        None => Ok(Worth::Truth(false)),
                    },
                };
            }
            ("IFERROR", [value, otherwise]) => {
                return match self.evaluate(value, sheet)? {
                    Worth::Error(_) => self.evaluate(otherwise, sheet),
                    worth => Ok(worth),
                };
            }
            _ => {}
        }
        // Said before anything about the arguments, which may be of a kind that is not known either.
        known(name)?;
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(match argument {
                Expression::Reference(reference) => Argument::Range(self.range(reference, sheet)?),
                other => Argument::One(self.evaluate(other, sheet)?),
            });
        }
        Ok(apply(name, &given)?)
    }

    /// The values of the cells of a reference, in rows.
    fn range(&mut self, reference: &Reference, sheet: usize) -> Result<Vec<Vec<Worth>>, Stop> {
        let sheet = match &reference.sheet {
            None => sheet,
            Some(name) => self
                .book
                .position(name)
                .ok_or_else(|| Stop::Unknown(format!("there is no sheet `{name}`")))?,
        };
        let (first, mut last) = (reference.first, reference.last);
        if last.0 == parse::LAST_ROW {
            // Of whole columns only what the sheet has.
            last.0 = self.book.bottom(sheet)?.max(first.0);
        }
        let mut rows = Vec::new();
        let mut needed = Vec::new();
        for row in first.0..=last.0 {
            let mut cells = Vec::new();
            for column in first.1..=last.1 {
                match self.worth((sheet, row, column))? {
                    Some(worth) => cells.push(worth),
                    None => needed.push((sheet, row, column)),
                }
            }
            rows.push(cells);
        }
        if needed.is_empty() {
            Ok(rows)
        } else {
            Err(Stop::Needs(needed))
        }
    }
}

impl Worth {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Empty,
            Value::Bool(truth) => Self::Truth(*truth),
            Value::Number(number) => number.as_f64().map_or(Self::Empty, Self::Number),
            Value::String(text) if text.starts_with('#') && text.ends_with(['!', '?', 'A']) => {
                Self::Error(text.clone())
            }
            Value::String(text) => Self::Text(text.clone()),
            other => Self::Text(other.to_string()),
        }
    }

    fn into_json(self) -> Value {
        match self {
            Self::Empty => Value::Null,
            Self::Number(number) => crate::tidy(number),
            Self::Text(text) | Self::Error(text) => text.into(),
            Self::Truth(truth) => truth.into(),
        }
    }

    /// The number that it counts as; inside: an error of the table goes on.
    ///
    /// # Errors
    /// Text that is no number. Programs differ in what they make of it, and it may be a date.
    fn number(self) -> Result<Result<f64, Self>, String> {
        Ok(match self {
            Self::Empty => Ok(0.0),
            Self::Number(number) => Ok(number),
            Self::Truth(truth) => Ok(f64::from(u8::from(truth))),
            Self::Text(text) => Ok(text
                .trim()
                .parse()
                .map_err(|_| format!("it calculates with the text {text:?}"))?),
            error @ Self::Error(_) => Err(error),
        })
    }

    fn truth(self) -> Result<Result<bool, Self>, String> {
        match self {
            Self::Truth(truth) => Ok(Ok(truth)),
            other => Ok(other.number()?.map(|number| number != 0.0)),
        }
    }

    fn text(&self) -> Result<String, Self> {
        Ok(match self {
            Self::Empty => String::new(),
            Self::Number(number) => match crate::tidy(*number) {
                Value::Number(number) => number.to_string(),
                _ => number.to_string(),
            },
            Self::Text(text) => text.clone(),
            Self::Truth(truth) => truth.to_string().to_uppercase(),
            Self::Error(_) => return Err(self.clone()),
        })
    }
}

/// A number as a result; what is none, such as a root of -1, is an error of the table.
fn result(number: f64) -> Worth {
    if number.is_finite() {
        Worth::Number(number)
    } else {
        Worth::Error("#NUM!".to_owned())
    }
}

fn operate(operator: Operator, left: Worth, right: Worth) -> Result<Worth, String> {
    match operator {
        Operator::Join => Ok(match (left.text(), right.text()) {
            (Ok(left), Ok(right)) => Worth::Text(left + &right),
            (Err(error), _) | (_, Err(error)) => error,
        }),
        Operator::Compare(holds) => Ok(match (&left, &right) {
            (Worth::Error(_), _) => left,
            (_, Worth::Error(_)) => right,
            _ => Worth::Truth(holds(order(&left, &right))),
        }),
        Operator::Calculate(calculate) => {
            let left = match left.number()? {
                Ok(number) => number,
                Err(error) => return Ok(error),
            };
            Ok(match right.number()? {
                Ok(right) => calculate(left, right),
                Err(error) => error,
            })
        }
    }
}

/// How values stand to each other: numbers before texts before truths; an empty cell is whatever
/// nothing is on the other side.
fn order(left: &Worth, right: &Worth) -> std::cmp::Ordering {
    let empty = |other: &Worth| match other {
        Worth::Text(_) => Worth::Text(String::new()),
        Worth::Truth(_) => Worth::Truth(false),
        _ => Worth::Number(0.0),
    };
    let rank = |worth: &Worth| match worth {
        Worth::Text(_) => 1,
        Worth::Truth(_) => 2,
        _ => 0,
    };
    match (left, right) {
        (Worth::Empty, _) => order_of_two(&empty(right), right, rank),
        (_, Worth::Empty) => order_of_two(left, &empty(left), rank),
        _ => order_of_two(left, right, rank),
    }
}

fn order_of_two(left: &Worth, right: &Worth, rank: fn(&Worth) -> u8) -> std::cmp::Ordering {
    match (left, right) {
        (Worth::Number(a), Worth::Number(b)) => a.total_cmp(b),
        (Worth::Text(a), Worth::Text(b)) => a.to_lowercase().cmp(&b.to_lowercase()),
        (Worth::Truth(a), Worth::Truth(b)) => a.cmp(b),
        _ => rank(left).cmp(&rank(right)),
    }
}
