//! The numbers by which messages call verifiers.

use std::collections::{BTreeMap, HashMap};

use formats::task::Verifier;

/// The number by which messages call each verifier: verifiers are grouped by task (else by
/// world), each group is sorted by `verifier_index` and numbered from 1 (`spec/grading.md` §2.1).
#[must_use]
pub fn display_positions(verifiers: &[Verifier]) -> HashMap<&str, usize> {
    let mut groups: BTreeMap<Option<&str>, Vec<&Verifier>> = BTreeMap::new();
    for verifier in verifiers {
        let group = verifier.task_id.as_deref().or(verifier.world_id.as_deref());
        groups.entry(group).or_default().push(verifier);
    }
    let mut positions = HashMap::new();
    for mut group in groups.into_values() {
        group.sort_by_key(|verifier| verifier.verifier_index);
        for (at, verifier) in group.into_iter().enumerate() {
            positions.insert(verifier.verifier_id.as_str(), at + 1);
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(id: &str, index: i64) -> Verifier {
        serde_json::from_value(serde_json::json!({
            "verifier_id": id, "world_id": null, "task_id": "t", "eval_config_id": "e",
            "verifier_values": {}, "verifier_index": index,
        }))
        .unwrap()
    }

    #[test]
    fn positions_count_within_the_task_by_index() {
        let mut verifiers = [verifier("late", 9), verifier("early", 2)].to_vec();
        let mut universal = verifier("world", 5);
        universal.task_id = None;
        universal.world_id = Some("w".to_owned());
        verifiers.push(universal);
        let positions = display_positions(&verifiers);
        assert_eq!(positions["early"], 1);
        assert_eq!(positions["late"], 2);
        assert_eq!(positions["world"], 1);
    }
}
