//! How much of the evidence fits into the judge's context (`spec/grading.md` §5.8).
//!
//! Token counts are estimates by `llm_client::tokens`; a share of the context is left free for
//! their error and for the reply.

use llm_client::tokens;

/// Share of the context that a prompt may fill.
const USABLE: f64 = 0.90;

/// Tokens of one picture.
pub const PICTURE: u64 = 1500;

/// Characters of one text that are looked at in all.
const MAX_TEXT_CHARS: usize = 2_000_000;

/// Counts and limits of one judge model.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Tokens that the model reads at most.
    pub limit: u64,
    /// Our estimate is low for some tokenizers.
    multiplier: f64,
}

impl Context {
    /// The context of the model `name`, by the table of models, else by the family in its name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let limit = llm_client::known_model(name).map_or_else(
            || {
                if lower.contains("gemini") {
                    1_000_000
                } else if lower.contains("claude") {
                    200_000
                } else {
                    128_000
                }
            },
            |model| model.max_input_tokens,
        );
        let multiplier = if lower.contains("gemini") { 1.9 } else { 1.0 };
        Self { limit, multiplier }
    }

    /// The context that a prompt for all models of `names` has to fit into.
    #[must_use]
    pub fn of_all<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        names
            .map(Self::of)
            .reduce(|a, b| Self {
                limit: a.limit.min(b.limit),
                multiplier: a.multiplier.max(b.multiplier),
            })
            .unwrap_or_else(|| Self::of(""))
    }

    /// Tokens of `text`.
    #[must_use]
    pub fn tokens(&self, text: &str) -> u64 {
        scaled(tokens::of_text(text), self.multiplier)
    }

    /// `text` within `share` of the context, and whether it was cut.
    #[must_use]
    pub fn shortened(&self, text: &str, share: f64) -> (String, bool) {
        let (mut text, bounded) = bounded(text);
        let cut = self.fit(&mut [&mut text], self.share(share));
        (text, bounded || cut[0])
    }

    /// `share` of the whole context.
    #[must_use]
    pub fn share(&self, share: f64) -> u64 {
        scaled(self.limit, share)
    }

    /// Divides what the prompt leaves free among the evidence and the references.
    #[must_use]
    pub fn allocate(&self, need: Need) -> Allocation {
        let spent = need.prompt + PICTURE * need.pictures;
        let free = self.share(USABLE).saturating_sub(spent);
        if need.evidence + need.references <= free {
            return Allocation {
                evidence: need.evidence,
                references: need.references,
            };
        }
        if free == 0 {
            return Allocation {
                evidence: 0,
                references: 0,
            };
        }
        let evidence = need.evidence.min(free);
        let references = need
            .references
            .min(free - evidence)
            .min(scaled(free, reference_cap(need.evidence, free)));
        Allocation {
            evidence,
            references,
        }
    }

    /// Cuts `texts` so that together they have at most `budget` tokens. Short texts stay whole;
    /// what they leave of their share goes to the longer ones. Returns which were cut.
    pub fn fit(&self, texts: &mut [&mut String], budget: u64) -> Vec<bool> {
        let counts: Vec<u64> = texts.iter().map(|text| self.tokens(text)).collect();
        let mut cut = vec![false; texts.len()];
        if counts.iter().sum::<u64>() <= budget {
            return cut;
        }
        let mut order: Vec<usize> = (0..texts.len()).filter(|at| counts[*at] > 0).collect();
        order.sort_by_key(|at| counts[*at]);
        let mut left = budget;
        let mut remaining = order.len() as u64;
        for at in order {
            let share = left / remaining;
            remaining -= 1;
            if counts[at] <= share {
                left -= counts[at];
                continue;
            }
            let shorter = self.cut(texts[at], counts[at], share);
            left -= self.tokens(&shorter).min(left);
            *texts[at] = shorter;
            cut[at] = true;
        }
        cut
    }

    /// The beginning and the end of `text`, which has `count` tokens, within `budget` tokens.
    fn cut(&self, text: &str, count: u64, budget: u64) -> String {
        let chars = text.chars().count();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "texts have at most MAX_TEXT_CHARS characters"
        )]
        let mut keep = (chars as f64 * budget as f64 / count.max(1) as f64 * 0.95) as usize;
        // Shrink by a tenth until it fits; the estimate is linear, so this ends soon.
        while keep > 0 {
            let shorter = head_and_tail(text, chars, keep);
            if self.tokens(&shorter) <= budget {
                return shorter;
            }
            keep = keep * 9 / 10;
        }
        String::new()
    }
}

/// What a prompt needs, in tokens.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The prompt without any content of artifacts.
    pub prompt: u64,
    /// Pictures shown beside it.
    pub pictures: u64,
    /// All contents of the artifacts that are judged.
    pub evidence: u64,
    /// All contents of the reference files.
    pub references: u64,
}

/// What each side may fill, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// For the artifacts that are judged.
    pub evidence: u64,
    /// For the reference files.
    pub references: u64,
}

/// The largest share for references: 0.40 where the evidence is small, 0.15 where it is large.
#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
fn reference_cap(evidence: u64, free: u64) -> f64 {
    let fullness = evidence as f64 / free as f64;
    if fullness <= 0.3 {
        0.40
    } else if fullness >= 0.7 {
        0.15
    } else {
        0.40 - 0.25 * (fullness - 0.3) / 0.4
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "token counts are far below 2^53"
)]
fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor) as u64
}

/// `keep` of the `chars` characters of `text`: 60 % from the beginning, 40 % from the end, both
/// ending at a line break where there is one, with a line between them that says what is missing.
#[must_use]
pub fn head_and_tail(text: &str, chars: usize, keep: usize) -> String {
    let at = |char_index: usize| {
        text.char_indices()
            .nth(char_index)
            .map_or(text.len(), |(at, _)| at)
    };
    let head = &text[..at(keep * 6 / 10)];
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let tail = &text[at(chars - keep * 4 / 10)..];
    let tail = tail.find('\n').map_or(tail, |end| &tail[end + 1..]);
    let left_out = &text[head.len()..text.len() - tail.len()];
    let lines = left_out.lines().count();
    let line_break = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{line_break}[… {lines} lines left out …]\n{tail}")
}

/// At most two million characters of `text`, and whether it was cut.
#[must_use]
pub fn bounded(text: &str) -> (String, bool) {
    let end = if text.len() > MAX_TEXT_CHARS {
        text.char_indices().nth(MAX_TEXT_CHARS)
    } else {
        None
    };
    match end {
        // What is left out is not copied.
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context {
        limit: 200_000,
        multiplier: 1.0,
    };

    #[test]
    fn the_worked_example_of_the_spec() {
        let allocation = CONTEXT.allocate(Need {
            prompt: 2_000,
            pictures: 4,
            evidence: 90_000,
            references: 120_000,
        });
        // A = 172,000; q = 0.5233; c = 0.26047; floor(c·A) = 44,799 or 44,800 by rounding of c.
        assert_eq!(allocation.evidence, 90_000);
        assert!(
            (44_799..=44_801).contains(&allocation.references),
            "{allocation:?}"
        );
    }

    #[test]
    fn nothing_is_cut_when_all_fits_and_nothing_is_left_when_nothing_does() {
        let need = Need {
            prompt: 1_000,
            pictures: 0,
            evidence: 100_000,
            references: 79_000,
        };
        let whole = CONTEXT.allocate(need);
        assert_eq!((whole.evidence, whole.references), (100_000, 79_000));
        let none = CONTEXT.allocate(Need {
            prompt: 180_000,
            ..need
        });
        assert_eq!((none.evidence, none.references), (0, 0));
        let evidence_only = CONTEXT.allocate(Need {
            evidence: 500_000,
            ..need
        });
        assert_eq!(
            (evidence_only.evidence, evidence_only.references),
            (179_000, 0)
        );
    }

    #[test]
    fn short_texts_stay_whole_and_leave_their_share() {
        // 4 ASCII characters are a token: 10, 1000 and 1000 tokens into 1010.
        let mut short = "abcd".repeat(10);
        let mut first: String = (0..400).map(|n| format!("line {n:04}\n")).collect();
        let mut second = first.clone();
        let before = first.clone();
        let cut = CONTEXT.fit(&mut [&mut short, &mut first, &mut second], 1010);
        assert_eq!(cut, [false, true, true]);
        assert_eq!(short.len(), 40);
        for text in [&first, &second] {
            let tokens = CONTEXT.tokens(text);
            assert!((400..=500).contains(&tokens), "{tokens}");
            assert!(text.starts_with("line 0000\n") && text.ends_with("line 0399\n"));
            assert!(text.contains("lines left out"));
            // Whole lines only, and the number is right.
            let kept = text
                .lines()
                .filter(|line| line.starts_with("line "))
                .count();
            assert!(text.contains(&format!("[… {} lines left out …]", 400 - kept)));
            assert!(
                text.lines()
                    .filter(|l| l.starts_with("line "))
                    .all(|l| before.contains(l) && l.len() == 9)
            );
        }
        let mut text = before;
        let cut = CONTEXT.fit(&mut [&mut text], 0);
        assert_eq!((cut, text.as_str()), (vec![true], ""));
    }

    #[test]
    fn limits_come_from_the_table_or_the_family() {
        assert_eq!(Context::of("openai/gpt-4o").limit, 128_000);
        assert_eq!(Context::of("anthropic/claude-unheard-of").limit, 200_000);
        assert_eq!(Context::of("x/gemini-unheard-of").limit, 1_000_000);
        assert_eq!(Context::of("x/y").limit, 128_000);
        assert_eq!(
            Context::of("x/gemini-unheard-of").tokens("abcd".repeat(10).as_str()),
            19
        );
    }
}
