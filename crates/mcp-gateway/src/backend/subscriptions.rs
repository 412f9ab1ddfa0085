//! Who wants to hear of changes of which resource of a server.
//!
//! A server knows one subscriber, the gateway. It is asked to stop only when the last client has
//! gone that wanted to hear.

use std::collections::{BTreeMap, HashSet};

/// Subscribers by the server's own URI of the resource.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(BTreeMap<String, HashSet<String>>);

impl Subscriptions {
    /// Adds a subscriber, and says whether it is its first resource.
    pub(crate) fn add(&mut self, uri: &str, subscriber: &str) -> bool {
        let is_new = !self.0.values().any(|known| known.contains(subscriber));
        let known = self.0.entry(uri.to_owned()).or_default();
        known.insert(subscriber.to_owned());
        is_new
    }

    /// Removes a subscriber, and says whether nobody is left.
    pub(crate) fn remove(&mut self, uri: &str, subscriber: &str) -> bool {
        let Some(known) = self.0.get_mut(uri) else {
            return true;
        };
        known.remove(subscriber);
        let is_last = known.is_empty();
        if is_last {
            self.0.remove(uri);
        }
        is_last
    }

    /// Removes a subscriber from everything, and returns the resources for which nobody is left.
    pub(crate) fn remove_all(&mut self, subscriber: &str) -> Vec<String> {
        let of_it: Vec<String> = self
            .0
            .iter()
            .filter(|(_, known)| known.contains(subscriber))
            .map(|(uri, _)| uri.clone())
            .collect();
        of_it
            .into_iter()
            .filter(|uri| self.remove(uri, subscriber))
            .collect()
    }

    /// All resources that somebody wants to hear of.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_one_ends_a_subscription() {
        let mut all = Subscriptions::default();
        assert!(all.add("x://1", "a"));
        assert!(!all.add("x://2", "a"));
        assert!(all.add("x://1", "b"));
        assert!(!all.remove("x://1", "a"));
        assert!(!all.remove("x://1", "a"), "b is still there");
        assert_eq!(all.remove_all("a"), ["x://2"]);
        assert_eq!(all.uris(), ["x://1"]);
        assert!(all.remove("x://1", "b"));
        assert!(all.remove("x://1", "b"), "nobody is left");
    }
}
