//! Header values that stand for any text: as it is, or `=?base64?…?=` (MCP 2026-07-28, "Value
//! encoding").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// The text that a header stands for; `None` where the encoding is broken.
pub(crate) fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    let payload = text
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match payload {
        // The standard engine refuses missing padding, foreign letters and unused bits.
        Some(payload) => String::from_utf8(STANDARD.decode(payload).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_literal_or_encoded_and_never_half_of_each() {
        let of = |text: &'static str| decode(&HeaderValue::from_static(text));
        assert_eq!(of("  plain "), Some("plain".to_owned()));
        assert_eq!(of("=?base64?SGVsbG8=?="), Some("Hello".to_owned()));
        assert_eq!(
            of("=?base64?SGVsbG8="),
            Some("=?base64?SGVsbG8=".to_owned())
        );
        assert_eq!(of("SGVsbG8="), Some("SGVsbG8=".to_owned()));
        for broken in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs!!!bG8=?=",
            // Unused bits that are not zero, and bytes that are no text.
            "=?base64?SGVsbG9=?=",
            "=?base64?//8=?=",
        ] {
            assert_eq!(of(broken), None, "{broken}");
        }
    }
}
