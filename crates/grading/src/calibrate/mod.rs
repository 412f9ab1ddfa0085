//! How far a judge agrees with people: the confusion matrix, Cohen's kappa with an interval, and
//! how often the judge contradicts itself.

mod cases;

use serde::Serialize;

pub use self::cases::{JudgedCase, LabelledCase, judge_cases};

/// What people say about a case, and what the judge said each time it was asked. `None` stands for
/// an answer that is no verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// Whether people find the criterion met.
    pub label: bool,
    /// The judge's verdict that counts: its majority.
    pub verdict: Option<bool>,
    /// All its votes.
    pub votes: Vec<Option<bool>>,
}

/// The agreement of a judge with people.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Cases with a verdict.
    pub judged: usize,
    /// Cases without.
    pub without_verdict: usize,
    /// People and the judge find it met.
    pub true_positives: usize,
    /// Only the judge finds it met.
    pub false_positives: usize,
    /// Only people find it met.
    pub false_negatives: usize,
    /// Neither finds it met.
    pub true_negatives: usize,
    /// The share of judged cases on which both agree; absent without cases.
    pub accuracy: Option<f64>,
    /// Cohen's kappa: agreement beyond chance, 1 at most. Absent where chance alone agrees always.
    pub kappa: Option<f64>,
    /// The interval of the kappa at 95 %, by its large-sample standard error.
    pub kappa_interval: Option<(f64, f64)>,
    /// The share of votes that differ from the majority on their case; absent without repeated
    /// votes.
    pub flip_rate: Option<f64>,
}

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Compares labels and verdicts.
#[must_use]
pub fn calibration(cases: &[Labelled]) -> Calibration {
    let count = |label: bool, verdict: bool| {
        cases
            .iter()
            .filter(|case| case.label == label && case.verdict == Some(verdict))
            .count()
    };
    let (tp, fp) = (count(true, true), count(false, true));
    let (fn_, tn) = (count(true, false), count(false, false));
    let judged = tp + fp + fn_ + tn;
    let (kappa, kappa_interval) = kappa(float(tp), float(fp), float(fn_), float(tn));
    Calibration {
        judged,
        without_verdict: cases.len() - judged,
        true_positives: tp,
        false_positives: fp,
        false_negatives: fn_,
        true_negatives: tn,
        accuracy: (judged > 0).then(|| float(tp + tn) / float(judged)),
        kappa,
        kappa_interval,
        flip_rate: flip_rate(cases),
    }
}

/// κ = (o − e) / (1 − e), and its interval with the standard error
/// √(o(1 − o) / (n(1 − e)²)) of Cohen (1960).
fn kappa(tp: f64, fp: f64, fn_: f64, tn: f64) -> (Option<f64>, Option<(f64, f64)>) {
    let n = tp + fp + fn_ + tn;
    if n == 0.0 {
        return (None, None);
    }
    let observed = (tp + tn) / n;
    let expected = ((tp + fn_) * (tp + fp) + (fp + tn) * (fn_ + tn)) / (n * n);
    if (1.0 - expected).abs() < 1e-12 {
        return (None, None);
    }
    let kappa = (observed - expected) / (1.0 - expected);
    let error = (observed * (1.0 - observed) / n).sqrt() / (1.0 - expected);
    let low = (kappa - Z * error).max(-1.0);
    let high = (kappa + Z * error).min(1.0);
    (Some(kappa), Some((low, high)))
}

fn flip_rate(cases: &[Labelled]) -> Option<f64> {
    let (mut votes, mut flipped) = (0, 0);
    for case in cases {
        let met = case
            .votes
            .iter()
            .filter(|vote| **vote == Some(true))
            .count();
        let not = case
            .votes
            .iter()
            .filter(|vote| **vote == Some(false))
            .count();
        if met + not > 1 {
            votes += met + not;
            flipped += met.min(not);
        }
    }
    (votes > 0).then(|| float(flipped) / float(votes))
}

#[expect(clippy::cast_precision_loss, reason = "counts of cases are small")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(tp: usize, fp: usize, fn_: usize, tn: usize) -> Vec<Labelled> {
        let mut cases = Vec::new();
        for (count, label, verdict) in [
            (tp, true, true),
            (fp, false, true),
            (fn_, true, false),
            (tn, false, false),
        ] {
            for _ in 0..count {
                cases.push(Labelled {
                    label,
                    verdict: Some(verdict),
                    votes: vec![Some(verdict)],
                });
            }
        }
        cases
    }

    #[test]
    fn the_textbook_example() {
        // 20, 5, 10, 15: observed 0.7, expected 0.5·0.6 + 0.5·0.4 = 0.5, kappa 0.4;
        // error √(0.21/50)/0.5 = 0.129615, times 1.96 = 0.254040.
        let found = calibration(&cases(20, 5, 10, 15));
        assert_eq!(found.accuracy, Some(0.7));
        assert!((found.kappa.unwrap() - 0.4).abs() < 1e-12);
        let (low, high) = found.kappa_interval.unwrap();
        assert!(
            (low - 0.145_960).abs() < 1e-5 && (high - 0.654_040).abs() < 1e-5,
            "{low} {high}"
        );
        assert_eq!(found.flip_rate, None);
    }

    #[test]
    fn where_chance_agrees_always_there_is_no_kappa() {
        assert_eq!(calibration(&cases(5, 0, 0, 0)).kappa, None);
        assert_eq!(calibration(&[]).accuracy, None);
        let perfect = calibration(&cases(3, 0, 0, 3));
        assert_eq!(perfect.kappa_interval, Some((1.0, 1.0)));
    }

    #[test]
    fn votes_that_flip_are_counted_and_lost_ones_are_not() {
        let case = |votes: &[Option<bool>]| Labelled {
            label: true,
            verdict: None,
            votes: votes.to_vec(),
        };
        let (yes, no) = (Some(true), Some(false));
        let found = calibration(&[case(&[yes, yes, no]), case(&[no, no, None]), case(&[yes])]);
        // 1 of 3 and 0 of 2.
        assert_eq!(found.flip_rate, Some(0.2));
        assert_eq!(found.without_verdict, 3);
    }
}
