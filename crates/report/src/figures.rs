//! Numbers as people read them.

/// `512 B`, `1.2 kB`, `3.4 MB`: powers of 1000 (IEC 80000-13).
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    // What would be shown as 1000.0 belongs to the next unit.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `20 ms`, `3.50 s`, `12 min 5 s`, `2 h 3 min`; durations are not negative.
pub(crate) fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "? s".to_owned();
    }
    if seconds < 0.0995 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 99.95 {
        return format!("{seconds:.1} s");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and saturating at ages of the universe"
    )]
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A score with at most three decimals: `1`, `0.667`, `-0.5`.
pub(crate) fn score(score: f64) -> String {
    let text = format!("{score:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// `12,345`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `$0.0123`, `$1.23`, or that the price is unknown.
pub(crate) fn cost(usd: Option<f64>) -> String {
    match usd {
        None => "cost unknown".to_owned(),
        Some(usd) if usd == 0.0 || usd >= 1.0 => format!("${usd:.2}"),
        Some(usd) => format!("${usd:.4}"),
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn number_of(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_change_their_unit_where_the_figure_does() {
        for (value, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (5_000_000_000, "5.0 GB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
    }

    #[test]
    fn durations_scores_and_costs() {
        assert_eq!(seconds(0.0), "0 ms");
        assert_eq!(seconds(0.0126), "13 ms");
        assert_eq!(seconds(0.31), "0.31 s");
        assert_eq!(seconds(9.996), "10.0 s");
        assert_eq!(seconds(99.96), "1 min 40 s");
        assert_eq!(seconds(7384.0), "2 h 3 min");
        assert_eq!(seconds(f64::NAN), "? s");
        assert_eq!(
            [score(1.0), score(2.0 / 3.0), score(-0.0001)],
            ["1", "0.667", "0"]
        );
        assert_eq!(
            [count(7), count(1234), count(1_234_567)],
            ["7", "1,234", "1,234,567"]
        );
        assert_eq!(cost(Some(0.01234)), "$0.0123");
        assert_eq!(cost(Some(12.0)), "$12.00");
        assert_eq!(cost(None), "cost unknown");
        assert_eq!(number_of(1, "step"), "1 step");
        assert_eq!(number_of(0, "step"), "0 steps");
    }
}
