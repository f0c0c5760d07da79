//! Validation of a call before any operation runs.

use crate::graph::{Extent, Graph};
use crate::item::Item;
use crate::reference::Ref;
use crate::types::Types;
use crate::value::Value;

/// Reason to refuse a call. Nothing has run or changed.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{CallError, Executor, Extent, Graph};
/// let mut current = Graph::new("warehouse");
/// let empty = Executor::new();
/// match empty.converge(&mut current, Some(&warehouse::intended()?), &Extent::Everything).await {
///     Err(CallError::NoHandler(item)) => assert_eq!(item.as_str(), "table/orders"),
///     other => panic!("{other:?}"),
/// }
/// assert!(current.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The graphs have different names.
    #[error("the current graph is `{current}` and the intended one `{intended}`")]
    OtherName {
        /// Name of the current graph.
        current: String,
        /// Name of the intended graph.
        intended: String,
    },
    /// An item's type has no handler.
    #[error("`{0}` has a type without a handler")]
    NoHandler(Ref),
    /// An item is external in one graph, but not in the other.
    #[error("`{0}` is an external item of one graph and an item of the other")]
    TwoOrigins(Ref),
    /// A dependency uses a predicate that the target's type did not register.
    #[error("`{item}` needs `{predicate}` of `{target}`, whose type has no such predicate")]
    UnknownPredicate {
        /// Item whose dependency is invalid.
        item: Ref,
        /// Target that the predicate is for.
        target: Ref,
        /// Name of the unknown predicate.
        predicate: String,
    },
    /// A type was registered twice.
    #[error("there are two types `{0}`")]
    TypeTwice(String),
    /// Another executor of this process has running operations on the graph.
    #[error("another executor has operations under way on the graph `{0}`")]
    HeldElsewhere(String),
    /// No such group or item exists in either graph.
    #[error("there is nothing `{0}` to converge")]
    NoSuchPart(String),
}

pub(super) fn validate<V: Value>(
    types: &Types<V>,
    current: &Graph<V>,
    intended: Option<&Graph<V>>,
    extent: &Extent,
) -> Result<(), CallError> {
    if let Some(intended) = intended.filter(|intended| intended.name() != current.name()) {
        let (current, intended) = (current.name().to_owned(), intended.name().to_owned());
        return Err(CallError::OtherName { current, intended });
    }
    if let Some(name) = types.taken() {
        return Err(CallError::TypeTwice(name.to_owned()));
    }
    let graphs = || std::iter::once(current).chain(intended);
    let displaced = current.displaced_specs();
    match extent {
        Extent::Changed(changed) => {
            // All else was checked by an earlier call. A change of one item must not cost a look at every other one.
            let mut items = changed
                .iter()
                .flat_map(|one| graphs().filter_map(|graph| graph.get(one)));
            items.try_for_each(|item| check(types, current, item))
        }
        Extent::Group(path)
            if !graphs().any(|graph| graph.has_group(path))
                && !displaced
                    .values()
                    .any(|one| one.group.is_within(path) || one.by.as_ref() == Some(extent)) =>
        {
            Err(CallError::NoSuchPart(path.to_string()))
        }
        Extent::Item(item)
            if !graphs().any(|graph| graph.get(item).is_some())
                && !displaced.contains_key(item)
                && !displaced.values().any(|one| one.by.as_ref() == Some(extent)) =>
        {
            Err(CallError::NoSuchPart(item.to_string()))
        }
        Extent::Everything | Extent::Group(_) | Extent::Item(_) => {
            if graphs().all(|graph| is_simple(types, graph)) {
                return Ok(());
            }
            let mut items = graphs().flat_map(|graph| graph.slots().filter_map(|slot| graph.item(slot)));
            items.try_for_each(|item| check(types, current, item))
        }
    }
}

/// Returns true if the tally alone shows that the graph is valid: all types have handlers, and there are no external
/// items or conditions.
fn is_simple<V: Value>(types: &Types<V>, graph: &Graph<V>) -> bool {
    let tally = graph.tally();
    tally.externals() == 0 && tally.special() == 0 && tally.types().all(|name| types.get(name).is_some())
}

fn check<V: Value>(types: &Types<V>, current: &Graph<V>, item: &Item<V>) -> Result<(), CallError> {
    let reference = &item.reference;
    if !item.is_external() && types.get(reference.type_name()).is_none() {
        return Err(CallError::NoHandler(reference.clone()));
    }
    if current
        .get(reference)
        .is_some_and(|known| known.is_external() != item.is_external())
    {
        return Err(CallError::TwoOrigins(reference.clone()));
    }
    for need in item.dependencies() {
        let Some(predicate) = need.predicate() else {
            continue;
        };
        for target in need.targets() {
            if let Some(name) = types.unknown_predicate(target.type_name(), predicate) {
                let (item, target) = (reference.clone(), target.clone());
                return Err(CallError::UnknownPredicate {
                    item,
                    target,
                    predicate: name.to_owned(),
                });
            }
        }
    }
    Ok(())
}
