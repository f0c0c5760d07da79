//! The status of a graph after a call.

use serde::{Deserialize, Serialize};

use crate::item::{Operation, Timestamp};
use crate::reason::Blocker;
use crate::reference::Ref;

/// Status of a graph after a call. Lists are in order of ref.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{Extent, Graph, Item, Ref, Timestamp};
/// let (executor, mut intended) = (warehouse::executor().clock(|| Timestamp(0)), warehouse::intended()?);
/// intended.put(Item::new(Ref::parse("view/daily")?, json!("select nonsense")))?;
/// let mut current = Graph::new("warehouse");
/// let status = executor.converge(&mut current, Some(&intended), &Extent::Everything).await?.status;
/// assert!(!status.is_converged());
/// for (item, operation, error) in &status.failed {
///     println!("{operation} {item}: {error}");
/// }
/// assert_eq!(status.next, Some(Timestamp(1_000))); // call again in a second
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Items that differ from the intent, each with the reason. If the caller named the changed items, only those that
    /// were examined.
    pub held: Vec<(Ref, Blocker)>,
    /// Items whose last operation failed, each with the operation and its error.
    pub failed: Vec<(Ref, Operation, String)>,
    /// Operations that continue in the background, with their items.
    pub running: Vec<(Ref, Operation)>,
    /// Cycles of the intended graph, each in order.
    pub cycles: Vec<Vec<Ref>>,
    /// Items outside of the converged part that were deleted for it and could not be restored.
    pub displaced: Vec<Ref>,
    /// Earliest time at which another call can achieve something that waits for a time; none if nothing does.
    pub next: Option<Timestamp>,
}

impl Status {
    /// Returns true if everything is as intended.
    pub fn is_converged(&self) -> bool {
        self.held.is_empty()
            && self.failed.is_empty()
            && self.running.is_empty()
            && self.cycles.is_empty()
            && self.displaced.is_empty()
    }
}
