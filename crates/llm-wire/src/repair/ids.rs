//! Ids of calls on the wire.

use std::collections::HashSet;

use formats::chat::ToolCall;

use super::names::check_sum;

/// The ids of the calls of one request: `^[a-zA-Z0-9_-]+$`, not too long, each one used once in the
/// conversation.
///
/// An id depends only on what stands before it, so that it is the same at every step.
#[derive(Debug)]
pub struct WireIds {
    longest: usize,
    taken: HashSet<String>,
}

impl WireIds {
    /// Ids of at most `longest` characters, which must be more than 20.
    pub fn new(longest: usize) -> Self {
        Self {
            longest,
            taken: HashSet::new(),
        }
    }

    /// The next id, for the call `id`.
    pub fn wire(&mut self, id: &str) -> String {
        let mut clean: String = id
            .chars()
            .map(|character| match character {
                'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => character,
                _ => '_',
            })
            .collect();
        if clean.len() > self.longest {
            let sum = format!("_{:08x}", check_sum(id.as_bytes()));
            clean.truncate(self.longest - sum.len());
            clean.push_str(&sum);
        }
        let mut wire = clean.clone();
        let mut count = 1_u32;
        while !self.taken.insert(wire.clone()) {
            count += 1;
            let suffix = format!("_{count}");
            let kept = clean.len().min(self.longest.saturating_sub(suffix.len()));
            wire = format!("{}{suffix}", &clean[..kept]);
        }
        wire
    }
}

/// Gives an id of its own to each call of an answer that has none, or that of another call: a result
/// refers to its call by the id.
pub fn own_ids(calls: &mut [ToolCall], prefix: &str) {
    for index in 0..calls.len() {
        let (earlier, rest) = calls.split_at_mut(index);
        let Some(call) = rest.first_mut() else {
            continue;
        };
        if call.id.is_empty() || earlier.iter().any(|other| other.id == call.id) {
            call.id = format!("{prefix}_{}", uuid::Uuid::new_v4().simple());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_ids_stay_apart() {
        let mut ids = WireIds::new(64);
        let long = "x".repeat(64);
        assert_eq!(ids.wire(&long), long);
        let one = ids.wire(&format!("{long}1"));
        let two = ids.wire(&format!("{long}2"));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (64, 64));
    }

    proptest! {
        #[test]
        fn ids_fit_and_are_used_once(ids in proptest::collection::vec("[a-c_:]{1,30}", 1..30)) {
            let mut map = WireIds::new(24);
            let wires: Vec<String> = ids.iter().map(|id| map.wire(id)).collect();
            let fits = |wire: &String| {
                wire.len() <= 24
                    && wire.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            prop_assert!(wires.iter().all(fits));
            let unique: HashSet<&String> = wires.iter().collect();
            prop_assert_eq!(unique.len(), ids.len());
        }
    }
}
