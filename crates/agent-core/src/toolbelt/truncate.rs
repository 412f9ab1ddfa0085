//! Long tool results (`spec/agents.md` §12.8).

use llm_client::tokens;

/// Above this many characters a result is not shown at all.
const REFUSED: usize = 200_000;
/// Up to so many tokens a result is shown whole.
const WHOLE_TOKENS: u64 = 24_000;
/// What is shown of a longer one.
const HEAD: usize = 20_000;
const TAIL: usize = 5_000;

/// The text that stands for `text`, or nothing where it can stay as it is.
pub(super) fn shortened(text: &str) -> Option<String> {
    if text.len() <= HEAD + TAIL {
        return None;
    }
    let length = text.chars().count();
    if length > REFUSED {
        return Some(format!(
            "[The output is extremely large: {} characters. It is not shown. Ask for less, for example with a filter, a range or a smaller part.]",
            grouped(length)
        ));
    }
    if length <= HEAD + TAIL || tokens::of_text(text) <= WHOLE_TOKENS {
        return None;
    }
    let byte_of = |character: usize| {
        text.char_indices()
            .nth(character)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let head = text.get(..byte_of(HEAD)).unwrap_or_default();
    let tail = text.get(byte_of(length - TAIL)..).unwrap_or_default();
    let omitted = grouped(length - HEAD - TAIL);
    Some(format!(
        "{head}\n\n[… {omitted} characters left out here; ask more specifically to see them …]\n\n{tail}"
    ))
}

/// A number with commas between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays() {
        assert_eq!(shortened("short"), None);
        assert_eq!(shortened(&"x".repeat(25_000)), None);
        // 96,000 characters are 24,000 tokens.
        assert_eq!(shortened(&"x".repeat(96_000)), None);
    }

    #[test]
    fn head_and_tail_of_the_middle_sized_are_shown() {
        let text = format!(
            "{}{}{}",
            "a".repeat(20_000),
            "b".repeat(95_000),
            "ü".repeat(5_000)
        );
        let short = shortened(&text).unwrap();
        let (head, rest) = short.split_once("\n\n").unwrap();
        let (marker, tail) = rest.split_once("\n\n").unwrap();
        assert_eq!(head, "a".repeat(20_000));
        assert_eq!(tail, "ü".repeat(5_000));
        assert!(marker.contains("95,000 characters"), "{marker}");
    }

    #[test]
    fn the_extremely_large_is_refused_with_its_length() {
        let short = shortened(&"x".repeat(250_000)).unwrap();
        assert!(
            short.contains("250,000 characters") && short.len() < 300,
            "{short}"
        );
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
