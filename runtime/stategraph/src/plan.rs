//! The plan of a call, computed by the same algorithm without handlers.

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

/// An operation of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Operation: create, modify, delete or adopt.
    pub operation: Operation,
    /// Item of the operation.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// Reason why the operation is needed.
    pub reason: Reason,
}

/// The operations of a call if nothing fails. Equal inputs give equal plans. A plan can be stored, shown to people, and
/// applied later, as long as both graphs are unchanged.
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
    /// Name of the graph to converge.
    pub graph: String,
    /// Time at which the plan was made: retries due by then are part of it.
    pub at: Timestamp,
    /// Extent of the planned call.
    pub extent: Extent,
    /// Fingerprint of the current graph that the plan was made for.
    pub current: Fingerprint,
    /// Fingerprint of the intended graph that the plan was made for; none to delete everything.
    pub intended: Option<Fingerprint>,
    /// Operations in an order in which they could be performed one by one.
    pub operations: Vec<Planned>,
    /// Items that are left unchanged although they differ from the intent, each with the reason.
    pub held: Vec<(Ref, Blocker)>,
    /// Cycles of the intended graph.
    pub cycles: Vec<Vec<Ref>>,
    /// Answers of handlers: true if a value can't be modified.
    pub answers: BTreeMap<Ref, bool>,
    /// Decisions that the planner had to make.
    pub notes: Vec<String>,
}

/// Reason why a plan is stale: a graph differs from the one that it was made for.
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
    /// Checks that the plan was made for these graphs.
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

    /// Returns the options with which a call performs exactly this plan.
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

/// Formats one line for each operation and each item that is left unchanged.
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
