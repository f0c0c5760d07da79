//! The planner: the next effects, as a function of the inputs so far.
//!
//! [`Planner::step`] takes an input and answers with effects; it awaits nothing, reads no clock and
//! keeps ordered data wherever order shows. A call goes through these phases:
//!
//! 1. *Observe* the items whose state is unknown.
//! 2. *Survey* ([`survey`]): starting from what changed, decide for each item whether it should be
//!    there, in one pass by rank, and what follows for those that depend on it.
//! 3. *Ask* the handlers which of the changed values cannot be modified.
//! 4. *Lay a course* ([`course`]): at most three tasks for each item (down, up, finish) and what each
//!    of them waits for; items whose old and new dependencies exclude each other are remade ([`remake`]),
//!    unless something that stays holds that up ([`prospects`]).
//! 5. *Run* ([`run`]): start what waits for nothing and is related to nothing that runs ([`relation`]).
//!
//! Invariants:
//! 1. A task is over (done, failed or stopped) only after everything that it waits for is over, and at
//!    the end of a call every task is over or waits for an operation in the background.
//! 2. Whether a task may run is looked up in the current graph when it is due, never assumed.
//! 3. An item has at most one operation under way; its state in the current graph says which.

mod cancel;
mod chain;
mod conflicts;
mod course;
mod differ;
mod effects;
mod endgame;
mod gates;
mod hold;
mod job;
mod jobs;
mod prospects;
mod recreation;
mod relation;
mod report;
mod reversal;
mod run;
mod scope;
mod settle;
mod slots;
mod survey;
mod tasks;
mod ties;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use effects::{Effect, Input, Observed, Start};
pub use validate::CallError;

use crate::graph::{Extent, Graph, Slot};
use crate::item::{Item, Operation, Spec, Timestamp};
use crate::log::Log;
use crate::operations::{OperationId, Operations};
use crate::reference::Ref;
use crate::types::Types;
use crate::value::Value;
use course::Course;
use job::TaskId;
use scope::Intent;

/// Default number of operations that a call keeps running at a time: enough to hide latency, few enough not to overload
/// the target.
pub const DEFAULT_LIMIT: usize = 16;

/// Limits and restrictions of one call.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use watershed_stategraph::*;
/// # let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// # let (mut current, mut operations, extent) = (Graph::new("warehouse"), Operations::default(), Extent::Everything);
/// // Only the table, whatever else is intended.
/// let table = Ref::parse("table/orders")?;
/// let options = Options { only: Some([(table, Operation::Create)].into()), ..Options::default() };
/// # let types = executor.types();
/// let mut planner = Planner::new(types, &mut current, &mut operations, Some(&intended), &extent, options)?;
/// let effects = planner.step(Timestamp(0), Input::Begin);
/// assert_eq!(effects.len(), 1);
/// let effects = planner.step(Timestamp(0), Input::Ended { id: OperationId(1), result: Ok(()) });
/// assert_eq!(effects, [Effect::Done]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of operations that a call waits for at a time, at least one.
    pub limit: usize,
    /// Operations that may be started; none for all.
    pub only: Option<BTreeSet<(Ref, Operation)>>,
    /// Known answers of `needs_recreate`.
    pub answers: BTreeMap<Ref, bool>,
    /// Time by which retries are due; none for the present.
    pub due_by: Option<Timestamp>,
    /// Permission to observe unknown items; without it they count as failed.
    pub observe: Observing,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            only: None,
            answers: BTreeMap::new(),
            due_by: None,
            observe: Observing::Allowed,
        }
    }
}

/// Permission to ask handlers for the state of unknown items.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use watershed_stategraph::*;
/// # let (mut types, intended) = (Types::new(), warehouse::intended()?);
/// # types.register("table", ItemType::new().observes());
/// # types.register("view", ItemType::new());
/// # let (mut operations, extent) = (Operations::default(), Extent::Everything);
/// let mut current = intended.clone();
/// current.mark_unknown(&Ref::parse("table/orders")?)?;
/// for (observe, is_asked) in [(Observing::Allowed, true), (Observing::Never, false)] {
///     let options = Options { observe, ..Options::default() };
///     let (mut current, intended) = (current.clone(), Some(&intended));
///     let mut planner = Planner::new(&types, &mut current, &mut operations, intended, &extent, options)?;
///     let effects = planner.step(Timestamp(0), Input::Begin);
///     assert_eq!(matches!(effects.first(), Some(Effect::Observe { .. })), is_asked);
/// #   drop(planner);
/// #   operations = Operations::default();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observing {
    /// Items are observed if their type allows it.
    Allowed,
    /// No item is observed.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Observing,
    Asking,
    Running,
    Done,
}

/// The planner of one call, which converges the current graph to the intended one.
///
/// The current graph is consistent after every step. Dropping the planner between two steps loses
/// nothing: what runs stays in [`Operations`], and its item says so.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use std::collections::VecDeque;
/// # use watershed_stategraph::*;
/// # let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// # let (extent, options) = (Extent::Everything, Options::default());
/// let (mut current, mut operations) = (Graph::new("warehouse"), Operations::default());
/// # let types = executor.types();
/// let mut planner = Planner::new(types, &mut current, &mut operations, Some(&intended), &extent, options)?;
/// let mut inputs = VecDeque::from([Input::Begin]);
/// while let Some(input) = inputs.pop_front() {
///     for effect in planner.step(Timestamp(0), input) {
///         if let Effect::Start(start) = effect {
///             println!("{} {}", start.operation, start.reference); // do it here
///             inputs.push_back(Input::Ended { id: start.id, result: Ok(()) });
///         }
///     }
/// }
/// assert!(planner.is_done() && planner.status().is_converged());
/// drop(planner);
/// assert_eq!(current.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Planner<'a, V: Value> {
    types: &'a Types<V>,
    current: &'a mut Graph<V>,
    operations: &'a mut Operations<V>,
    intent: Intent<'a, V>,
    options: Options,
    now: Timestamp,
    /// Time of the present input, which may be older than that of the previous one if the input had to wait.
    at: Timestamp,
    phase: Phase,
    /// Items whose observation or answer is awaited.
    awaited: BTreeSet<Ref>,
    /// Answers of `needs_recreate` in this call, each until an operation on its item ends.
    answers: BTreeMap<Ref, bool>,
    /// Items for which `needs_recreate` failed, with the error.
    unanswered: BTreeMap<Ref, String>,
    course: Course<V>,
    /// Lookup of the current graph's items in the intended graph.
    finder: differ::Finder,
    /// Tasks of this course, by the operation that performs each.
    tasks: BTreeMap<OperationId, TaskId>,
    /// Items related to each running operation, computed on demand.
    relations: relation::Relations,
    /// Dependencies that running operations of earlier calls are giving to items.
    coming: relation::Coming,
    /// Items on which an operation has failed since the call began.
    failed_now: BTreeSet<Ref>,
    /// Number of failures when the course was last laid.
    failed_before: usize,
    /// Items that must be deleted first, because nothing else resolves the block between them.
    insisted: BTreeSet<Ref>,
    /// Number of times that each item was insisted on in this call.
    insistence: BTreeMap<Ref, u32>,
    /// True if no further operations are started.
    is_halted: bool,
    /// Number of looks at the graph in this call.
    looks: u32,
    /// Number of changes of the current graph in this call.
    changes: u64,
    /// Number of changes up to the last look.
    changes_before: u64,
    /// Slots to look at again, such as slots on which an operation of an earlier course or call has ended.
    dirty: BTreeSet<Slot>,
    effects: Vec<Effect<V>>,
    log: Log,
    /// Operation of each log entry.
    logged: Vec<OperationId>,
    /// Number of items and edges visited so far.
    cost: u64,
}

impl<'a, V: Value> Planner<'a, V> {
    /// Prepares a call, without changing anything. The first input is [`Input::Begin`].
    ///
    /// # Errors
    /// Returns an error if the graphs are not valid, before anything runs.
    pub fn new(
        types: &'a Types<V>,
        current: &'a mut Graph<V>,
        operations: &'a mut Operations<V>,
        intended: Option<&'a Graph<V>>,
        extent: &Extent,
        options: Options,
    ) -> Result<Self, CallError> {
        validate::validate(types, current, intended, extent)?;
        let intent = Intent::new(current, intended, extent);
        current.keep_slots();
        operations.begin_log();
        Ok(Self {
            types,
            current,
            operations,
            intent,
            options,
            now: Timestamp::default(),
            at: Timestamp::default(),
            phase: Phase::New,
            awaited: BTreeSet::new(),
            answers: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            course: Course::default(),
            finder: differ::Finder::default(),
            tasks: BTreeMap::new(),
            relations: BTreeMap::new(),
            coming: relation::Coming::default(),
            failed_now: BTreeSet::new(),
            failed_before: 0,
            insisted: BTreeSet::new(),
            insistence: BTreeMap::new(),
            is_halted: false,
            looks: 0,
            changes: 0,
            changes_before: 0,
            dirty: BTreeSet::new(),
            effects: Vec::new(),
            log: Log::default(),
            logged: Vec::new(),
            cost: 0,
        })
    }

    /// Records the executor that carries out the call.
    pub(crate) fn hold(&mut self, holder: &str) {
        self.current.set_holder(holder);
    }

    /// Takes one input and returns the effects. `at` is the time of the input, which may precede that of the previous
    /// one if it had to wait, such as the end of an operation between two calls.
    pub fn step(&mut self, at: Timestamp, input: Input<V>) -> Vec<Effect<V>> {
        self.at = at;
        self.now = self.now.max(at);
        match input {
            Input::Begin => self.begin(),
            Input::Observed { reference, found } => self.observed(&reference, found),
            Input::Answered { reference, answer } => self.answered(reference, answer),
            Input::Ended { id, result } => self.ended(id, result),
            Input::Background { id } => self.let_go(id),
            Input::Cancel(which) => self.cancel(&which),
            Input::Dropped { id } => self.dropped(id),
            Input::Halt => self.halt(),
            Input::Tick => self.expire(),
        }
        self.advance();
        std::mem::take(&mut self.effects)
    }

    /// Returns true if nothing more can be done now.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns the current graph as it is now.
    pub fn current(&self) -> &Graph<V> {
        self.current
    }

    /// Returns the number of items and edges visited so far, with repetitions: the time of a call is proportional to
    /// it.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Counts items or edges that are about to be visited.
    fn spend(&mut self, count: usize) {
        self.cost += count as u64;
    }

    fn begin(&mut self) {
        self.failed_now.clear();
        self.follow_clock();
        self.expire();
        self.intent.begin(self.current);
        self.phase = Phase::Observing;
        self.observe_unknown();
    }

    /// Moves failures from the future to the present if the clock was set back, so that no retry waits longer than its
    /// policy says.
    fn follow_clock(&mut self) {
        let now = self.now;
        let failure = |slot: &Slot| self.current.item(*slot).and_then(Item::failure);
        let is_ahead = |slot: &Slot| failure(slot).is_some_and(|failure| failure.last > now);
        let ahead: Vec<Slot> = self.current.attention().filter(is_ahead).collect();
        for slot in ahead {
            self.current.alter(slot, |item| {
                item.record(|record| {
                    if let Some(failure) = &mut record.failure {
                        failure.last = now;
                    }
                });
            });
        }
    }

    /// Runs the call as far as possible.
    fn advance(&mut self) {
        loop {
            match self.phase {
                Phase::Observing if self.awaited.is_empty() => {
                    let mut seeds = self.seeds();
                    seeds.extend(std::mem::take(&mut self.dirty));
                    self.survey(seeds);
                    self.phase = Phase::Asking;
                    self.ask();
                }
                Phase::Asking if self.awaited.is_empty() => {
                    self.lay_course();
                    self.phase = Phase::Running;
                }
                Phase::Running => {
                    self.run();
                    if self.is_busy() {
                        return;
                    }
                    if !self.is_halted && self.release_order() {
                        continue;
                    }
                    if self.is_halted || (self.dirty.is_empty() && !self.can_go_on()) {
                        return self.finish();
                    }
                    self.look_again();
                }
                _ => return,
            }
        }
    }

    /// Returns true if the call has to wait for an operation in the foreground.
    fn is_busy(&self) -> bool {
        self.operations.in_foreground() > 0
    }

    /// Returns true if the current graph has changed since the last look: an operation started or succeeded, or an
    /// item's dependencies were updated.
    fn has_changed(&self) -> bool {
        self.changes > self.changes_before
    }

    /// Returns true if an operation has failed since the last look.
    fn has_failed(&self) -> bool {
        self.failed_now.len() > self.failed_before
    }

    /// Surveys all unfinished items again, with the results of operations from earlier calls.
    fn look_again(&mut self) {
        self.looks += 1;
        // Both change what is in whose way: what failed stays, and nothing goes for its sake.
        if self.has_changed() || self.has_failed() {
            self.insisted.clear();
        }
        self.changes_before = self.changes;
        self.failed_before = self.failed_now.len();
        let open = self.current.attention().filter(|_| self.intent.extent.is_part());
        let seeds = self
            .course
            .unfinished()
            .chain(std::mem::take(&mut self.dirty))
            .chain(open)
            .collect();
        self.tasks.clear();
        self.survey(seeds);
        self.phase = Phase::Asking;
        self.ask();
    }

    fn finish(&mut self) {
        self.phase = Phase::Done;
        let touched: Vec<Slot> = self.course.nodes.iter().map(|node| node.slot).collect();
        self.intent.update_groups(self.current, &touched);
        self.current.release_slots();
        self.effects.push(Effect::Done);
    }

    fn answered(&mut self, reference: Ref, answer: Result<bool, String>) {
        if !self.awaited.remove(&reference) {
            return;
        }
        match answer {
            Ok(answer) => {
                self.answers.insert(reference, answer);
            }
            Err(error) => {
                self.unanswered.insert(reference, error);
            }
        }
    }

    /// Returns true if a predicate holds for a target's value.
    fn holds(&self, target: &Ref, predicate: &crate::predicate::Predicate, value: &V) -> bool {
        let type_name = target.type_name();
        predicate.holds(value, &|name, value| self.types.named(type_name, name, value))
    }
}

/// Returns true if two specs are equal; fast if they are shared.
fn same<V: PartialEq>(left: &Arc<Spec<V>>, right: &Arc<Spec<V>>) -> bool {
    Arc::ptr_eq(left, right) || left == right
}
