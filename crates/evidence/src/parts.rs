//! Which sheet or slide of one version of a file is which of the other (`spec/grading.md` §4.4).

use extract::{Part, PartKind};
use similar::TextDiff;

/// Texts above this many bytes are compared by lines instead of characters.
const BY_CHARACTERS: usize = 20_000;

/// Similarity from which two parts count as versions of one another.
const SIMILAR: f32 = 0.5;

/// A pair of parts, by position in the two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    /// In both, with the same text.
    Unchanged(usize, usize),
    /// In both, with other text.
    Modified(usize, usize),
    /// Only in the second list.
    Created(usize),
    /// Only in the first list.
    Deleted(usize),
}

/// Matches the parts of two versions: sheets by name, then parts of equal text, then similar ones.
pub(crate) fn pair(old: &[Part], new: &[Part]) -> Vec<Pair> {
    let mut old_left: Vec<usize> = (0..old.len()).collect();
    let mut matched: Vec<Option<usize>> = vec![None; new.len()];
    let mut take = |matched: &mut Vec<Option<usize>>, fits: &dyn Fn(&Part, &Part) -> bool| {
        for (at, part) in new.iter().enumerate() {
            if matched[at].is_some() {
                continue;
            }
            let found = old_left.iter().position(|other| fits(&old[*other], part));
            if let Some(found) = found {
                matched[at] = Some(old_left.remove(found));
            }
        }
    };
    take(&mut matched, &|a, b| {
        a.kind == PartKind::Sheet && b.kind == PartKind::Sheet && a.title == b.title
    });
    take(&mut matched, &|a, b| a.text == b.text);
    for (at, part) in new.iter().enumerate() {
        if matched[at].is_some() {
            continue;
        }
        let best = old_left
            .iter()
            .enumerate()
            .map(|(place, other)| (place, similarity(&old[*other].text, &part.text)))
            .filter(|(_, ratio)| *ratio >= SIMILAR)
            // Of equally similar parts the first one.
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        if let Some((place, _)) = best {
            matched[at] = Some(old_left.remove(place));
        }
    }
    let mut pairs: Vec<Pair> = matched
        .into_iter()
        .enumerate()
        .map(|(at, other)| match other {
            None => Pair::Created(at),
            Some(other) if old[other].text == new[at].text => Pair::Unchanged(other, at),
            Some(other) => Pair::Modified(other, at),
        })
        .collect();
    pairs.extend(old_left.into_iter().map(Pair::Deleted));
    pairs
}

fn similarity(a: &str, b: &str) -> f32 {
    if a.len().max(b.len()) > BY_CHARACTERS {
        TextDiff::from_lines(a, b).ratio()
    } else {
        TextDiff::from_chars(a, b).ratio()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(kind: PartKind, texts: &[(&str, &str)]) -> Vec<Part> {
        texts
            .iter()
            .enumerate()
            .map(|(index, (title, text))| Part {
                index,
                kind,
                title: (*title).to_owned(),
                text: (*text).to_owned(),
            })
            .collect()
    }

    #[test]
    fn sheets_are_matched_by_name_first() {
        let old = parts(
            PartKind::Sheet,
            &[("A", "same"), ("B", "one two three"), ("C", "gone")],
        );
        let new = parts(
            PartKind::Sheet,
            &[("B", "completely different 42"), ("A", "same")],
        );
        assert_eq!(
            pair(&old, &new),
            [
                Pair::Modified(1, 0),
                Pair::Unchanged(0, 1),
                Pair::Deleted(2)
            ]
        );
    }

    #[test]
    fn slides_are_matched_by_text_then_by_likeness() {
        let old = parts(
            PartKind::Slide,
            &[
                ("t", "Revenue grew by 5 percent"),
                ("t", "Thanks"),
                ("t", "Thanks"),
            ],
        );
        let new = parts(
            PartKind::Slide,
            &[
                ("t", "Thanks"),
                ("t", "Revenue grew by 7 percent"),
                ("t", "zzz"),
            ],
        );
        assert_eq!(
            pair(&old, &new),
            [
                Pair::Unchanged(1, 0),
                Pair::Modified(0, 1),
                Pair::Created(2),
                Pair::Deleted(2)
            ]
        );
    }
}
