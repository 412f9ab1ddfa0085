//! Patterns for file paths, as verifiers write them (§6.3.7).

use settings::problem::Findings;

/// Reports what is wrong with `pattern`, the value of `key`.
pub(super) fn check(key: &str, pattern: &str, findings: &mut Findings) {
    let trimmed = pattern.trim();
    let rule = if trimmed.is_empty() {
        "must not be empty"
    } else if trimmed.contains("..") {
        "must not contain `..`"
    } else if trimmed.contains(['<', '>', '"', '|']) {
        "must not contain `<`, `>`, `\"` or `|`"
    } else if trimmed.contains("***") {
        "must not contain `***`"
    } else if trimmed
        .split('/')
        .any(|component| component.contains("**") && component != "**")
    {
        "`**` must stand alone between slashes"
    } else {
        return;
    };
    findings.error(key, rule, pattern);
}

/// Whether `pattern` has wildcards.
pub(super) fn has_wildcards(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// Whether the last components of `path` match `pattern`: `*`, `?` and `[…]` stay within one
/// component, `**` stands for any number of components, case counts. `x/*.py` matches `a/x/y.py`.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = components(pattern).collect();
    let path: Vec<&str> = components(path).collect();
    if pattern.is_empty() {
        return false;
    }
    // reach[j]: the pattern so far can end right before path component j. At the beginning it can
    // end anywhere, as a pattern is anchored at the right end only.
    let mut reach = vec![true; path.len() + 1];
    for component in pattern {
        let mut next = vec![false; path.len() + 1];
        if component == "**" {
            let mut open = false;
            for (slot, reached) in next.iter_mut().zip(&reach) {
                open |= reached;
                *slot = open;
            }
        } else {
            for (at, name) in path.iter().enumerate() {
                next[at + 1] = reach[at] && component_matches(component, name);
            }
        }
        reach = next;
    }
    reach.last() == Some(&true)
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|component| !component.is_empty() && *component != ".")
}

/// Shell matching of one component. On a dead end only the last `*` takes one character more,
/// which is enough and keeps the time at most the product of both lengths.
fn component_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => match class(&pattern[p..], name[n]) {
                Some((length, true)) => Some(length),
                Some((_, false)) => None,
                // An unclosed bracket stands for itself.
                None => (name[n] == '[').then_some(1),
            },
            Some(literal) => (*literal == name[n]).then_some(1),
            None => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((at, taken))) => {
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

/// Length of the bracket expression at the start of `pattern`, and whether it matches `c`.
fn class(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = pattern.get(1) == Some(&'!');
    let start = if negated { 2 } else { 1 };
    // A closing bracket in the first place is a member.
    let end = (start + 1..pattern.len()).find(|at| pattern[*at] == ']')?;
    let members = &pattern[start..end];
    let mut at = 0;
    let mut found = false;
    while at < members.len() {
        if at + 2 < members.len() && members[at + 1] == '-' {
            found |= (members[at]..=members[at + 2]).contains(&c);
            at += 3;
        } else {
            found |= members[at] == c;
            at += 1;
        }
    }
    Some((end + 1, found != negated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored_at_the_right_end() {
        for (pattern, path, expected) in [
            ("*.py", "a/x/y.py", true),
            ("x/*.py", "a/x/y.py", true),
            ("a/*.py", "a/x/y.py", false),
            ("*/y.py", "y.py", false),
            ("y.*", "a/y.py", true),
            ("Y.py", "y.py", false),
            ("?.py", "ab.py", false),
            ("[a-c]?.txt", "dir/b9.txt", true),
            ("[!a-c]*.txt", "b9.txt", false),
            ("[]]*", "]x", true),
            ("a[b", "a[b", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("{a,b}.txt", "a.txt", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn two_stars_are_any_number_of_folders() {
        for (pattern, path, expected) in [
            ("src/**/x.rs", "src/x.rs", true),
            ("src/**/x.rs", "top/src/a/b/x.rs", true),
            ("src/**/x.rs", "lib/a/x.rs", false),
            ("**/x.rs", "x.rs", true),
            ("src/**", "src/a/b", true),
            ("**", "a", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn unusable_patterns_are_told() {
        for (pattern, part) in [
            ("  ", "empty"),
            ("../x", "`..`"),
            ("a|b", "must not contain `<`"),
            ("a/***/b", "`***`"),
            ("a**/b", "stand alone"),
        ] {
            let mut findings = Findings::default();
            check("file_pattern", pattern, &mut findings);
            let text = findings.errors().unwrap();
            assert!(text.contains(part), "{text}");
        }
        let mut findings = Findings::default();
        check("file_pattern", " Makefile ", &mut findings);
        check("file_pattern", "a/**/[b]*.xyz", &mut findings);
        assert!(findings.errors().is_none());
    }
}
