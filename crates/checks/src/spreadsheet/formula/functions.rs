//! Functions of plain tables.

use super::parse::COMPARISONS;
use super::{Argument, Worth, order, result};

/// All functions of this module.
const KNOWN: [&str; 29] = [
    "ABS",
    "AND",
    "AVERAGE",
    "AVERAGEIF",
    "CONCAT",
    "CONCATENATE",
    "COUNT",
    "COUNTA",
    "COUNTIF",
    "INT",
    "LEN",
    "LOWER",
    "MAX",
    "MEDIAN",
    "MIN",
    "MOD",
    "NOT",
    "OR",
    "POWER",
    "PRODUCT",
    "ROUND",
    "ROUNDDOWN",
    "ROUNDUP",
    "SQRT",
    "SUM",
    "SUMIF",
    "SUMPRODUCT",
    "TRIM",
    "UPPER",
];

/// Whether there is a function `name`.
///
/// # Errors
/// That there is none.
pub(super) fn known(name: &str) -> Result<(), String> {
    if KNOWN.contains(&name) {
        Ok(())
    } else {
        Err(format!("the function `{name}` is not known"))
    }
}

/// What the function `name` gives for `arguments`.
///
/// # Errors
/// Arguments that it does not take.
pub(super) fn apply(name: &str, arguments: &[Argument]) -> Result<Worth, String> {
    if let Some(error) = first_error(name, arguments) {
        return Ok(error);
    }
    match name {
        "SUM" => Ok(result(numbers(arguments)?.iter().sum())),
        "PRODUCT" => Ok(result(numbers(arguments)?.iter().product())),
        "MIN" => Ok(result(least(&numbers(arguments)?, f64::min))),
        "MAX" => Ok(result(least(&numbers(arguments)?, f64::max))),
        "COUNT" => Ok(count(numbers(arguments)?.len())),
        "COUNTA" => {
            let there = all(arguments).filter(|worth| **worth != Worth::Empty);
            Ok(count(there.count()))
        }
        "AVERAGE" => Ok(average(&numbers(arguments)?)),
        "MEDIAN" => Ok(median(numbers(arguments)?)),
        "SUMPRODUCT" => sum_of_products(arguments),
        "SUMIF" | "COUNTIF" | "AVERAGEIF" => conditional(name, arguments),
        "AND" => Ok(Worth::Truth(truths(arguments)?.into_iter().all(|t| t))),
        "OR" => Ok(Worth::Truth(truths(arguments)?.into_iter().any(|t| t))),
        "CONCATENATE" | "CONCAT" => {
            let texts = all(arguments).map(Worth::text);
            let joined: Result<String, Worth> = texts.collect();
            Ok(joined.map_or_else(|error| error, Worth::Text))
        }
        _ => of_single_values(name, arguments),
    }
}

/// Functions whose arguments are single values.
fn of_single_values(name: &str, arguments: &[Argument]) -> Result<Worth, String> {
    let given = arguments
        .iter()
        .map(single)
        .collect::<Result<Vec<Worth>, String>>()?;
    let number = |at: usize| -> Result<f64, String> {
        let worth = given.get(at).cloned().unwrap_or(Worth::Empty);
        // Errors of the table were seen before.
        Ok(worth.number()?.unwrap_or_default())
    };
    let text = |at: usize| given[at].text().unwrap_or_default();
    Ok(match (name, given.len()) {
        ("NOT", 1) => match given[0].clone().truth()? {
            Ok(truth) => Worth::Truth(!truth),
            Err(error) => error,
        },
        ("ABS", 1) => result(number(0)?.abs()),
        ("INT", 1) => result(number(0)?.floor()),
        ("SQRT", 1) => result(number(0)?.sqrt()),
        ("POWER", 2) => result(number(0)?.powf(number(1)?)),
        ("MOD", 2) => modulo(number(0)?, number(1)?),
        ("ROUND", 2) => result(rounded(number(0)?, number(1)?, f64::round)),
        ("ROUNDUP", 2) => result(rounded(number(0)?, number(1)?, |n| {
            n.abs().ceil() * n.signum()
        })),
        ("ROUNDDOWN", 2) => result(rounded(number(0)?, number(1)?, f64::trunc)),
        ("LEN", 1) => count(text(0).chars().count()),
        ("UPPER", 1) => Worth::Text(text(0).to_uppercase()),
        ("LOWER", 1) => Worth::Text(text(0).to_lowercase()),
        ("TRIM", 1) => {
            let text = text(0);
            Worth::Text(text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        _ => {
            return Err(format!(
                "the function `{name}` does not take {} values",
                given.len()
            ));
        }
    })
}

/// The first error of the table among the arguments; counting passes over them.
fn first_error(name: &str, arguments: &[Argument]) -> Option<Worth> {
    if name.starts_with("COUNT") {
        return None;
    }
    all(arguments)
        .find(|worth| matches!(worth, Worth::Error(_)))
        .cloned()
}

fn all(arguments: &[Argument]) -> impl Iterator<Item = &Worth> {
    arguments.iter().flat_map(|argument| match argument {
        Argument::One(worth) => vec![worth],
        Argument::Range(rows) => rows.iter().flatten().collect(),
    })
}

/// The numbers of the arguments: of ranges only what is a number, other values as they count.
fn numbers(arguments: &[Argument]) -> Result<Vec<f64>, String> {
    let mut numbers = Vec::new();
    for argument in arguments {
        match argument {
            Argument::One(worth) => numbers.extend(worth.clone().number()?.ok()),
            Argument::Range(rows) => numbers.extend(rows.iter().flatten().filter_map(in_range)),
        }
    }
    Ok(numbers)
}

/// The number of a cell in a range, where texts and truths do not count.
fn in_range(worth: &Worth) -> Option<f64> {
    match worth {
        Worth::Number(number) => Some(*number),
        _ => None,
    }
}

fn truths(arguments: &[Argument]) -> Result<Vec<bool>, String> {
    let mut truths = Vec::new();
    for worth in all(arguments).filter(|worth| **worth != Worth::Empty) {
        truths.extend(worth.clone().truth()?.ok());
    }
    Ok(truths)
}

fn single(argument: &Argument) -> Result<Worth, String> {
    match argument {
        Argument::One(worth) => Ok(worth.clone()),
        Argument::Range(rows) => match rows.as_slice() {
            [row] if row.len() == 1 => Ok(row[0].clone()),
            _ => Err("a range stands where one value is needed".to_owned()),
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of cells are small")]
fn as_float(count: usize) -> f64 {
    count as f64
}

fn count(count: usize) -> Worth {
    Worth::Number(as_float(count))
}

/// The least, or by another choice the greatest, of `numbers`; 0 where there is none.
fn least(numbers: &[f64], choice: fn(f64, f64) -> f64) -> f64 {
    numbers.iter().copied().reduce(choice).unwrap_or_default()
}

fn average(numbers: &[f64]) -> Worth {
    if numbers.is_empty() {
        Worth::Error("#DIV/0!".to_owned())
    } else {
        result(numbers.iter().sum::<f64>() / as_float(numbers.len()))
    }
}

fn median(mut numbers: Vec<f64>) -> Worth {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => Worth::Error("#NUM!".to_owned()),
        count if count % 2 == 1 => result(numbers[middle]),
        _ => result(f64::midpoint(numbers[middle - 1], numbers[middle])),
    }
}

fn modulo(number: f64, divisor: f64) -> Worth {
    if divisor == 0.0 {
        return Worth::Error("#DIV/0!".to_owned());
    }
    // The sign is the divisor's.
    result(number - divisor * (number / divisor).floor())
}

fn rounded(number: f64, digits: f64, round: fn(f64) -> f64) -> f64 {
    let factor = 10_f64.powf(digits.trunc());
    // 1.005 · 100 is a little less than 100.5: fifteen digits are what a table keeps.
    let scaled = format!("{:.14e}", number * factor);
    round(scaled.parse().unwrap_or(number * factor)) / factor
}

fn sum_of_products(arguments: &[Argument]) -> Result<Worth, String> {
    let rows: Vec<&Vec<Vec<Worth>>> = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Range(rows) => Ok(rows),
            Argument::One(_) => Err("`SUMPRODUCT` of other things than ranges is not known"),
        })
        .collect::<Result<_, _>>()?;
    let shape = |rows: &Vec<Vec<Worth>>| (rows.len(), rows.first().map_or(0, Vec::len));
    let first = rows.first().ok_or("`SUMPRODUCT` needs a range")?;
    if rows.iter().any(|other| shape(other) != shape(first)) {
        return Err("`SUMPRODUCT` of ranges of several sizes is not known".to_owned());
    }
    let cells: Vec<Vec<f64>> = rows
        .iter()
        .map(|rows| {
            let cells = rows.iter().flatten();
            cells
                .map(|cell| in_range(cell).unwrap_or_default())
                .collect()
        })
        .collect();
    let sum = (0..cells[0].len())
        .map(|at| cells.iter().map(|column| column[at]).product::<f64>())
        .sum();
    Ok(result(sum))
}

/// `SUMIF`, `COUNTIF` and `AVERAGEIF`: cells that meet a condition such as `>5` or `apples`.
fn conditional(name: &str, arguments: &[Argument]) -> Result<Worth, String> {
    let (Some(Argument::Range(tested)), Some(condition)) = (arguments.first(), arguments.get(1))
    else {
        return Err(format!("`{name}` needs a range and a condition"));
    };
    let meets = condition_of(&single(condition)?)?;
    let tested: Vec<&Worth> = tested.iter().flatten().collect();
    let counted = match arguments.get(2) {
        None => tested.clone(),
        Some(Argument::Range(rows)) => rows.iter().flatten().collect(),
        Some(Argument::One(_)) => return Err(format!("`{name}` needs a range to count")),
    };
    if counted.len() != tested.len() {
        return Err(format!("`{name}` with ranges of two sizes is not known"));
    }
    let met = tested.iter().zip(&counted).filter(|(cell, _)| meets(cell));
    if name == "COUNTIF" {
        return Ok(count(met.count()));
    }
    let numbers: Vec<f64> = met.filter_map(|(_, cell)| in_range(cell)).collect();
    Ok(if name == "SUMIF" {
        result(numbers.iter().sum())
    } else {
        average(&numbers)
    })
}

/// Whether a cell meets a condition.
type Meets = Box<dyn Fn(&Worth) -> bool>;

fn condition_of(condition: &Worth) -> Result<Meets, String> {
    let Worth::Text(text) = condition else {
        let wanted = condition.clone();
        return Ok(Box::new(move |cell| {
            *cell != Worth::Empty && order(cell, &wanted).is_eq()
        }));
    };
    if text.contains(['*', '?', '~']) {
        return Err("wildcards in a condition are not known".to_owned());
    }
    let found = COMPARISONS
        .iter()
        .find_map(|(sign, test)| Some((text.strip_prefix(sign)?, *test)));
    let (operand, test) = found.unwrap_or((text.as_str(), std::cmp::Ordering::is_eq));
    let wanted = match operand.trim().parse() {
        Ok(number) => Worth::Number(number),
        Err(_) => Worth::Text(operand.to_owned()),
    };
    let differs = text.starts_with("<>");
    Ok(Box::new(move |cell| match (cell, &wanted) {
        (Worth::Number(_), Worth::Number(_)) | (Worth::Text(_), Worth::Text(_)) => {
            test(order(cell, &wanted))
        }
        // Things of two kinds are different, and otherwise not to be compared.
        _ => differs,
    }))
}
