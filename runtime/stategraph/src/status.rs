//! The status after a call.

use serde::{Deserialize, Serialize};

use crate::item::{Operation, Timestamp};
use crate::reason::Blocker;
use crate::reference::Ref;

/// The status after a call. Lists are in order of ref.
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
    /// Items that are not as intended, each with the reason. When the caller said what changed, only
    /// those that had to be looked at.
    pub held: Vec<(Ref, Blocker)>,
    /// Items whose last operation failed.
    pub failed: Vec<(Ref, Operation, String)>,
    /// Operations that go on in the background.
    pub running: Vec<(Ref, Operation)>,
    /// Cycles of the intended graph, each in order.
    pub cycles: Vec<Vec<Ref>>,
    /// Items outside of the part that was converged which were deleted for its sake and could not be
    /// brought back.
    pub displaced: Vec<Ref>,
    /// The earliest time at which calling again can achieve something that waits for a time.
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
