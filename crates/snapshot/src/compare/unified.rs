//! Unified diffs of texts of any length, in bounded memory.
//!
//! Each side is read twice as a stream: once for the hashes of its lines, from which the edit script
//! is made, and once for the lines that are shown. Lines at the beginning and the end that both
//! sides share cost nothing but their hashes.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::lines::{Line, Lines, Scanner};

/// What one diff may cost, and how much of it is shown. What is left out is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLimits {
    /// Lines around a change. Default 3.
    pub context_lines: usize,
    /// Lines of one side that are read after those that both sides begin with. Default 2,000,000.
    pub max_lines: usize,
    /// Lines of one side between the first and the last difference that are aligned.
    /// Default 250,000.
    pub max_changed_lines: usize,
    /// Bytes of one line that are shown. Default 64 KiB.
    pub max_line_bytes: usize,
    /// Bytes of the diff. Default 1 MiB.
    pub max_bytes: usize,
    /// Time for aligning; when it is over, the diff becomes coarser but stays right. Default 2 s.
    pub max_time: Duration,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            context_lines: 3,
            max_lines: 2_000_000,
            max_changed_lines: 250_000,
            max_line_bytes: 64 << 10,
            max_bytes: 1 << 20,
            max_time: Duration::from_secs(2),
        }
    }
}

/// A unified diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnifiedDiff {
    /// The diff with its header; empty where both sides are equal. Applied to the first side it
    /// gives the second, unless [`cut`](Self::cut) is set or a side is not UTF-8.
    pub text: String,
    /// Whether something was left out.
    pub cut: bool,
    /// What was left out, and other remarks.
    pub notes: Vec<String>,
}

/// The difference of two texts, which `old` and `new` open from their beginning each time they are
/// called; `name` stands in the header. `None` where a side is not text: it has a NUL, or it is
/// neither UTF-8 nor without control characters.
///
/// # Errors
/// When a side cannot be read.
pub fn unified_diff<A: Read, B: Read>(
    name: &str,
    old: impl Fn() -> io::Result<A>,
    new: impl Fn() -> io::Result<B>,
    limits: &DiffLimits,
) -> io::Result<Option<UnifiedDiff>> {
    let mut diff = UnifiedDiff::default();
    let Some(script) = script(old()?, new()?, limits, &mut diff)? else {
        return Ok(None);
    };
    if script.is_empty() {
        return Ok(Some(diff));
    }
    let mut writer = Writer {
        old: Lines::new(old()?),
        new: Lines::new(new()?),
        text: format!("--- a/{name}\n+++ b/{name}\n"),
        limits,
        shown: 0,
        cut_lines: 0,
    };
    let all = script.iter().map(changed_lines).sum::<usize>();
    let complete = writer.write(script)?;
    if writer.cut_lines > 0 {
        diff.cut = true;
        diff.notes.push(format!(
            "{} lines are cut after {} bytes (limit `max_line_bytes`)",
            writer.cut_lines, limits.max_line_bytes
        ));
    }
    if !complete {
        diff.cut = true;
        diff.notes.push(format!(
            "the diff is cut after {} bytes: {} of {all} changed lines are shown (limit `max_bytes`)",
            limits.max_bytes, writer.shown
        ));
    }
    diff.text = writer.text;
    Ok(Some(diff))
}

fn changed_lines(op: &DiffOp) -> usize {
    match op {
        DiffOp::Equal { .. } => 0,
        other => other.old_range().len() + other.new_range().len(),
    }
}

/// How the lines of one side become those of the other; `None` where a side is not text.
fn script(
    old: impl Read,
    new: impl Read,
    limits: &DiffLimits,
    diff: &mut UnifiedDiff,
) -> io::Result<Option<Vec<DiffOp>>> {
    let keys = RandomState::new();
    let mut old = Scanner::new(old, &keys);
    let mut new = Scanner::new(new, &keys);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut prefix = 0;
    loop {
        let (was, now) = (old.next_line()?, new.next_line()?);
        if was.is_some() && was == now {
            prefix += 1;
            continue;
        }
        ours.extend(was);
        theirs.extend(now);
        break;
    }
    let mut cut = rest(&mut old, &mut ours, limits)?;
    cut |= rest(&mut new, &mut theirs, limits)?;
    if !old.is_text() || !new.is_text() {
        return Ok(None);
    }
    if !old.is_utf8() || !new.is_utf8() {
        diff.notes
            .push("not UTF-8, read as Windows-1252".to_owned());
    }
    let mut suffix = 0;
    if !cut {
        let same = ours.iter().rev().zip(theirs.iter().rev());
        suffix = same.take_while(|(was, now)| was == now).count();
        ours.truncate(ours.len() - suffix);
        theirs.truncate(theirs.len() - suffix);
    }
    for side in [&mut ours, &mut theirs] {
        if side.len() > limits.max_changed_lines {
            side.truncate(limits.max_changed_lines);
            cut = true;
        }
    }
    let deadline = Instant::now() + limits.max_time;
    let middle = capture_diff_slices_deadline(Algorithm::Myers, &ours, &theirs, Some(deadline));
    if Instant::now() >= deadline {
        diff.notes.push(format!(
            "the diff may show more changes than needed: {} ms were not enough (limit `max_time`)",
            limits.max_time.as_millis()
        ));
    }
    let mut ops = Vec::with_capacity(middle.len() + 2);
    if prefix > 0 {
        ops.push(equal(0, 0, prefix));
    }
    ops.extend(middle.into_iter().map(|op| moved(op, prefix)));
    if cut {
        diff.cut = true;
        unaligned_end_off(&mut ops);
        let (was, now) = ops
            .last()
            .map_or((0, 0), |op| (op.old_range().end, op.new_range().end));
        diff.notes.push(format!(
            "not compared from line {} on, which was line {} (limits `max_lines`, `max_changed_lines`)",
            now + 1,
            was + 1
        ));
    } else if suffix > 0 {
        ops.push(equal(prefix + ours.len(), prefix + theirs.len(), suffix));
    }
    let changed = ops.iter().any(|op| changed_lines(op) > 0);
    Ok(Some(if changed { ops } else { Vec::new() }))
}

/// The hashes of what is left of one side, and whether there is more than allowed.
fn rest<R: Read>(
    side: &mut Scanner<'_, R>,
    hashes: &mut Vec<u64>,
    limits: &DiffLimits,
) -> io::Result<bool> {
    while let Some(hash) = side.next_line()? {
        if hashes.len() >= limits.max_lines {
            return Ok(true);
        }
        hashes.push(hash);
    }
    Ok(false)
}

/// The ends of two sides that were cut need not belong together: what stands after the last lines
/// that both have is no difference yet.
fn unaligned_end_off(ops: &mut Vec<DiffOp>) {
    if ops.iter().any(|op| changed_lines(op) == 0) {
        while ops.last().is_some_and(|op| changed_lines(op) > 0) {
            ops.pop();
        }
    }
}

const fn equal(old_index: usize, new_index: usize, len: usize) -> DiffOp {
    DiffOp::Equal {
        old_index,
        new_index,
        len,
    }
}

/// The operation `by` lines further down on both sides.
fn moved(op: DiffOp, by: usize) -> DiffOp {
    let (old_index, new_index) = (op.old_range().start + by, op.new_range().start + by);
    match op {
        DiffOp::Equal { len, .. } => equal(old_index, new_index, len),
        DiffOp::Delete { old_len, .. } => DiffOp::Delete {
            old_index,
            old_len,
            new_index,
        },
        DiffOp::Insert { new_len, .. } => DiffOp::Insert {
            old_index,
            new_index,
            new_len,
        },
        DiffOp::Replace {
            old_len, new_len, ..
        } => DiffOp::Replace {
            old_index,
            old_len,
            new_index,
            new_len,
        },
    }
}

struct Writer<'l, A, B> {
    old: Lines<A>,
    new: Lines<B>,
    text: String,
    limits: &'l DiffLimits,
    /// Changed lines written.
    shown: usize,
    cut_lines: usize,
}

impl<A: Read, B: Read> Writer<'_, A, B> {
    /// Writes the hunks; `false` where they do not fit.
    fn write(&mut self, script: Vec<DiffOp>) -> io::Result<bool> {
        for hunk in group_diff_ops(script, self.limits.context_lines) {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
                continue;
            };
            let old = place(first.old_range().start..last.old_range().end);
            let new = place(first.new_range().start..last.new_range().end);
            if !self.push(&format!("@@ -{old} +{new} @@\n")) {
                return Ok(false);
            }
            for op in &hunk {
                let equal = changed_lines(op) == 0;
                for number in op.old_range() {
                    let line = self.old.take(number, self.limits.max_line_bytes)?;
                    if !self.line(if equal { ' ' } else { '-' }, line) {
                        return Ok(false);
                    }
                }
                if equal {
                    continue;
                }
                for number in op.new_range() {
                    let line = self.new.take(number, self.limits.max_line_bytes)?;
                    if !self.line('+', line) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Adds a line, or nothing where it does not fit.
    fn line(&mut self, mark: char, line: Option<Line>) -> bool {
        let Some(line) = line else {
            return true;
        };
        let mut shown = format!("{mark}{}", line.text);
        if line.left_out > 0 {
            let _ = write!(shown, "… [{} more bytes]", line.left_out);
            self.cut_lines += 1;
        }
        shown.push('\n');
        if !line.ends {
            shown.push_str("\\ No newline at end of file\n");
        }
        let fits = self.push(&shown);
        self.shown += usize::from(fits && mark != ' ');
        fits
    }

    fn push(&mut self, text: &str) -> bool {
        let fits = self.text.len() + text.len() <= self.limits.max_bytes;
        if fits {
            self.text.push_str(text);
        }
        fits
    }
}

/// A range of lines as a hunk states it: counted from 1, an empty one by the line before it.
fn place(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}
