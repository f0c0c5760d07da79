//! An item, as it is intended or as it is.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dependency::Dependency;
use crate::reference::Ref;
use crate::value::Fingerprint;

/// Wall time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Returns the time `delay_ms` later.
    #[must_use]
    pub fn after_ms(self, delay_ms: u64) -> Self {
        Self(self.0.saturating_add(delay_ms))
    }
}

/// An operation of a handler on an item.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Operation};
/// let current = warehouse::intended()?;
/// // Nothing is intended any more.
/// let plan = warehouse::executor().plan(&current, None, &Extent::Everything).await?;
/// assert!(plan.operations.iter().all(|planned| planned.operation == Operation::Delete));
/// // What needs something goes before it.
/// assert_eq!(plan.operations[0].reference.as_str(), "view/daily");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Creates the item.
    Create,
    /// Gives the item another value.
    Modify,
    /// Deletes the item.
    Delete,
    /// Gives a replacement the name of the old item.
    Adopt,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
            Self::Adopt => "adopt",
        })
    }
}

/// State of an item in the current graph. Without meaning in an intended graph.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{Extent, Graph, Item, Operation, Ref, State};
/// let (mut intended, view) = (warehouse::intended()?, Ref::parse("view/daily")?);
/// intended.put(Item::new(view.clone(), json!("select nonsense")))?;
/// let mut current = Graph::new("warehouse");
/// warehouse::executor().converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// let states: Vec<State> = current.items().map(Item::state).collect();
/// assert_eq!(states, [State::Created, State::Failed(Operation::Create)]);
/// assert_eq!(states[1].to_string(), "create failed");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The item exists with its value.
    #[default]
    Created,
    /// The create is under way.
    Creating,
    /// The modify is under way; the value is the old one.
    Modifying,
    /// The delete is under way.
    Deleting,
    /// The last operation, which is given, failed.
    Failed(Operation),
    /// The state must be observed; with the operation that was under way when the graph was last stored.
    Unknown(Option<Operation>),
}

impl State {
    /// Returns true if the item counts as created: it exists, even if an operation on it failed or modifies it.
    pub fn is_created(self) -> bool {
        match self {
            Self::Created | Self::Modifying => true,
            Self::Failed(operation) => operation != Operation::Create,
            Self::Creating | Self::Deleting | Self::Unknown(_) => false,
        }
    }

    /// Returns the operation that is under way.
    pub fn operation(self) -> Option<Operation> {
        match self {
            Self::Creating => Some(Operation::Create),
            Self::Modifying => Some(Operation::Modify),
            Self::Deleting => Some(Operation::Delete),
            Self::Created | Self::Failed(_) | Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Creating => f.write_str("creating"),
            Self::Modifying => f.write_str("modifying"),
            Self::Deleting => f.write_str("deleting"),
            Self::Failed(operation) => write!(f, "{operation} failed"),
            Self::Unknown(_) => f.write_str("unknown"),
        }
    }
}

/// The intended part of an item: its value and dependencies. Shared between graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec<V> {
    pub(crate) value: V,
    pub(crate) needs: Box<[Dependency]>,
}

impl<V> Spec<V> {
    /// Lists all targets, each with the index of its dependency.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (usize, &Ref)> {
        self.needs
            .iter()
            .enumerate()
            .flat_map(|(at, need)| need.targets().map(move |target| (at, target)))
    }

    /// Lists the dependencies, each with its index and the positions of its targets among all targets.
    pub(crate) fn placed_needs(&self) -> impl Iterator<Item = (usize, &Dependency, Range<usize>)> {
        self.needs.iter().enumerate().scan(0, |position, (at, need)| {
            let positions = *position..*position + need.width();
            *position = positions.end;
            Some((at, need, positions))
        })
    }

    /// Returns the positions of one dependency's targets among all targets.
    pub(crate) fn positions(&self, at: usize) -> Range<usize> {
        let first: usize = self.needs[..at].iter().map(Dependency::width).sum();
        first..first + self.needs[at].width()
    }

    /// Returns true if every dependency has one target and no options: no condition, no flag, no choice.
    pub(crate) fn is_plain(&self) -> bool {
        self.needs.iter().all(Dependency::is_plain)
    }

    /// Returns the value that the item has or should have.
    pub fn value(&self) -> &V {
        &self.value
    }

    /// Returns the dependencies of the item.
    pub fn needs(&self) -> &[Dependency] {
        &self.needs
    }
}

/// Origin of an item: managed by a handler, or external.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Managed by the handler of the item's type.
    #[default]
    Ours,
    /// Managed elsewhere; a watcher adds the item to the current graph.
    External,
}

/// Failure of an operation: its error, and the number of attempts.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{Extent, Graph, Item, Ref};
/// let (mut intended, view) = (warehouse::intended()?, Ref::parse("view/daily")?);
/// intended.put(Item::new(view.clone(), json!("select nonsense")))?;
/// let mut current = Graph::new("warehouse");
/// warehouse::executor().converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// let failure = current.get(&view).and_then(Item::failure).expect("it was refused");
/// assert_eq!((failure.error.as_str(), failure.attempts), ("there is no column `nonsense`", 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Error that the handler returned, for people.
    pub error: String,
    /// Error of the previous attempt; none if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Number of failures in a row with the same intent.
    pub attempts: u32,
    /// Time at which the last attempt ended.
    pub last: Timestamp,
}

/// Rarely used data of an item, boxed so that others stay small.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record<V> {
    /// Intent of the operation that is under way or failed; none for a delete.
    pub(crate) next: Option<Arc<Spec<V>>>,
    /// Target that the item relies on for each `any_of`, with the index of that dependency.
    pub(crate) relied: Vec<(usize, Ref)>,
    /// Fingerprints of the targets with `recreate_when_modified` at the time of the create.
    pub(crate) witnessed: Vec<(Ref, Fingerprint)>,
    pub(crate) failure: Option<Failure>,
    /// Dependents already switched to this replacement; empty for other items.
    pub(crate) switched: Vec<Ref>,
    /// True if the create failed, and the remains are being deleted or were to be.
    pub(crate) unmade: bool,
    /// Cause of the delete in a recreation: true if the value could not be modified, false if it was for another item;
    /// none if no create follows.
    pub(crate) needs_recreate: Option<bool>,
}

impl<V> Default for Record<V> {
    fn default() -> Self {
        Self {
            next: None,
            relied: Vec::new(),
            witnessed: Vec::new(),
            failure: None,
            switched: Vec::new(),
            unmade: false,
            needs_recreate: None,
        }
    }
}

impl<V> Record<V> {
    fn is_empty(&self) -> bool {
        self.next.is_none()
            && self.relied.is_empty()
            && self.witnessed.is_empty()
            && self.failure.is_none()
            && self.switched.is_empty()
            && !self.unmade
            && self.needs_recreate.is_none()
    }
}

/// An item of the outside world: a ref, a value, and its dependencies.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::{Dependency, Item, Ref};
/// let table = Ref::parse("table/orders")?;
/// let index = Item::new(Ref::parse("index/by_day")?, json!({"column": "day"})).needs(Dependency::on(table));
/// assert_eq!(index.dependencies().len(), 1);
/// # Ok::<(), watershed_stategraph::RefError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Item<V> {
    pub(crate) reference: Ref,
    pub(crate) spec: Arc<Spec<V>>,
    pub(crate) origin: Origin,
    pub(crate) state: State,
    pub(crate) record: Option<Box<Record<V>>>,
}

impl<V> Item<V> {
    /// Creates an item that the handler of its type manages.
    pub fn new(reference: Ref, value: V) -> Self {
        Self::from_spec(
            reference,
            Arc::new(Spec {
                value,
                needs: Box::default(),
            }),
        )
    }

    /// Creates an item that no handler manages, without dependencies.
    pub fn external(reference: Ref, value: V) -> Self {
        Self {
            origin: Origin::External,
            ..Self::new(reference, value)
        }
    }

    pub(crate) fn from_spec(reference: Ref, spec: Arc<Spec<V>>) -> Self {
        Self {
            reference,
            spec,
            origin: Origin::Ours,
            state: State::Created,
            record: None,
        }
    }

    /// Returns the type and name of the item.
    pub fn reference(&self) -> &Ref {
        &self.reference
    }

    /// Returns the value: the old one while a modify is under way or has failed.
    pub fn value(&self) -> &V {
        &self.spec.value
    }

    /// Returns the value and dependencies.
    pub fn spec(&self) -> &Arc<Spec<V>> {
        &self.spec
    }

    /// Returns the dependencies, in the order in which they were added.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.spec.needs
    }

    /// Returns true if no handler manages the item.
    pub fn is_external(&self) -> bool {
        self.origin == Origin::External
    }

    /// Returns the state; without meaning in an intended graph.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the failure of the last operation; none if it did not fail.
    pub fn failure(&self) -> Option<&Failure> {
        self.record.as_ref()?.failure.as_ref()
    }

    /// Returns the value that the item is being given, or failed to be given.
    pub fn next_value(&self) -> Option<&V> {
        self.next().map(|spec| &spec.value)
    }

    /// Returns the target that the `any_of` with this index relies on.
    pub fn relied_on(&self, position: usize) -> Option<&Ref> {
        self.record
            .as_ref()?
            .relied
            .iter()
            .find(|(at, _)| *at == position)
            .map(|(_, target)| target)
    }

    /// Returns the target that the item relies on for a dependency with the same targets, whatever its index.
    pub(crate) fn relied_on_by(&self, need: &Dependency) -> Option<&Ref> {
        let known = |(at, _): &&(usize, Ref)| {
            let old = self.spec.needs.get(*at);
            old.is_some_and(|old| old.targets().eq(need.targets()))
        };
        let record = self.record.as_ref()?;
        record.relied.iter().find(known).map(|(_, target)| target)
    }

    pub(crate) fn next(&self) -> Option<&Arc<Spec<V>>> {
        self.record.as_ref()?.next.as_ref()
    }

    pub(crate) fn witnessed(&self, target: &Ref) -> Option<Fingerprint> {
        self.record
            .as_ref()?
            .witnessed
            .iter()
            .find(|(seen, _)| seen == target)
            .map(|(_, fingerprint)| *fingerprint)
    }

    /// Returns true if the item counts as created. An item whose create failed does not, even if its remains could not
    /// be deleted.
    pub fn is_created(&self) -> bool {
        self.state.is_created() && !self.is_unmade()
    }

    pub(crate) fn is_unmade(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.unmade)
    }

    /// Returns true if dependents were already switched to this replacement.
    pub(crate) fn is_turned_to(&self) -> bool {
        self.record
            .as_ref()
            .is_some_and(|record| !record.switched.is_empty())
    }

    /// Returns true if a later call must examine the item even if it is not named as changed.
    pub(crate) fn needs_attention(&self) -> bool {
        self.state != State::Created || self.reference.is_alias()
    }

    /// Changes the record, and removes it if it becomes empty.
    pub(crate) fn record(&mut self, change: impl FnOnce(&mut Record<V>)) {
        let mut record = self.record.take().unwrap_or_default();
        change(&mut record);
        self.record = (!record.is_empty()).then_some(record);
    }
}

impl<V: Clone> Item<V> {
    /// Adds a dependency after the present ones.
    #[must_use]
    pub fn needs(mut self, dependency: Dependency) -> Self {
        let spec = Arc::make_mut(&mut self.spec);
        let mut needs = std::mem::take(&mut spec.needs).into_vec();
        needs.push(dependency);
        spec.needs = needs.into_boxed_slice();
        self
    }

    /// Replaces all dependencies of the item.
    #[must_use]
    pub fn with_dependencies(mut self, needs: Vec<Dependency>) -> Self {
        Arc::make_mut(&mut self.spec).needs = needs.into_boxed_slice();
        self
    }

    /// Replaces the value, and keeps the dependencies.
    #[must_use]
    pub fn with_value(mut self, value: V) -> Self {
        Arc::make_mut(&mut self.spec).value = value;
        self
    }
}
