//! A bounded map with text keys that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Values by text, bounded by their total weight.
#[derive(Debug)]
pub(super) struct Kept<V> {
    most: usize,
    weight: usize,
    /// Counter of uses, which orders the entries.
    clock: u64,
    entries: HashMap<Arc<str>, Entry<V>>,
    /// Keys by their last use.
    uses: BTreeMap<u64, Arc<str>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<V> Kept<V> {
    /// Creates an empty map for values of at most this total weight.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            weight: 0,
            clock: 0,
            entries: HashMap::new(),
            uses: BTreeMap::new(),
        }
    }

    /// Returns the value of a text and marks the entry as used.
    pub(super) fn get(&mut self, text: &str) -> Option<&V> {
        let entry = self.entries.get_mut(text)?;
        self.clock += 1;
        if let Some(text) = self.uses.remove(&entry.used) {
            self.uses.insert(self.clock, text);
        }
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Inserts or replaces the value of a text, evicting the least recently used entries.
    pub(super) fn put(&mut self, text: &str, value: V, weight: usize) {
        self.remove(text);
        if weight > self.most {
            return;
        }
        while self.weight + weight > self.most {
            let Some((_, oldest)) = self.uses.first_key_value() else {
                break;
            };
            let oldest = Arc::clone(oldest);
            self.remove(&oldest);
        }
        self.clock += 1;
        let text: Arc<str> = text.into();
        self.uses.insert(self.clock, Arc::clone(&text));
        let used = self.clock;
        self.entries.insert(text, Entry { value, weight, used });
        self.weight += weight;
    }

    fn remove(&mut self, text: &str) {
        if let Some(entry) = self.entries.remove(text) {
            self.uses.remove(&entry.used);
            self.weight -= entry.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recent_goes_first_and_the_weight_is_bounded() {
        let mut kept = Kept::new(10);
        for name in ["a", "b", "c"] {
            kept.put(name, name, 3);
        }
        assert_eq!(kept.get("a"), Some(&"a"));
        kept.put("d", "d", 3);
        assert_eq!(kept.get("b"), None, "`a` was used since");
        assert_eq!(kept.get("a"), Some(&"a"));
        assert_eq!(kept.weight, 9);
        kept.put("a", "again", 4);
        assert_eq!(kept.get("a"), Some(&"again"));
        assert_eq!(kept.weight, 10);
        kept.put("a", "too large", 11);
        assert_eq!(kept.get("a"), None);
        assert_eq!(kept.weight, 6);
        assert_eq!(kept.uses.len(), kept.entries.len());
    }
}
