//! The extent of a call, which displaced items remember.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::GroupPath;
use crate::reference::Ref;

/// The extent of a call: all of a graph, or a part.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph, Ref};
/// let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// let mut current = Graph::new("warehouse");
/// let table = Extent::Item(Ref::parse("table/orders")?);
/// executor.converge(&mut current, Some(&intended), &table).await?;
/// assert_eq!(current.len(), 1); // no view yet
/// // A caller that names what changed since saves the rest of the work.
/// let view = Extent::Changed([Ref::parse("view/daily")?].into());
/// executor.converge(&mut current, Some(&intended), &view).await?;
/// assert_eq!(current.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// The whole graph.
    #[default]
    Everything,
    /// The whole graph, of which only these items, intended or external, have changed since an earlier call: the cost
    /// depends only on them and their dependents.
    Changed(BTreeSet<Ref>),
    /// A group with all nested ones: items intended there, and items that are there and intended nowhere. Others are
    /// touched only where dependencies require it.
    Group(GroupPath),
    /// One item. Others are touched only where dependencies require it.
    Item(Ref),
}
