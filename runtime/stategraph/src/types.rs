//! Types of items, as far as the planner knows them. The handlers belong to the executor.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::item::{Failure, Timestamp};
use crate::predicate::Predicate;

/// Order in which an item that can't be modified is replaced.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use serde_json::json;
/// # use watershed_stategraph::*;
/// let (mut types, table) = (Types::new(), Ref::parse("table/orders")?);
/// types.register("table", ItemType::new().replace(ReplaceOrder::CreateFirst));
/// let (mut current, mut intended) = (Graph::new("warehouse"), Graph::new("warehouse"));
/// current.insert(Item::new(table.clone(), json!(["day"])))?;
/// intended.insert(Item::new(table, json!(["week"])))?;
/// let (none, all) = (Operations::default(), Extent::Everything);
/// let plan = plan(&types, &current, &none, Some(&intended), &all, Timestamp(0), &mut |_, _, _| Ok(true))?;
/// let steps = plan.operations.iter().map(|one| format!("{} {}", one.operation, one.reference));
/// let steps: Vec<String> = steps.collect();
/// assert_eq!(steps, ["create table/orders#next", "delete table/orders", "adopt table/orders#next"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplaceOrder {
    /// Delete the old item, then create the new one.
    #[default]
    DeleteFirst,
    /// Create the new item under an alias, switch dependents to it, delete the old item, and adopt the alias.
    CreateFirst,
}

/// Retry policy for failed operations.
///
/// ```
/// use watershed_stategraph::{Failure, Retry, Timestamp};
/// let retry = Retry::Backoff { base_ms: 100, cap_ms: 250, attempts: Some(4) };
/// let next = |attempts| {
///     let failure = Failure { error: "no answer".to_owned(), previous: None, attempts, last: Timestamp(1_000) };
///     retry.next(&failure)
/// };
/// assert_eq!([next(1), next(2), next(3)].map(|at| at.unwrap().0), [1_100, 1_200, 1_250]);
/// assert_eq!(next(4), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No retry until the intent changes.
    Never,
    /// Waits `min(base * 2^(n-1), cap)` after the n-th failure in a row.
    Backoff {
        /// Wait after the first failure, in milliseconds.
        base_ms: u64,
        /// Longest wait, in milliseconds.
        cap_ms: u64,
        /// Maximum number of attempts; none for no limit.
        attempts: Option<u32>,
    },
}

impl Default for Retry {
    /// Returns a policy of one second, doubled up to five minutes, without a limit.
    fn default() -> Self {
        Self::Backoff {
            base_ms: 1_000,
            cap_ms: 300_000,
            attempts: None,
        }
    }
}

impl Retry {
    /// Returns the time of the next attempt after this failure, if any.
    pub fn next(self, failure: &Failure) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Backoff {
                attempts: Some(most), ..
            } if failure.attempts >= most => None,
            Self::Backoff { base_ms, cap_ms, .. } => {
                let doublings = failure.attempts.saturating_sub(1).min(63);
                Some(
                    failure
                        .last
                        .after_ms(base_ms.saturating_mul(1 << doublings).min(cap_ms)),
                )
            }
        }
    }
}

type Named<V> = Arc<dyn Fn(&V) -> bool + Send + Sync>;

/// Policies for the items of one type: replacement, retries, cancels and observation.
///
/// ```
/// use watershed_stategraph::{ItemType, ReplaceOrder, Retry};
/// let table: ItemType<serde_json::Value> = ItemType::new()
///     .replace(ReplaceOrder::CreateFirst)
///     .retry(Retry::Backoff { base_ms: 100, cap_ms: 10_000, attempts: Some(5) })
///     .predicate("filled", |value: &serde_json::Value| value["rows"].as_u64().is_some_and(|rows| rows > 0));
/// ```
pub struct ItemType<V> {
    pub(crate) replace: ReplaceOrder,
    pub(crate) retry: Retry,
    pub(crate) cancel_deadline_ms: u64,
    pub(crate) observes: bool,
    predicates: BTreeMap<String, Named<V>>,
}

impl<V> Clone for ItemType<V> {
    fn clone(&self) -> Self {
        Self {
            predicates: self.predicates.clone(),
            ..*self
        }
    }
}

impl<V> fmt::Debug for ItemType<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemType")
            .field("replace", &self.replace)
            .field("retry", &self.retry)
            .field("cancel_deadline_ms", &self.cancel_deadline_ms)
            .field("observes", &self.observes)
            .field("predicates", &self.predicates.keys())
            .finish()
    }
}

impl<V> Default for ItemType<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> ItemType<V> {
    /// Creates the default policies: delete first, retry with backoff, ten seconds to react to a cancel, no `observe`.
    pub fn new() -> Self {
        Self {
            replace: ReplaceOrder::default(),
            retry: Retry::default(),
            cancel_deadline_ms: 10_000,
            observes: false,
            predicates: BTreeMap::new(),
        }
    }

    /// Sets the order of replacement for items that can't be modified.
    #[must_use]
    pub fn replace(self, replace: ReplaceOrder) -> Self {
        Self { replace, ..self }
    }

    /// Sets the retry policy for failed operations.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Sets the time for an operation to react to its cancel, in milliseconds.
    #[must_use]
    pub fn cancel_deadline_ms(self, cancel_deadline_ms: u64) -> Self {
        Self {
            cancel_deadline_ms,
            ..self
        }
    }

    /// Allows that the handler be asked for the state of an item.
    #[must_use]
    pub fn observes(self) -> Self {
        Self {
            observes: true,
            ..self
        }
    }

    /// Registers a named predicate on values of this type.
    #[must_use]
    pub fn predicate(mut self, name: &str, holds: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.insert(name.to_owned(), Arc::new(holds));
        self
    }
}

/// All types of a graph's items, by name.
#[derive(Debug)]
pub struct Types<V> {
    types: BTreeMap<String, ItemType<V>>,
    taken: Option<String>,
}

impl<V> Default for Types<V> {
    fn default() -> Self {
        Self {
            types: BTreeMap::new(),
            taken: None,
        }
    }
}

impl<V> Types<V> {
    /// Creates an empty set of types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type. A second type with the same name is dropped, and every later call is refused: see
    /// [`crate::CallError::TypeTwice`].
    pub fn register(&mut self, name: &str, item_type: ItemType<V>) {
        if self.types.contains_key(name) {
            self.taken.get_or_insert_with(|| name.to_owned());
        } else {
            self.types.insert(name.to_owned(), item_type);
        }
    }

    /// Returns the first name that was registered twice.
    pub(crate) fn taken(&self) -> Option<&str> {
        self.taken.as_deref()
    }

    /// Returns the type with this name.
    pub fn get(&self, name: &str) -> Option<&ItemType<V>> {
        self.types.get(name)
    }

    /// Returns the first named predicate that the type does not know.
    pub(crate) fn unknown_predicate<'a>(&self, type_name: &str, predicate: &'a Predicate) -> Option<&'a str> {
        let known = self.get(type_name);
        predicate
            .names()
            .into_iter()
            .find(|&name| !known.is_some_and(|known| known.predicates.contains_key(name)))
    }

    /// Evaluates a named predicate; an unknown one does not hold.
    pub(crate) fn named(&self, type_name: &str, predicate: &str, value: &V) -> bool {
        let found = self
            .get(type_name)
            .and_then(|known| known.predicates.get(predicate));
        found.is_some_and(|holds| holds(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(attempts: u32) -> Failure {
        Failure {
            error: "no".into(),
            previous: None,
            attempts,
            last: Timestamp(1_000),
        }
    }

    #[test]
    fn s5_waits_double_up_to_a_cap_until_the_attempts_are_used_up() {
        let retry = Retry::Backoff {
            base_ms: 100,
            cap_ms: 350,
            attempts: Some(4),
        };
        let waits: Vec<_> = (1..=4)
            .map(|n| retry.next(&failure(n)).map(|at| at.0 - 1_000))
            .collect();
        assert_eq!(waits, [Some(100), Some(200), Some(350), None]);
        assert_eq!(Retry::Never.next(&failure(1)), None);
    }

    #[test]
    fn s5_a_wait_never_overflows() {
        let retry = Retry::Backoff {
            base_ms: u64::MAX,
            cap_ms: u64::MAX,
            attempts: None,
        };
        assert_eq!(retry.next(&failure(u32::MAX)), Some(Timestamp(u64::MAX)));
    }
}
