//! The difference of declarations between two readings of the catalog.

use std::collections::{BTreeMap, BTreeSet};

use watershed_api::documents::{Changes, Removed, ResourceName};
use watershed_core::{Key, Uid};

use super::health::own_error;
use super::{Entry, Hidden};

/// The declared resources at one time, by uid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declarations {
    live: BTreeMap<Uid, (Key, u64)>,
    failed: BTreeSet<Uid>,
}

impl Declarations {
    /// Collects the declared resources, without deleted ones.
    pub(crate) fn from_entries(entries: &[Entry], hidden: Hidden) -> Self {
        let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
        let listed = live.filter(|entry| hidden == Hidden::Show || !entry.row.hidden);
        let (mut live, mut failed) = (BTreeMap::new(), BTreeSet::new());
        for entry in listed {
            let row = &entry.row;
            live.insert(row.uid, (row.key(), row.spec_version.0));
            failed.extend(own_error(row).map(|_| row.uid));
        }
        Self { live, failed }
    }

    /// Returns true if the resource had an error of its own.
    pub(crate) fn had_failed(&self, uid: Uid) -> bool {
        self.failed.contains(&uid)
    }

    /// Returns the changes between these declarations and the later ones, `after`.
    pub(crate) fn changes_to(&self, after: &Self) -> (Changes, Vec<Removed>) {
        let created = after
            .live
            .keys()
            .filter(|uid| !self.live.contains_key(uid))
            .count() as u64;
        let mut changes = Changes {
            created,
            ..Changes::default()
        };
        let names: BTreeSet<&Key> = after.live.values().map(|(key, _)| key).collect();
        let mut removed = Vec::new();
        for (uid, (key, version)) in &self.live {
            let now = after.live.get(uid);
            match now {
                None => changes.deleted += 1,
                // A change of case alone is a rename too.
                Some((now, _)) if now != key || !now.name.same_case(&key.name) => changes.renamed += 1,
                Some((_, now)) if now != version => changes.updated += 1,
                Some(_) => {}
            }
            if !names.contains(key) {
                removed.push(Removed {
                    kind: key.kind.to_string(),
                    name: key.name.to_string(),
                    became: now.map(|(now, _)| ResourceName::new(now.kind.as_str(), now.name.as_str())),
                });
            }
        }
        removed.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        (changes, removed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{entry, model};
    use super::*;
    use watershed_core::{Name, Row, SpecVersion};

    fn declared(rows: Vec<Row>) -> Declarations {
        let entries: Vec<Entry> = rows.into_iter().map(entry).collect();
        Declarations::from_entries(&entries, Hidden::Leave)
    }

    #[test]
    fn creates_edits_renames_and_deletes_are_told_apart() {
        let before = declared(vec![
            model("same", &[]),
            model("edited", &[]),
            model("old", &[]),
            model("gone", &[]),
        ]);
        let after = declared(vec![
            model("same", &[]),
            Row {
                spec_version: SpecVersion(2),
                ..model("edited", &[])
            },
            Row {
                name: Name::new("new"),
                spec_version: SpecVersion(2),
                ..model("old", &[])
            },
            model("fresh", &[]),
        ]);
        let (changes, removed) = before.changes_to(&after);
        assert_eq!(
            changes,
            Changes {
                created: 1,
                updated: 1,
                renamed: 1,
                deleted: 1
            }
        );
        let removed: Vec<_> = removed
            .iter()
            .map(|r| (r.name.as_str(), r.became.as_ref().map(|b| b.name.as_str())))
            .collect();
        assert_eq!(removed, [("gone", None), ("old", Some("new"))]);
    }

    #[test]
    fn a_swap_of_names_removes_no_name() {
        let before = declared(vec![model("a", &[]), model("b", &[])]);
        let after = declared(vec![
            Row {
                name: Name::new("b"),
                ..model("a", &[])
            },
            Row {
                name: Name::new("a"),
                ..model("b", &[])
            },
        ]);
        let (changes, removed) = before.changes_to(&after);
        assert_eq!(changes.renamed, 2);
        assert!(removed.is_empty());
    }
}
