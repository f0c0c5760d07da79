//! Reasons for operations, and for items that are pending or not touched; as data.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reference::Ref;

/// The reason why an operation is performed.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{Extent, Item, Reason, Ref};
/// let (current, mut intended) = (warehouse::intended()?, warehouse::intended()?);
/// intended.put(Item::new(Ref::parse("table/orders")?, json!(["day", "amount"])))?;
/// let plan = warehouse::executor().plan(&current, Some(&intended), &Extent::Everything).await?;
/// assert_eq!(plan.operations[0].reason, Reason::ValueChanged);
/// assert_eq!(plan.operations[0].to_string(), "modify table/orders: the value changed");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The item is intended and does not exist.
    Intended,
    /// The intended value differs.
    ValueChanged,
    /// The item is no longer intended.
    NotIntended,
    /// A dependency is missing or unsatisfied.
    Unsatisfied(Vec<Unmet>),
    /// The handler says that the value can't be modified.
    NeedsRecreate,
    /// A target that the item was created against is modified.
    TargetModified(Ref),
    /// A target is deleted and created.
    TargetRecreated(Ref),
    /// A target is replaced by another that exists beside it for a while.
    TargetReplaced(Ref),
    /// The new value of a target would break the item's condition.
    ConditionBroken(Ref),
    /// The old and new dependencies allow no order in which the item could stay.
    InTheWay,
    /// The last operation failed and is retried; with the number of attempts before.
    Retry(u32),
    /// The last operation failed, and the value is restored for the present intent.
    Reassert,
    /// The replacement exists, and nothing depends on the old item any more.
    Replaced,
    /// The replacement could not be created, or is not wanted any more.
    ReplacementFailed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intended => f.write_str("is intended"),
            Self::ValueChanged => f.write_str("the value changed"),
            Self::NotIntended => f.write_str("is not intended any more"),
            Self::Unsatisfied(unmet) => join(f, unmet),
            Self::NeedsRecreate => f.write_str("cannot be modified"),
            Self::TargetModified(target) => write!(f, "was created against another `{target}`"),
            Self::TargetRecreated(target) => write!(f, "`{target}` is created anew"),
            Self::TargetReplaced(target) => write!(f, "`{target}` is replaced"),
            Self::ConditionBroken(target) => write!(f, "`{target}` is about to break its condition"),
            Self::InTheWay => f.write_str("old and new dependencies exclude each other"),
            Self::Retry(attempts) => write!(f, "failed before ({attempts})"),
            Self::Reassert => f.write_str("the last operation failed"),
            Self::Replaced => f.write_str("is replaced"),
            Self::ReplacementFailed => f.write_str("the replacement is given up"),
        }
    }
}

/// A dependency that is not satisfied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmet {
    /// Targets that are needed; several if one of them would do.
    pub targets: Vec<Ref>,
    /// Reason why the targets don't satisfy the dependency.
    pub problem: Problem,
}

/// Problem with the target of a dependency.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph, Blocker, Problem, Ref};
/// let mut intended = warehouse::intended()?;
/// intended.remove(&Ref::parse("table/orders")?);
/// let plan = warehouse::executor().plan(&Graph::new("warehouse"), Some(&intended), &Extent::Everything).await?;
/// let Blocker::Pending(unmet) = &plan.held[0].1 else { panic!("the view waits") };
/// match &unmet[0].problem {
///     Problem::Missing => println!("add the table, or take the view out"),
///     Problem::Pending | Problem::GoingAway | Problem::Condition(_) => panic!("there is no table at all"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The target does not exist, and is not intended.
    Missing,
    /// The target is intended but pending itself.
    Pending,
    /// The target exists, but is not intended.
    GoingAway,
    /// The target exists, but does not satisfy this condition.
    Condition(String),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<String> = self.targets.iter().map(|target| format!("`{target}`")).collect();
        let targets = targets.join(" or ");
        match &self.problem {
            Problem::Missing => write!(f, "needs {targets}, which is missing"),
            Problem::Pending => write!(f, "needs {targets}, which is pending"),
            Problem::GoingAway => write!(f, "needs {targets}, which goes away"),
            Problem::Condition(condition) => write!(f, "needs {targets} with {condition}"),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, unmet: &[Unmet]) -> fmt::Result {
    let parts: Vec<String> = unmet.iter().map(ToString::to_string).collect();
    f.write_str(&parts.join("; "))
}

/// Reason why an item that should change was not touched, or not yet.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph, Blocker, Ref};
/// let mut intended = warehouse::intended()?;
/// intended.remove(&Ref::parse("table/orders")?);
/// let plan = warehouse::executor().plan(&Graph::new("warehouse"), Some(&intended), &Extent::Everything).await?;
/// for (item, held) in &plan.held {
///     match held {
///         Blocker::Pending(_) => assert_eq!(item.as_str(), "view/daily"),
///         other => panic!("{item} {other}"),
///     }
/// }
/// assert_eq!(plan.held[0].1.to_string(), "needs `table/orders`, which is missing");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Dependencies are not satisfied.
    Pending(Vec<Unmet>),
    /// The item is external and intended, but not in the current graph yet.
    Absent,
    /// The item is on a cycle of the intended graph, or depends on one.
    Cycle,
    /// A background operation, on this item, has to end first.
    Running(Ref),
    /// A failure of a target, or of an item that must be deleted first, stops the item.
    Stopped,
    /// The item failed, and is retried later or never.
    Failed,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending(unmet) => join(f, unmet),
            Self::Absent => f.write_str("is external and absent"),
            Self::Cycle => f.write_str("is on a cycle or depends on one"),
            Self::Running(reference) => write!(f, "waits for the operation on `{reference}`"),
            Self::Stopped => f.write_str("waits for something that failed"),
            Self::Failed => f.write_str("failed"),
        }
    }
}
