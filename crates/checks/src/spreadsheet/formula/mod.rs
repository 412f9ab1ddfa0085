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
const MAX_CELLS: usize = 500_000;

/// Formulas that may need each other in a chain.
const MAX_DEPTH: usize = 200;

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
    known: HashMap<(usize, u32, u32), Worth>,
    /// Cells that are being calculated: one that needs itself has no result.
    open: HashSet<(usize, u32, u32)>,
    cells_left: usize,
}

impl<'b, 'a> Calculation<'b, 'a> {
    pub(super) fn new(book: &'b mut Book<'a>) -> Self {
        Self {
            book,
            known: HashMap::new(),
            open: HashSet::new(),
            cells_left: MAX_CELLS,
        }
    }

    /// The value of a cell of the sheet at the position `sheet` in the workbook.
    ///
    /// # Errors
    /// Why it cannot be calculated.
    pub(super) fn cell(&mut self, sheet: usize, row: u32, column: u32) -> Result<Value, String> {
        Ok(self.worth(sheet, row, column)?.into_json())
    }

    fn worth(&mut self, sheet: usize, row: u32, column: u32) -> Result<Worth, String> {
        let at = (sheet, row, column);
        if let Some(known) = self.known.get(&at) {
            return Ok(known.clone());
        }
        self.cells_left = self
            .cells_left
            .checked_sub(1)
            .ok_or_else(|| format!("it needs more than {MAX_CELLS} cells"))?;
        let Some(cell) = self.book.cells(sheet)?.get(&(row, column)) else {
            return Ok(Worth::Empty);
        };
        let worth = match (&cell.value, &cell.formula) {
            (Value::Null, Some(formula)) => {
                let expression = parse::formula(formula)?;
                if self.open.len() == MAX_DEPTH {
                    return Err(format!(
                        "it needs more than {MAX_DEPTH} formulas in a chain"
                    ));
                }
                if !self.open.insert(at) {
                    return Err("it needs its own result".to_owned());
                }
                let worth = self.evaluate(&expression, sheet);
                self.open.remove(&at);
                // A formula that gives nothing shows 0.
                match worth? {
                    Worth::Empty => Worth::Number(0.0),
                    worth => worth,
                }
            }
            (value, _) => Worth::of(value),
        };
        self.known.insert(at, worth.clone());
        Ok(worth)
    }

    fn evaluate(&mut self, expression: &Expression, sheet: usize) -> Result<Worth, String> {
        match expression {
            Expression::Number(number) => Ok(Worth::Number(*number)),
            Expression::Text(text) => Ok(Worth::Text(text.clone())),
            Expression::Truth(truth) => Ok(Worth::Truth(*truth)),
            Expression::Reference(reference) => match self.range(reference, sheet)?.as_slice() {
                [row] if row.len() == 1 => Ok(row[0].clone()),
                _ => Err("a range stands where one value is needed".to_owned()),
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
                operate(*operator, left, right)
            }
            Expression::Call(name, arguments) => self.call(name, arguments, sheet),
        }
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[Expression],
        sheet: usize,
    ) -> Result<Worth, String> {
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
        apply(name, &given)
    }

    /// The values of the cells of a reference, in rows.
    fn range(&mut self, reference: &Reference, sheet: usize) -> Result<Vec<Vec<Worth>>, String> {
        let sheet = match &reference.sheet {
            None => sheet,
            Some(name) => self
                .book
                .position(name)
                .ok_or_else(|| format!("there is no sheet `{name}`"))?,
        };
        let (first, last) = (reference.first, reference.last);
        (first.0..=last.0)
            .map(|row| {
                (first.1..=last.1)
                    .map(|column| self.worth(sheet, row, column))
                    .collect()
            })
            .collect()
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
