//! Differences between two graphs, as a value.

use std::cmp::Ordering;
use std::fmt;

use super::{Graph, GroupPath};
use crate::item::Item;
use crate::reference::Ref;
use crate::value::Value;

/// The way in which an item differs between two graphs.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use serde_json::json;
/// use watershed_stategraph::{Item, ItemChange, Ref};
/// let (old, mut new) = (warehouse::intended()?, warehouse::intended()?);
/// new.put(Item::new(Ref::parse("table/orders")?, json!(["day", "amount"])))?;
/// for (item, change) in old.diff(&new).items {
///     match change {
///         ItemChange::Added | ItemChange::Removed => panic!("both have the table and the view"),
///         ItemChange::Changed { value, needs, moved_to } => {
///             assert_eq!((item.as_str(), value, needs, moved_to), ("table/orders", true, false, None));
///         }
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemChange {
    /// Only the second graph has the item.
    Added,
    /// Only the first graph has the item.
    Removed,
    /// Both graphs have the item, with at least one difference.
    Changed {
        /// True if the values differ.
        value: bool,
        /// True if the dependencies differ.
        needs: bool,
        /// New group, if the groups differ.
        moved_to: Option<GroupPath>,
    },
}

/// Differences between two graphs, in order of ref.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use serde_json::json;
/// use watershed_stategraph::{Item, Ref};
/// let (old, mut new) = (warehouse::intended()?, warehouse::intended()?);
/// assert!(old.diff(&new).is_empty());
/// new.remove(&Ref::parse("view/daily")?);
/// new.insert(Item::new(Ref::parse("view/weekly")?, json!("select week")))?;
/// assert_eq!(old.diff(&new).to_string(), "- view/daily\n+ view/weekly\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Items that differ, each with the difference.
    pub items: Vec<(Ref, ItemChange)>,
}

impl Difference {
    /// Returns true if the graphs don't differ.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (reference, change) in &self.items {
            match change {
                ItemChange::Added => writeln!(f, "+ {reference}")?,
                ItemChange::Removed => writeln!(f, "- {reference}")?,
                ItemChange::Changed {
                    value,
                    needs,
                    moved_to,
                } => {
                    let mut parts = Vec::new();
                    parts.extend(value.then(|| "value".to_owned()));
                    parts.extend(needs.then(|| "dependencies".to_owned()));
                    parts.extend(moved_to.as_ref().map(|path| format!("moved to `{path}`")));
                    writeln!(f, "~ {reference}: {}", parts.join(", "))?;
                }
            }
        }
        Ok(())
    }
}

impl<V: Value> Graph<V> {
    /// Returns the changes that would make this graph the other one: items, values, dependencies, groups. Parts of a
    /// current graph alone, such as states, don't count.
    pub fn diff(&self, other: &Self) -> Difference {
        let (mut left, mut right) = (self.items().peekable(), other.items().peekable());
        let mut items = Vec::new();
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Difference { items },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.reference.cmp(&right.reference),
            };
            let old = if order.is_le() { left.next() } else { None };
            let new = if order.is_ge() { right.next() } else { None };
            items.extend(self.change(other, old, new));
        }
    }

    fn change(
        &self,
        other: &Self,
        old: Option<&Item<V>>,
        new: Option<&Item<V>>,
    ) -> Option<(Ref, ItemChange)> {
        let reference = old.or(new)?.reference.clone();
        let (Some(old), Some(new)) = (old, new) else {
            let change = if old.is_none() {
                ItemChange::Added
            } else {
                ItemChange::Removed
            };
            return Some((reference, change));
        };
        let value = old.spec.value != new.spec.value;
        let needs = old.spec.needs != new.spec.needs;
        let path = other.group_of(&reference);
        let moved_to = path.filter(|_| self.group_of(&reference) != path).cloned();
        let differs = value || needs || moved_to.is_some();
        differs.then_some((
            reference,
            ItemChange::Changed {
                value,
                needs,
                moved_to,
            },
        ))
    }
}
