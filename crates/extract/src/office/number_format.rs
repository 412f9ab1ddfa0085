//! How numbers are shown (ECMA-376 part 1, §18.8.30), as far as it changes what a number means:
//! percent, currency, thousands.

/// The code of a built-in number format that is percent, currency or grouped.
pub(super) fn built_in(id: u32) -> Option<&'static str> {
    Some(match id {
        3 | 37 | 38 => "#,##0",
        4 | 39 | 40 => "#,##0.00",
        5 | 6 | 42 => "$#,##0",
        7 | 8 | 44 => "$#,##0.00",
        9 => "0%",
        10 => "0.00%",
        41 => "#,##0",
        43 => "#,##0.00",
        _ => return None,
    })
}

/// The number as a spreadsheet shows it; `None` for formats that are not percent, currency or
/// grouped.
pub(super) fn display(number: f64, code: &str) -> Option<String> {
    let format = Format::of(code);
    if !(format.percent || format.grouped || format.currency) || !number.is_finite() {
        return None;
    }
    let number = if format.percent {
        number * 100.0
    } else {
        number
    };
    let digits = format!("{:.*}", format.decimals, number.abs());
    let digits = if format.grouped {
        grouped(&digits)
    } else {
        digits
    };
    let zero = digits.chars().all(|c| matches!(c, '0' | '.' | ','));
    let sign = if number < 0.0 && !zero { "-" } else { "" };
    Some(format!("{sign}{}{digits}{}", format.before, format.after))
}

#[derive(Default)]
struct Format {
    before: String,
    after: String,
    decimals: usize,
    percent: bool,
    grouped: bool,
    currency: bool,
}

impl Format {
    /// Reads the first section of a code, which is that of positive numbers.
    fn of(code: &str) -> Self {
        let mut format = Self::default();
        let mut digits = false;
        let mut point = false;
        let mut chars = code.chars();
        while let Some(c) = chars.next() {
            match c {
                ';' => break,
                '"' => {
                    let text: String = chars.by_ref().take_while(|c| *c != '"').collect();
                    format.literal(&text, digits);
                }
                '\\' => {
                    if let Some(c) = chars.next() {
                        format.literal(c.encode_utf8(&mut [0; 4]), digits);
                    }
                }
                // Room of a character's width, and filling: neither is content.
                '_' | '*' => {
                    chars.next();
                }
                '[' => {
                    let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                    // `[$€-407]`: a currency with a locale; others are colours and conditions.
                    if let Some(currency) = inside.strip_prefix('$') {
                        let symbol = currency.split('-').next().unwrap_or_default();
                        format.currency |= !symbol.is_empty();
                        format.literal(symbol, digits);
                    }
                }
                '0' | '#' | '?' => {
                    digits = true;
                    format.decimals += usize::from(point);
                }
                '.' => point = true,
                ',' => format.grouped |= digits,
                '%' => {
                    format.percent = true;
                    format.literal("%", digits);
                }
                '$' | '€' | '£' | '¥' | '₹' => {
                    format.currency = true;
                    format.literal(c.encode_utf8(&mut [0; 4]), digits);
                }
                ' ' | '-' | '+' | '(' | ')' => format.literal(c.encode_utf8(&mut [0; 4]), digits),
                _ => {}
            }
        }
        format
    }

    fn literal(&mut self, text: &str, digits: bool) {
        let target = if digits {
            &mut self.after
        } else {
            &mut self.before
        };
        target.push_str(text);
        self.currency |= text.contains(['$', '€', '£', '¥', '₹']);
    }
}

/// Commas between thousands.
fn grouped(digits: &str) -> String {
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let mut text = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::display;

    #[test]
    fn numbers_are_shown_as_spreadsheets_show_them() {
        for (number, code, expected) in [
            (0.125, "0.0%", Some("12.5%")),
            (-0.5, "0%", Some("-50%")),
            (1_234_567.891, "#,##0.00", Some("1,234,567.89")),
            (-1234.5, "$#,##0.00", Some("-$1,234.50")),
            (1234.0, "#,##0.00 [$€-407]", Some("1,234.00 €")),
            (5.0, "\"CHF \"0.00;[Red]-0.00", None),
            (5.0, "[$CHF]\\ 0.00", Some("CHF 5.00")),
            (999.0, "_($* #,##0_);_($* (#,##0)", Some("$999")),
            (-0.001, "#,##0", Some("0")),
            (5.0, "General", None),
            (5.0, "0.00", None),
            (45000.0, "yyyy-mm-dd", None),
            (f64::NAN, "0%", None),
        ] {
            assert_eq!(
                display(number, code).as_deref(),
                expected,
                "{number} {code}"
            );
        }
    }
}
