//! The order of verifiers: dependency levels.

use std::collections::HashMap;

use formats::task::Verifier;

use crate::problem::{Place, Problem, Severity};
use crate::scoring::display_positions;

/// Groups `verifiers` (as positions in the slice) so that each verifier comes in a later level
/// than all it depends on; inside a level the order of the slice stays.
///
/// # Errors
/// Duplicate ids, dependencies on unknown ids, and cycles, the last with the display positions
/// along the cycle.
pub(crate) fn levels(verifiers: &[Verifier]) -> Result<Vec<Vec<usize>>, Vec<Problem>> {
    let (by_id, mut problems) = index(verifiers);
    let mut waits_for: Vec<Vec<usize>> = Vec::with_capacity(verifiers.len());
    for verifier in verifiers {
        let mut known = Vec::new();
        for id in verifier.verifier_dependencies.iter().flatten() {
            match by_id.get(id.as_str()) {
                Some(at) => known.push(*at),
                None => problems.push(problem(
                    verifier,
                    "verifier_dependencies",
                    "depends on a verifier that is not in the list".to_owned(),
                    id,
                )),
            }
        }
        waits_for.push(known);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut level_of: Vec<Option<usize>> = vec![None; verifiers.len()];
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let mut placed = 0;
    while placed < verifiers.len() {
        let ready: Vec<usize> = (0..verifiers.len())
            .filter(|at| level_of[*at].is_none())
            .filter(|at| {
                waits_for[*at]
                    .iter()
                    .all(|other| level_of[*other].is_some())
            })
            .collect();
        if ready.is_empty() {
            return Err(vec![cycle(verifiers, &waits_for, &level_of)]);
        }
        for at in &ready {
            level_of[*at] = Some(levels.len());
        }
        placed += ready.len();
        levels.push(ready);
    }
    Ok(levels)
}

/// Where each id stands, and the ids that stand twice.
fn index(verifiers: &[Verifier]) -> (HashMap<&str, usize>, Vec<Problem>) {
    let mut by_id = HashMap::new();
    let mut problems = Vec::new();
    for (at, verifier) in verifiers.iter().enumerate() {
        if let Some(first) = by_id.insert(verifier.verifier_id.as_str(), at) {
            let rule = format!(
                "must be unique; entries {} and {} of the list share it",
                first + 1,
                at + 1
            );
            problems.push(problem(
                verifier,
                "verifier_id",
                rule,
                &verifier.verifier_id,
            ));
        }
    }
    (by_id, problems)
}

fn problem(verifier: &Verifier, key: &str, rule: String, value: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        place: Place::Verifier(verifier.verifier_id.clone()),
        key: Some(key.to_owned()),
        rule,
        value: Some(value.into()),
    }
}

/// Follows unplaced dependencies until a verifier comes again: there is one, as every unplaced
/// verifier waits for another unplaced one.
fn cycle(verifiers: &[Verifier], waits_for: &[Vec<usize>], level_of: &[Option<usize>]) -> Problem {
    let unplaced = |at: &usize| level_of[*at].is_none();
    let mut path: Vec<usize> = Vec::new();
    let mut next = (0..verifiers.len()).find(unplaced);
    while let Some(at) = next {
        if let Some(start) = path.iter().position(|seen| *seen == at) {
            path.drain(..start);
            path.push(at);
            break;
        }
        path.push(at);
        next = waits_for[at].iter().copied().find(|at| unplaced(at));
    }
    let positions = display_positions(verifiers);
    let steps: Vec<String> = path
        .iter()
        .map(|at| {
            let id = verifiers[*at].verifier_id.as_str();
            format!("#{} `{id}`", positions.get(id).copied().unwrap_or_default())
        })
        .collect();
    let first = path
        .first()
        .map_or("", |at| verifiers[*at].verifier_id.as_str());
    Problem {
        severity: Severity::Error,
        place: Place::Verifier(first.to_owned()),
        key: Some("verifier_dependencies".to_owned()),
        rule: format!("dependencies form a cycle: {}", steps.join(" → ")),
        value: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(id: &str, index: i64, needs: &[&str]) -> Verifier {
        serde_json::from_value(serde_json::json!({
            "verifier_id": id, "world_id": null, "task_id": "t", "eval_config_id": "e",
            "verifier_values": {}, "verifier_index": index, "verifier_dependencies": needs,
        }))
        .unwrap()
    }

    #[test]
    fn levels_follow_dependencies_and_keep_the_input_order() {
        let verifiers = [
            verifier("c", 0, &["a", "b"]),
            verifier("a", 1, &[]),
            verifier("b", 2, &["a"]),
            verifier("d", 3, &[]),
        ];
        assert_eq!(levels(&verifiers).unwrap(), [vec![1, 3], vec![2], vec![0]]);
    }

    #[test]
    fn a_cycle_is_told_with_the_positions_along_it() {
        let verifiers = [
            verifier("free", 0, &[]),
            verifier("in", 1, &["x"]),
            verifier("x", 2, &["y", "free"]),
            verifier("y", 3, &["x"]),
        ];
        let problems = levels(&verifiers).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "verifier `x`, `verifier_dependencies`: dependencies form a cycle: #3 `x` → #4 `y` → #3 `x`"
        );
    }

    #[test]
    fn unknown_and_duplicate_ids_are_told_together() {
        let verifiers = [verifier("a", 0, &["nobody"]), verifier("a", 1, &[])];
        let problems = levels(&verifiers).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert_eq!(
            problems[0].to_string(),
            "verifier `a`, `verifier_id`: must be unique; entries 1 and 2 of the list share it, got \"a\""
        );
        assert!(problems[1].to_string().ends_with("got \"nobody\""));
    }
}
