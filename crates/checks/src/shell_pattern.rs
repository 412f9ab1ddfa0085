//! Shell patterns over whole paths, in which `*` also crosses `/` (§6.3.10).

/// Whether `pattern` fits the base name or the whole of `path`. Case counts.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    let Some(regex) = regex(pattern) else {
        return false;
    };
    regex.is_match(base) || regex.is_match(path)
}

fn regex(pattern: &str) -> Option<regex::Regex> {
    let mut text = String::from(r"(?s)\A");
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            '[' => {
                // A closing bracket in the first place is a member.
                let first = at + 1 + usize::from(chars.get(at + 1) == Some(&'!'));
                match (first + 1..chars.len()).find(|end| chars[*end] == ']') {
                    Some(end) => {
                        text.push('[');
                        if first > at + 1 {
                            text.push('^');
                        }
                        for c in &chars[first..end] {
                            if matches!(c, '\\' | '[' | ']' | '^' | '&' | '~') {
                                text.push('\\');
                            }
                            text.push(*c);
                        }
                        text.push(']');
                        at = end;
                    }
                    None => text.push_str(r"\["),
                }
            }
            c => text.push_str(&regex::escape(&c.to_string())),
        }
        at += 1;
    }
    text.push_str(r"\z");
    regex::RegexBuilder::new(&text)
        .size_limit(1 << 20)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_cross_slashes_and_base_names_fit_too() {
        for (pattern, path, fits) in [
            ("*.pdf", "filesystem/a/b.pdf", true),
            ("b.pdf", "filesystem/a/b.pdf", true),
            ("filesystem/*.pdf", "filesystem/a/b.pdf", true),
            ("a/*.pdf", "filesystem/a/b.pdf", false),
            ("*.PDF", "b.pdf", false),
            ("[ab]?.pdf", "x/b1.pdf", true),
            ("[!ab]?.pdf", "x/b1.pdf", false),
            ("a[b.pdf", "a[b.pdf", true),
            ("a.pdf", "axpdf", false),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
    }
}
