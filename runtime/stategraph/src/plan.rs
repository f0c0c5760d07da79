//! The plan of a call, found by the same algorithm without handlers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::graph::{Extent, Graph};
use crate::item::{Operation, Timestamp};
use crate::operations::Operations;
use crate::planner::{CallError, Effect, Input, Observing, Options, Planner};
use crate::reason::{Blocker, Reason};
use crate::reference::Ref;
use crate::types::Types;
use crate::value::{Fingerprint, Value};

/// One operation of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// An action that the planner asks for.
    pub operation: Operation,
    /// The item.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// The reason for it.
    pub reason: Reason,
}

/// The operations of a call if nothing fails. Equal inputs give equal plans. It can be stored, shown to
/// people, and applied later, as long as both graphs are still the same.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph, Plan};
/// let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// let mut current = Graph::new("warehouse");
/// let plan = executor.plan(&current, Some(&intended), &Extent::Everything).await?;
/// assert_eq!(plan.to_string(), "create table/orders: is intended\ncreate view/daily: is intended\n");
/// // In between it may wait for approval in a file.
/// let plan: Plan = serde_json::from_str(&serde_json::to_string(&plan)?)?;
/// assert!(executor.apply(&mut current, Some(&intended), &plan).await?.status.is_converged());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The name of the graph.
    pub graph: String,
    /// The time at which it was made: retries that were due then are part of it.
    pub at: Timestamp,
    /// The extent.
    pub extent: Extent,
    /// The current graph that it was made for.
    pub current: Fingerprint,
    /// The intended graph that it was made for; none to delete all.
    pub intended: Option<Fingerprint>,
    /// The operations, in an order in which they could be performed one by one.
    pub operations: Vec<Planned>,
    /// Items that stay as they are although they are not as intended, and why.
    pub held: Vec<(Ref, Blocker)>,
    /// Cycles of the intended graph.
    pub cycles: Vec<Vec<Ref>>,
    /// Answers of handlers about values that cannot be modified.
    pub answers: BTreeMap<Ref, bool>,
    /// Decisions that had to be taken.
    pub notes: Vec<String>,
}

/// A plan that was made for other graphs than these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StalePlan {
    /// The current graph has changed since.
    #[error("the current graph is not the one that the plan was made for")]
    Current,
    /// The intended graph has changed since.
    #[error("the intended graph is not the one that the plan was made for")]
    Intended,
}

impl Plan {
    /// Returns true if the plan was made for these graphs.
    ///
    /// # Errors
    /// Returns the graph that has changed since, if any.
    pub fn check<V: Value>(&self, current: &Graph<V>, intended: Option<&Graph<V>>) -> Result<(), StalePlan> {
        if current.fingerprint() != self.current {
            return Err(StalePlan::Current);
        }
        if intended.map(Graph::fingerprint) != self.intended {
            return Err(StalePlan::Intended);
        }
        Ok(())
    }

    /// Returns the options with which a call does what the plan says, and nothing else.
    pub fn options(&self, limit: usize) -> Options {
        let only: BTreeSet<_> = self
            .operations
            .iter()
            .map(|one| (one.reference.clone(), one.operation))
            .collect();
        Options {
            limit,
            only: Some(only),
            answers: self.answers.clone(),
            due_by: Some(self.at),
            observe: Observing::Never,
        }
    }
}

/// One line for each operation and for each item that stays as it is.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for planned in &self.operations {
            writeln!(f, "{planned}")?;
        }
        for (reference, held) in &self.held {
            writeln!(f, "keep {reference} as it is: {held}")?;
        }
        for cycle in &self.cycles {
            let names: Vec<&str> = cycle.iter().chain(cycle.first()).map(Ref::as_str).collect();
            writeln!(f, "cycle: {}", names.join(" -> "))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.reference, self.reason)
    }
}

/// Computes the operations that a call would perform.
///
/// `needs_recreate` answers for the handlers; they do nothing else. Items whose
/// state is unknown are not observed: they count as failed in the operation that was under way.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// use watershed_stategraph::{Extent, Graph, Operations, Timestamp, plan};
/// let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// let (current, none, all) = (Graph::new("warehouse"), Operations::default(), Extent::Everything);
/// let mut never = |_: &_, _: &_, _: &_| Ok(false);
/// let plan = plan(executor.types(), &current, &none, Some(&intended), &all, Timestamp(0), &mut never)?;
/// assert_eq!(plan.operations.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the graphs are not valid.
pub fn plan<V: Value>(
    types: &Types<V>,
    current: &Graph<V>,
    operations: &Operations<V>,
    intended: Option<&Graph<V>>,
    extent: &Extent,
    now: Timestamp,
    needs_recreate: &mut dyn FnMut(&Ref, &V, &V) -> Result<bool, String>,
) -> Result<Plan, CallError> {
    let (mut copy, mut under_way) = (current.clone(), operations.clone());
    // One at a time: the order of the plan is one in which it could be performed.
    let options = Options {
        limit: 1,
        observe: Observing::Never,
        ..Options::default()
    };
    let mut planner = Planner::new(types, &mut copy, &mut under_way, intended, extent, options)?;
    let mut planned = Vec::new();
    let mut answers = BTreeMap::new();
    let mut inputs = VecDeque::from([Input::Begin]);
    while let Some(input) = inputs.pop_front() {
        for effect in planner.step(now, input) {
            match effect {
                Effect::Start(start) => {
                    let (operation, reference, reason) = (start.operation, start.reference, start.reason);
                    planned.push(Planned {
                        operation,
                        reference,
                        reason,
                    });
                    inputs.push_back(Input::Ended {
                        id: start.id,
                        result: Ok(()),
                    });
                }
                Effect::Ask { reference, old, new } => {
                    let answer = needs_recreate(&reference, &old.value, &new.value);
                    answers.extend(answer.iter().map(|answer| (reference.clone(), *answer)));
                    inputs.push_back(Input::Answered { reference, answer });
                }
                Effect::Observe { .. } | Effect::Cancel { .. } | Effect::Done => {}
            }
        }
    }
    let (log, status) = planner.into_report();
    Ok(Plan {
        graph: current.name().to_owned(),
        at: now,
        extent: extent.clone(),
        current: current.fingerprint(),
        intended: intended.map(Graph::fingerprint),
        operations: planned,
        held: status.held,
        cycles: status.cycles,
        answers,
        notes: log.notes,
    })
}
