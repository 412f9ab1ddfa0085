//! Shell patterns for file names: `*`, `?`, `[set]`, `[!set]`, and nothing else (§2.6). Every text is a valid pattern.

/// A pattern, taken apart.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// `*`
    Many,
    /// `?`
    One,
    Exactly(char),
    Set {
        members: Vec<(char, char)>,
        negated: bool,
    },
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let symbols: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(&symbol) = symbols.get(at) {
            at += 1;
            parts.push(match symbol {
                // Several in a row mean the same as one.
                '*' if parts.last() == Some(&Part::Many) => continue,
                '*' => Part::Many,
                '?' => Part::One,
                '[' => match set(&symbols[at..]) {
                    Some((part, length)) => {
                        at += length;
                        part
                    }
                    // A bracket that never closes stands for itself.
                    None => Part::Exactly('['),
                },
                other => Part::Exactly(other),
            });
        }
        Self(parts)
    }

    /// Matches the whole name, upper and lower case told apart. Time is at most the product of both lengths.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // Where the last `*` stands and up to where it has eaten; the only place worth going back to.
        let mut star: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.0.get(part) {
                Some(Part::Many) => {
                    star = Some((part, at));
                    part += 1;
                }
                Some(single) if single.accepts(name[at]) => {
                    part += 1;
                    at += 1;
                }
                _ => match star.as_mut() {
                    Some((star, eaten)) => {
                        *eaten += 1;
                        (part, at) = (*star + 1, *eaten);
                    }
                    None => return false,
                },
            }
        }
        self.0[part..].iter().all(|rest| *rest == Part::Many)
    }
}

impl Part {
    fn accepts(&self, symbol: char) -> bool {
        match self {
            Self::Many => false,
            Self::One => true,
            Self::Exactly(own) => *own == symbol,
            Self::Set { members, negated } => {
                members
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&symbol))
                    != *negated
            }
        }
    }
}

/// A set after its opening bracket, and how many symbols it takes. A bracket in first place is a member.
fn set(symbols: &[char]) -> Option<(Part, usize)> {
    let negated = symbols.first() == Some(&'!');
    let start = usize::from(negated);
    let close = start
        + 1
        + symbols
            .get(start + 1..)?
            .iter()
            .position(|symbol| *symbol == ']')?;
    let mut members = Vec::new();
    let mut rest = &symbols[start..close];
    while let [first, ..] = rest {
        match rest {
            [from, '-', to, ..] => {
                members.push((*from, *to));
                rest = &rest[3..];
            }
            _ => {
                members.push((*first, *first));
                rest = &rest[1..];
            }
        }
    }
    Some((Part::Set { members, negated }, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_patterns() {
        for (pattern, name, wanted) in [
            ("*", "", true),
            ("*", ".hidden", true),
            ("*.txt", "a.txt", true),
            ("*.txt", "a.TXT", false),
            ("*.txt", "a.txt.bak", false),
            ("data_?.csv", "data_1.csv", true),
            ("data_?.csv", "data_12.csv", false),
            ("?", "é", true),
            ("[abc]x", "bx", true),
            ("[!abc]x", "bx", false),
            ("[!abc]x", "dx", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", false),
            ("[]a]", "]", true),
            ("[!]a]", "]", false),
            ("[a-]", "-", true),
            ("[ab", "[ab", true),
            ("[", "[", true),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
            (r"\*", r"\x", true),
            ("**", "abc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("", "a", false),
            ("", "", true),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                wanted,
                "{pattern} on {name}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = Pattern::new(&("*a".repeat(200) + "b"));
        assert!(!pattern.matches(&"a".repeat(255)));
    }
}
