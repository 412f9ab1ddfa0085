//! A general cut of long tool outputs, for agents that have no finer rule (`spec/agents.md` §16.3).

/// Most lines that are shown.
const LINES: usize = 200;
/// Most characters that are shown.
const CHARACTERS: usize = 32_768;

/// The beginning of a long output, at most 200 lines and 32,768 characters, with a note of how much is
/// left out; nothing where the output can stay. Fit for
/// [`CallLimits::shorten`](crate::CallLimits::shorten).
#[must_use]
pub fn shorten_output(text: &str) -> Option<String> {
    let line_end = text.match_indices('\n').nth(LINES - 1);
    let line_end = line_end.map(|(at, _)| at).filter(|at| at + 1 < text.len());
    let character_end = text.char_indices().nth(CHARACTERS).map(|(at, _)| at);
    let end = [line_end, character_end].into_iter().flatten().min()?;
    let (shown, hidden) = text.split_at(end);
    let lines = hidden.trim_end_matches('\n').matches('\n').count();
    let hidden = match lines {
        0 => format!("{} characters", hidden.chars().count()),
        1 => "1 line".to_owned(),
        more => format!("{more} lines"),
    };
    Some(format!("{shown}\n[… {hidden} more, not shown]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays() {
        for text in [
            String::new(),
            "x\n".repeat(200),
            format!("{}x", "x\n".repeat(199)),
            "ü".repeat(32_768),
        ] {
            assert_eq!(shorten_output(&text), None);
        }
    }

    #[test]
    fn the_first_limit_that_is_met_cuts() {
        let end = |text: &str| {
            let short = shorten_output(text).unwrap();
            let (shown, note) = short.rsplit_once('\n').unwrap();
            assert!(text.starts_with(shown));
            (shown.chars().count(), note.to_owned())
        };
        let lines = "ab\n".repeat(201);
        assert_eq!(end(&lines), (599, "[… 1 line more, not shown]".to_owned()));
        let lines = format!("{}tail", "ab\n".repeat(500));
        assert_eq!(
            end(&lines),
            (599, "[… 301 lines more, not shown]".to_owned())
        );
        let one_line = "ü".repeat(40_000);
        let note = "[… 7232 characters more, not shown]".to_owned();
        assert_eq!(end(&one_line), (32_768, note));
        // Two long lines: the second one is cut.
        let two = format!("{}\n{}\nlast", "a".repeat(20_000), "b".repeat(20_000));
        assert_eq!(end(&two), (32_768, "[… 1 line more, not shown]".to_owned()));
    }
}
