//! Which sheet or slide of one version of a file is which of the other (`spec/grading.md` §4.4).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use extract::{Part, PartKind};
use similar::TextDiff;

/// Texts above this many bytes are compared by lines instead of characters.
const BY_CHARACTERS: usize = 20_000;

/// Similarity from which two parts count as versions of one another.
const SIMILAR: f32 = 0.5;

/// Time for comparing all parts of two versions; those that come later have no likeness.
const LIKENESS_TIME: Duration = Duration::from_secs(5);

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
    pair_within(old, new, LIKENESS_TIME)
}

fn pair_within(old: &[Part], new: &[Part], time: Duration) -> Vec<Pair> {
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
    let deadline = Instant::now() + time;
    let letters: HashMap<usize, Letters> = old_left
        .iter()
        .map(|at| (*at, Letters::of(&old[*at].text)))
        .collect();
    for (at, part) in new.iter().enumerate() {
        if matched[at].is_some() || Instant::now() >= deadline {
            continue;
        }
        let ours = Letters::of(&part.text);
        let best = old_left
            .iter()
            .enumerate()
            .filter(|(_, other)| {
                // Most pairs differ so much that they need not be aligned to know it.
                let theirs = letters.get(other);
                by_lines(&old[**other].text, &part.text)
                    || theirs.is_some_and(|theirs| theirs.likeness_at_most(&ours) >= SIMILAR)
            })
            .map(|(place, other)| (place, similarity(&old[*other].text, &part.text, deadline)))
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

/// Twice what two texts have in common over what they have together; 0 after the deadline.
fn similarity(a: &str, b: &str, deadline: Instant) -> f32 {
    if Instant::now() >= deadline {
        return 0.0;
    }
    let mut diff = TextDiff::configure();
    diff.deadline(deadline);
    if by_lines(a, b) {
        diff.diff_lines(a, b).ratio()
    } else {
        diff.diff_chars(a, b).ratio()
    }
}

fn by_lines(a: &str, b: &str) -> bool {
    a.len().max(b.len()) > BY_CHARACTERS
}

/// How often each character stands in a text, characters beyond Latin-1 together.
struct Letters {
    counts: [u32; 257],
    all: u32,
}

impl Letters {
    fn of(text: &str) -> Self {
        let mut letters = Self {
            counts: [0; 257],
            all: 0,
        };
        for c in text.chars() {
            letters.counts[usize::try_from(u32::from(c)).unwrap_or(256).min(256)] += 1;
            letters.all += 1;
        }
        letters
    }

    /// The greatest likeness that two texts of these characters can have.
    #[expect(
        clippy::cast_precision_loss,
        reason = "texts have at most millions of characters"
    )]
    fn likeness_at_most(&self, other: &Self) -> f32 {
        let common: u32 = self
            .counts
            .iter()
            .zip(&other.counts)
            .map(|(ours, theirs)| *ours.min(theirs))
            .sum();
        match self.all + other.all {
            0 => 1.0,
            all => (2 * common) as f32 / all as f32,
        }
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

    /// Every pair would have to be aligned, character by character: a million times.
    #[test]
    fn a_deck_that_was_written_anew_is_matched_in_bounded_time() {
        let texts = |seed: u32| -> Vec<String> {
            (0..1_000_u32)
                .map(|slide| {
                    let mut state = seed * 7_919 + slide * 104_729 + 1;
                    (0..400)
                        .map(|_| {
                            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            char::from(b'a' + u8::try_from(state >> 24).unwrap() % 26)
                        })
                        .collect()
                })
                .collect()
        };
        let (before, after) = (texts(1), texts(2));
        let slides = |texts: &[String]| {
            let list: Vec<(&str, &str)> = texts.iter().map(|text| ("t", text.as_str())).collect();
            parts(PartKind::Slide, &list)
        };
        let (before, after) = (slides(&before), slides(&after));
        let started = Instant::now();
        let pairs = pair_within(&before, &after, Duration::from_millis(300));
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{:?}",
            started.elapsed()
        );
        // Each part of both versions is told of once.
        let told: usize = pairs
            .iter()
            .map(|pair| match pair {
                Pair::Unchanged(..) | Pair::Modified(..) => 2,
                Pair::Created(_) | Pair::Deleted(_) => 1,
            })
            .sum();
        assert_eq!(told, 2_000);
    }

    #[test]
    fn the_bound_on_likeness_is_never_below_it() {
        for (a, b, bound) in [
            ("abcd", "abcd", 1.0),
            ("abcd", "dcba", 1.0),
            ("aaaa", "aabb", 0.5),
            ("abc", "xyz", 0.0),
            ("ü—", "é…", 0.5),
            ("", "", 1.0),
        ] {
            let most = Letters::of(a).likeness_at_most(&Letters::of(b));
            assert!((most - bound).abs() < 1e-6, "{a} {b}: {most}");
            let later = Instant::now() + Duration::from_secs(60);
            assert!(similarity(a, b, later) <= most + 1e-6, "{a} {b}");
        }
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
