//! A hash of all stored parts of a graph.
//!
//! Each item is hashed by itself and the hashes are added up, so that nothing has to be sorted. Most items
//! are created, without a record and with dependencies that are only targets: those are written down
//! directly, the others as they are stored.

use super::Graph;
use super::stored::StoredItem;
use crate::item::{Item, Origin, State};
use crate::value::{Fingerprint, Value};

/// Markers of the two encodings of an item, which keep them distinct.
const SHORT: u8 = 0;
const LONG: u8 = 1;

impl<V: Value> Graph<V> {
    /// Returns a hash of all stored parts of the graph, the same on every machine.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = Vec::new();
        let mut sum = 0_u128;
        for place in &self.places {
            let Some(item) = &place.item else { continue };
            bytes.clear();
            write_item(&mut bytes, item, self.groups.path(place.group));
            sum = sum.wrapping_add(Fingerprint::from_bytes(&bytes).as_number());
        }
        bytes.clear();
        write_text(&mut bytes, &self.name);
        write_text(&mut bytes, &self.description);
        bytes.extend((self.len() as u64).to_be_bytes());
        bytes.extend(sum.to_be_bytes());
        let rest = (self.groups().collect::<Vec<_>>(), self.stored_displaced());
        // A vector takes everything; what cannot be serialised cannot be stored either.
        let _ = serde_json::to_writer(&mut bytes, &rest);
        Fingerprint::from_bytes(&bytes)
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_be_bytes());
    bytes.extend(text.as_bytes());
}

fn write_item<V: Value>(bytes: &mut Vec<u8>, item: &Item<V>, group: &super::GroupPath) {
    let at_rest = item.state == State::Created && item.origin == Origin::Ours && item.record.is_none();
    if !at_rest || item.spec.needs.iter().any(|need| need.bare_target().is_none()) {
        bytes.push(LONG);
        let _ = serde_json::to_writer(bytes, &StoredItem::from_item(item, group.clone()));
        return;
    }
    bytes.push(SHORT);
    write_text(bytes, item.reference.as_str());
    write_text(bytes, group.as_str());
    bytes.extend((item.spec.needs.len() as u64).to_be_bytes());
    for target in item.spec.needs.iter().filter_map(|need| need.bare_target()) {
        write_text(bytes, target.as_str());
    }
    let _ = serde_json::to_writer(bytes, &item.spec.value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependency::Dependency;
    use crate::reference::Ref;
    use serde_json::{Value as Json, json};

    fn graph(names: &[&str]) -> Graph<Json> {
        let mut graph = Graph::new("g");
        for name in names {
            let item = Item::new(Ref::parse(name).unwrap(), json!({"of": name}));
            graph.insert(item).unwrap();
        }
        graph
    }

    #[test]
    fn the_order_of_insertion_does_not_count() {
        let (one, other) = (graph(&["t/a", "t/b"]), graph(&["t/b", "t/a"]));
        assert_eq!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn whatever_is_stored_counts() {
        let base = graph(&["t/a", "t/b"]);
        let b = Ref::parse("t/b").unwrap();
        let change = |change: &dyn Fn(&mut Graph<Json>)| {
            let mut graph = base.clone();
            change(&mut graph);
            graph.fingerprint()
        };
        let item = || base.get(&b).unwrap().clone();
        let target = || Dependency::on(Ref::parse("t/a").unwrap());
        let changed = [
            base.fingerprint(),
            change(&|graph| graph.put(item().with_value(json!(1))).unwrap()),
            change(&|graph| graph.put(item().needs(target())).unwrap()),
            change(&|graph| graph.put(item().needs(target().order_only())).unwrap()),
            change(&|graph| graph.put(item().needs(target().describe("why"))).unwrap()),
            change(&|graph| graph.move_to(&b, "elsewhere").unwrap()),
            change(&|graph| graph.mark_unknown(&b).unwrap()),
            change(&|graph| graph.add_group("empty", "")),
            change(&|graph| drop(graph.remove(&b))),
            change(&|graph| {
                graph
                    .put(Item::external(b.clone(), json!({"of": "t/b"})))
                    .unwrap()
            }),
        ];
        for (at, one) in changed.iter().enumerate() {
            assert!(!changed[..at].contains(one), "change {at} has no effect");
        }
    }

    #[test]
    fn storing_and_loading_keeps_it() {
        let mut graph = graph(&["t/a", "t/b", "u/c"]);
        graph.add_group("inner", "for the test");
        graph.move_to(&Ref::parse("u/c").unwrap(), "inner").unwrap();
        let stored = serde_json::to_string(&graph).unwrap();
        let loaded: Graph<Json> = serde_json::from_str(&stored).unwrap();
        assert_eq!(loaded.fingerprint(), graph.fingerprint());
    }
}
