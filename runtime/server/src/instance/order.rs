//! Orders of resources by their refs, and their transitive dependents.

use std::collections::{BTreeSet, HashMap, VecDeque};

use watershed_controller::{Key, Uid};

use crate::report::Entry;

/// Orders resources so that each comes after those that it reads.
///
/// Whoever asks for a resource cancels what runs below it, so a reader that was asked for first would begin for
/// nothing.
pub(super) fn parents_first(entries: &[Entry], uids: Vec<Uid>) -> Vec<Uid> {
    let mut left: BTreeSet<Uid> = uids.into_iter().collect();
    let asked = |entry: &&Entry| left.contains(&entry.row.uid);
    let asked: Vec<&Entry> = entries.iter().filter(asked).collect();
    let by_key: HashMap<Key, usize> = asked
        .iter()
        .enumerate()
        .map(|(at, entry)| (entry.row.key(), at))
        .collect();
    let mut waits = vec![0_usize; asked.len()];
    let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, entry) in asked.iter().enumerate() {
        let parents = entry.row.refs.iter().filter_map(|to| by_key.get(&to.key()));
        for parent in parents.filter(|parent| **parent != at) {
            readers.entry(*parent).or_default().push(at);
            if let Some(waits) = waits.get_mut(at) {
                *waits += 1;
            }
        }
    }
    let mut ready: VecDeque<usize> = (0..asked.len()).filter(|at| waits.get(*at) == Some(&0)).collect();
    let mut sorted = Vec::with_capacity(asked.len());
    while let Some(at) = ready.pop_front() {
        if let Some(uid) = asked
            .get(at)
            .map(|entry| entry.row.uid)
            .filter(|uid| left.remove(uid))
        {
            sorted.push(uid);
        }
        for reader in readers.remove(&at).unwrap_or_default() {
            if let Some(waits) = waits.get_mut(reader) {
                *waits -= 1;
                if *waits == 0 {
                    ready.push_back(reader);
                }
            }
        }
    }
    // What reads itself in the end never runs, so its order is of no interest.
    sorted.extend(left);
    sorted
}

/// Returns these resources with their transitive dependents.
pub(super) fn with_dependents(entries: &[Entry], uids: Vec<Uid>) -> Vec<Uid> {
    let mut children: HashMap<Key, Vec<Uid>> = HashMap::new();
    for entry in entries.iter().filter(|entry| !entry.row.intents.is_deleted()) {
        for reference in entry.row.refs.iter() {
            children.entry(reference.key()).or_default().push(entry.row.uid);
        }
    }
    let keys: HashMap<Uid, Key> = entries
        .iter()
        .map(|entry| (entry.row.uid, entry.row.key()))
        .collect();
    let mut all: BTreeSet<Uid> = uids.iter().copied().collect();
    let mut stack = uids;
    while let Some(uid) = stack.pop() {
        let below = keys
            .get(&uid)
            .and_then(|key| children.get(key))
            .map(Vec::as_slice)
            .unwrap_or_default();
        stack.extend(below.iter().copied().filter(|uid| all.insert(*uid)));
    }
    all.into_iter().collect()
}
/// Returns these resources with their transitive dependents and owned resources.
pub(super) fn with_below(entries: &[Entry], uids: &[Uid]) -> BTreeSet<Uid> {
    let by_key: HashMap<Key, Uid> = entries
        .iter()
        .map(|entry| (entry.row.key(), entry.row.uid))
        .collect();
    let mut below: HashMap<Uid, Vec<Uid>> = HashMap::new();
    for entry in entries {
        let above = entry.row.refs.iter().filter_map(|to| by_key.get(&to.key()));
        for above in above.copied().chain(entry.row.owner) {
            below.entry(above).or_default().push(entry.row.uid);
        }
    }
    let mut found: BTreeSet<Uid> = uids.iter().copied().collect();
    let mut open = uids.to_vec();
    while let Some(next) = open.pop() {
        let new = below
            .get(&next)
            .into_iter()
            .flatten()
            .filter(|uid| found.insert(**uid));
        open.extend(new);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::fixture::{entry, model};

    #[test]
    fn below_a_resource_stands_what_reads_or_belongs_to_it_or_to_something_below() {
        let rows = [
            model("a", &[]),
            model("b", &["a"]),
            model("c", &["b", "other"]),
            model("other", &[]),
            model("part", &[]),
            model("reader_of_part", &["part"]),
        ];
        let mut entries: Vec<Entry> = rows.into_iter().map(entry).collect();
        let owner = entries.first().map(|entry| entry.row.uid);
        if let Some(part) = entries.get_mut(4) {
            std::sync::Arc::make_mut(&mut part.row).owner = owner;
        }
        let below = |name: &str| {
            let is_it = |entry: &&Entry| entry.row.name.as_str() == name;
            let uids: Vec<Uid> = entries.iter().filter(is_it).map(|entry| entry.row.uid).collect();
            let below = with_below(&entries, &uids);
            let found = entries.iter().filter(|entry| below.contains(&entry.row.uid));
            found
                .map(|entry| entry.row.name.as_str())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(
            below("a"),
            BTreeSet::from(["a", "b", "c", "part", "reader_of_part"])
        );
        assert_eq!(below("other"), BTreeSet::from(["c", "other"]));
        assert_eq!(below("c"), BTreeSet::from(["c"]));
    }
}
