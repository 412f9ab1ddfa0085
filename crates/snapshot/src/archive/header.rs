//! What the header of a tar member says about a file.

use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use tar::Entry;

/// The mode a file gets: see [`super::unpack_tar_gz`].
pub(crate) fn safe_mode(mode: u32) -> u32 {
    let mut mode = mode & 0o755;
    if mode & 0o100 == 0 {
        mode &= !0o111;
    }
    mode | 0o600
}

/// The time of modification, with its fraction where a pax record has one.
pub(crate) fn modified(entry: &mut Entry<'_, impl Read>) -> io::Result<SystemTime> {
    let mut exact = None;
    if let Some(records) = entry.pax_extensions()? {
        for record in records.flatten() {
            if record.key_bytes() == b"mtime" {
                exact = record.value().ok().and_then(parse_time);
            }
        }
    }
    match exact {
        Some(time) => Ok(time),
        None => SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(entry.header().mtime()?))
            .ok_or_else(|| io::Error::other("a time of modification beyond all calendars")),
    }
}

/// Seconds since 1970 with a decimal fraction, perhaps negative.
fn parse_time(text: &str) -> Option<SystemTime> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let since = Duration::new(seconds.parse().ok()?, fraction.parse().ok()?);
    if negative {
        SystemTime::UNIX_EPOCH.checked_sub(since)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_the_rules() {
        for (given, right) in [
            (0o664, 0o644),
            (0o4755, 0o755),
            (0o600, 0o600),
            (0o777, 0o755),
            (0o444, 0o644),
            (0o655, 0o644),
            (0o1711, 0o711),
            (0, 0o600),
        ] {
            assert_eq!(safe_mode(given), right, "{given:o}");
        }
    }

    #[test]
    fn times_with_fractions() {
        let at = |seconds, nanos| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
        assert_eq!(
            parse_time("1795989988.7681906"),
            Some(at(1_795_989_988, 768_190_600))
        );
        assert_eq!(parse_time("0.0"), Some(at(0, 0)));
        assert_eq!(parse_time("12"), Some(at(12, 0)));
        assert_eq!(
            parse_time("-1.5"),
            Some(SystemTime::UNIX_EPOCH - Duration::from_millis(1500))
        );
        assert_eq!(parse_time("soon"), None);
    }
}
