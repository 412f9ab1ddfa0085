//! Members of a zip that we write: names as bytes, modes, and times in both of zip's ways.

use std::io::{self, Seek, Write};
use std::time::SystemTime;

use zip::write::{FileOptions, SimpleFileOptions};
use zip::{CompressionMethod, DateTime, ZipWriter};

/// From this size on a file gets the 64-bit form of zip. What does not compress becomes a little larger
/// than it was, so this is below the bound of the 32-bit form.
const LARGE_FILE: u64 = 0xf000_0000;

/// What the records of a member say.
pub(crate) struct ZipMember<'a> {
    /// The path as it is, also where it is not UTF-8.
    pub(crate) name: &'a [u8],
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: Option<SystemTime>,
    /// The level of deflate; `None` for the usual one.
    pub(crate) level: Option<u32>,
}

impl ZipMember<'_> {
    pub(crate) fn options(&self) -> FileOptions<'static, '_, ()> {
        let (year, month, day, hour, minute, second) = calendar(self.modified);
        let time = DateTime::from_date_and_time(year, month, day, hour, minute, second)
            .unwrap_or_default();
        SimpleFileOptions::default()
            .name(self.name)
            .compression_method(CompressionMethod::Deflated)
            .compression_level(self.level.map(i64::from))
            .last_modified_time(time)
            .unix_permissions(self.mode & 0o777)
            // Sizes are known, so only files that may need it get the 64-bit form.
            .large_file(self.size >= LARGE_FILE)
    }

    /// Whole seconds since 1970 as zip's time stamps hold them.
    fn unix_seconds(&self) -> Option<u32> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        // The field is a signed 32-bit number.
        u32::try_from(since.as_secs())
            .ok()
            .filter(|seconds| *seconds <= i32::MAX as u32)
    }
}

/// Begins a file; its content is written to `zip` next.
pub(crate) fn start_file<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    member: &ZipMember<'_>,
) -> io::Result<()> {
    let options = member.options().into_full_options();
    let started = match member.unix_seconds() {
        Some(seconds) => options
            .with_extended_timestamp(Some(seconds), None, None)
            .and_then(|options| zip.start_file_with_options(options)),
        None => zip.start_file_with_options(options),
    };
    started.map_err(io::Error::from)
}

/// Year, month, day, hour, minute, second in UTC; 1980, where zip begins, for anything before.
fn calendar(time: Option<SystemTime>) -> (u16, u8, u8, u8, u8, u8) {
    const BEGINNING: (u16, u8, u8, u8, u8, u8) = (1980, 1, 1, 0, 0, 0);
    let Some(Ok(since)) = time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH)) else {
        return BEGINNING;
    };
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Civil calendar from a count of days: eras of 400 years that begin in March.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    if !(1980..=2107).contains(&year) {
        return BEGINNING;
    }
    let narrow = |number: u64| u8::try_from(number).unwrap_or(0);
    (
        u16::try_from(year).unwrap_or(1980),
        narrow(month),
        narrow(day),
        narrow(seconds / 3600),
        narrow(seconds / 60 % 60),
        narrow(seconds % 60),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |seconds| calendar(Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)));
        // Seconds as `date -u -d … +%s` gives them.
        assert_eq!(at(1_768_673_420), (2026, 1, 17, 18, 10, 20));
        assert_eq!(at(951_827_696), (2000, 2, 29, 12, 34, 56));
        assert_eq!(at(0), (1980, 1, 1, 0, 0, 0));
    }
}
