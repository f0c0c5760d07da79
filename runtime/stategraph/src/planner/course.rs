//! The course of a call: its items, with a job and tasks for each.
//!
//! A node stands for a ref. Its job is carried out by up to three tasks: *down* deletes, *up* creates,
//! modifies or replaces, *finish* adopts or removes a replacement.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::Planner;
use super::chain::{Chain, Chains};
use super::job::{Id, Job, Part, Stage, Task, TaskId, Verdict};
use super::prospects::Prospects;
use super::slots::{IdSet, SlotHasher, SlotIndex};
use crate::graph::Slot;
use crate::item::Spec;
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::Value;

pub(super) struct Node<V> {
    pub(super) slot: Slot,
    pub(super) origin: Option<Slot>,
    pub(super) intent: Option<Arc<Spec<V>>>,
    /// Targets of the intent: their start in [`Course::needs`], and their number.
    need: (u32, u32),
    pub(super) verdict: Verdict,
    pub(super) job: Job,
    /// Reason for the job, for its tasks in order; an item that is recreated has two.
    pub(super) reason: Option<Reason>,
    pub(super) down: Task,
    pub(super) up: Task,
    pub(super) finish: Task,
    /// True if neither the item nor its targets have anything left to do that dependents must wait for.
    pub(super) calm: bool,
    /// Number of dependencies that are not calm.
    pub(super) open: u32,
    /// Nodes that wait until this one is calm, with the index of the dependency, as a list in [`Course::above`].
    pub(super) above: Chain,
    pub(super) on_course: bool,
    /// True if all dependencies are plain, so that `open` counts them without a note for each.
    pub(super) counts_plainly: bool,
    /// True once the survey was asked to judge the item.
    pub(super) is_drawn: bool,
}

impl<V> Node<V> {
    pub(super) fn task(&self, part: Part) -> &Task {
        match part {
            Part::Down => &self.down,
            Part::Up => &self.up,
            Part::Finish => &self.finish,
        }
    }

    pub(super) fn task_mut(&mut self, part: Part) -> &mut Task {
        match part {
            Part::Down => &mut self.down,
            Part::Up => &mut self.up,
            Part::Finish => &mut self.finish,
        }
    }

    /// Returns true if the item has nothing left to do that dependents must wait for. For a replacement that is its
    /// create, because the old item is deleted after them.
    pub(super) fn is_over(&self) -> bool {
        match self.job {
            Job::Wait | Job::Defer => false,
            // What is then still to be done is found by looking again, before anything relies on it.
            Job::Adopt | Job::DropAlias => matches!(self.finish.stage, Stage::Failed | Stage::Stopped),
            Job::DeleteBoth if self.verdict == Verdict::In => {
                let failed = |task: &Task| matches!(task.stage, Stage::Failed | Stage::Stopped);
                failed(&self.down) || failed(&self.finish)
            }
            Job::Replace => self.up.stage.is_over(),
            _ => [&self.down, &self.up, &self.finish]
                .iter()
                .all(|task| task.stage.is_over()),
        }
    }
}

/// Number of nodes from which a list of all slots is faster than a map.
const MANY_NODES: usize = 1_000;

/// The nodes of a call. Maps only find them and are never iterated, so that their order has no effect.
pub(super) struct Course<V> {
    pub(super) nodes: Vec<Node<V>>,
    /// Targets of all nodes, one node's after the other's.
    needs: Vec<Id>,
    next: Chains<TaskId>,
    above: Chains<(Id, u32)>,
    /// The `any_of` dependencies that are settled, by node and index.
    pub(super) settled: HashSet<(Id, u32)>,
    of_current: SlotIndex,
    of_intended: SlotIndex,
    /// Nodes with something to do, in no particular order.
    pub(super) active: Vec<Id>,
    /// Active nodes and their dependents.
    pub(super) on_course: Vec<Id>,
    /// Number of intended nodes among `on_course`.
    pub(super) intended_on_course: usize,
    /// Items that must be updated to their new dependencies before this target is modified: item, target.
    pub(super) moves: HashSet<(Id, Id)>,
    /// Waits that may be given up, because they come only from `order_only` or an unused alternative: later task,
    /// earlier task.
    pub(super) order_edges: Vec<(TaskId, TaskId)>,
    pub(super) has_alternatives: bool,
    /// True if related tasks may be unordered, so that every start must be checked.
    pub(super) is_mixed: bool,
    /// True if even tasks of the same kind may be unordered.
    pub(super) is_soft: bool,
    /// True if an item went on while some of its alternatives had something to do.
    pub(super) has_jumped: bool,
    /// Deletes that go on although a dependent, which could do without the item, is still to be deleted: item,
    /// dependent.
    pub(super) waived: HashSet<(Id, Id)>,
    /// Deletes that go on although a dependent still exists, because both are on a cycle of the current graph: item,
    /// dependent.
    pub(super) circular: HashSet<(Id, Id)>,
    /// Tasks that wait for nothing: deletes first, then in order of ref.
    pub(super) ready: BTreeSet<(Part, Ref, TaskId)>,
    /// Items that keep their present state: on hold, failed, or stopped.
    pub(super) leftovers: Vec<Id>,
    /// Slots that leftovers rely on, transitively, as far as computed.
    pub(super) below_leftovers: HashSet<Slot, BuildHasherDefault<SlotHasher>>,
    /// True if an item waits only for a target on hold, which the rest of the call may yet recreate.
    pub(super) is_held_back: bool,
    /// Items outside of the part whose intent changed because an operation on them ended. Another look finds their new
    /// job.
    pub(super) outdated: IdSet,
    /// Items whose new dependencies would close a cycle: a member of the cycle, and the item.
    pub(super) closing: HashSet<(Id, Id)>,
    pub(super) prospects: Prospects,
}

impl<V> Default for Course<V> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            needs: Vec::new(),
            next: Chains::default(),
            above: Chains::default(),
            settled: HashSet::new(),
            of_current: SlotIndex::Sparse(HashMap::default()),
            of_intended: SlotIndex::Sparse(HashMap::default()),
            active: Vec::new(),
            on_course: Vec::new(),
            intended_on_course: 0,
            moves: HashSet::new(),
            order_edges: Vec::new(),
            has_alternatives: false,
            ready: BTreeSet::new(),
            is_mixed: false,
            is_soft: false,
            has_jumped: false,
            waived: HashSet::new(),
            circular: HashSet::new(),
            leftovers: Vec::new(),
            below_leftovers: HashSet::default(),
            is_held_back: false,
            outdated: IdSet::default(),
            closing: HashSet::new(),
            prospects: Prospects::default(),
        }
    }
}

impl<V> Course<V> {
    /// Creates a course for about this number of nodes, of a call for the whole graph or a part.
    pub(super) fn new(is_whole: bool, nodes: usize) -> Self {
        let mut course = Self::default();
        // A call about few items of a large graph would spend its time on zeroing a list of all slots.
        if is_whole && nodes >= MANY_NODES {
            course.of_current = SlotIndex::Dense(Vec::new());
            course.of_intended = SlotIndex::Dense(Vec::new());
        }
        course.nodes.reserve(nodes);
        course
    }

    pub(super) fn node(&self, id: Id) -> &Node<V> {
        &self.nodes[id as usize]
    }

    pub(super) fn node_mut(&mut self, id: Id) -> &mut Node<V> {
        &mut self.nodes[id as usize]
    }

    /// Returns the intended targets of a node.
    pub(super) fn need(&self, id: Id) -> &[Id] {
        let (start, count) = self.node(id).need;
        &self.needs[start as usize..][..count as usize]
    }

    /// Makes a task wait for another.
    pub(super) fn link(&mut self, later: TaskId, earlier: TaskId) {
        let task = self.nodes[earlier.node as usize].task_mut(earlier.part);
        self.next.add(&mut task.next, later);
        self.task_mut(later).waits += 1;
    }

    /// Removes all waits. The heads in the nodes must be reset.
    pub(super) fn forget_links(&mut self) {
        self.next.clear();
        self.above.clear();
        self.settled.clear();
    }

    /// Removes the wait of a task for another, if there is one.
    pub(super) fn unlink(&mut self, later: TaskId, earlier: TaskId) {
        if let Some(rest) = self.next.remove(self.task(earlier).next, later) {
            self.task_mut(earlier).next = rest;
            self.task_mut(later).waits -= 1;
        }
    }

    /// Lists the tasks that wait for a task.
    pub(super) fn after(&self, task: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.next.iter(self.task(task).next)
    }

    /// Makes a node wait until another is calm.
    pub(super) fn watch(&mut self, target: Id, by: Id, at: u32) {
        self.above.add(&mut self.nodes[target as usize].above, (by, at));
    }

    /// Lists the nodes that wait until this one is calm, with the index of the dependency.
    pub(super) fn watchers(&self, id: Id) -> impl Iterator<Item = (Id, u32)> + '_ {
        self.above.iter(self.node(id).above)
    }

    pub(super) fn known(&self, slot: Slot) -> Option<Id> {
        self.of_current.get(slot)
    }

    pub(super) fn known_intended(&self, origin: Slot) -> Option<Id> {
        self.of_intended.get(origin)
    }

    pub(super) fn task(&self, task: TaskId) -> &Task {
        self.node(task.node).task(task.part)
    }

    pub(super) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        self.node_mut(task.node).task_mut(task.part)
    }

    /// Lists the slots of items that still differ from the intent: jobs that are not done, and items that can't exist.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = Slot> + '_ {
        let left = |node: &&Node<V>| {
            let tasks = [&node.down, &node.up, &node.finish];
            let judged = match node.verdict {
                Verdict::Out(_) => true,
                Verdict::Untouched => node.intent.is_some(),
                Verdict::Unseen | Verdict::In | Verdict::Gone => false,
            };
            judged
                || matches!(node.job, Job::Wait | Job::Hold | Job::Defer)
                || tasks
                    .iter()
                    .any(|task| !matches!(task.stage, Stage::None | Stage::Done))
        };
        self.nodes.iter().filter(left).map(|node| node.slot)
    }

    fn add(&mut self, slot: Slot, origin: Option<Slot>, intent: Option<Arc<Spec<V>>>) -> Id {
        // Slots are fewer than 2^32, and each has at most one node.
        let id = self.nodes.len() as Id;
        self.nodes.push(Node {
            slot,
            origin,
            intent,
            need: (0, 0),
            verdict: Verdict::Unseen,
            job: Job::Rest,
            reason: None,
            down: Task::default(),
            up: Task::default(),
            finish: Task::default(),
            calm: true,
            open: 0,
            above: Chain::default(),
            on_course: false,
            counts_plainly: false,
            is_drawn: false,
        });
        self.of_current.insert(slot, id);
        if let Some(origin) = origin {
            self.of_intended.insert(origin, id);
        }
        id
    }
}

impl<V: Value> Planner<'_, V> {
    pub(super) fn node(&self, id: Id) -> &Node<V> {
        self.course.node(id)
    }

    pub(super) fn ref_of(&self, id: Id) -> &Ref {
        self.current.reference(self.node(id).slot)
    }

    /// Returns the node of a slot of the current graph, adding it if necessary.
    pub(super) fn node_at(&mut self, slot: Slot) -> Id {
        if let Some(id) = self.course.known(slot) {
            return id;
        }
        let reference = self.current.reference(slot);
        let intended = self.intent.graph();
        let origin = intended.and_then(|intended| self.finder.find(intended, reference));
        self.add_node(slot, origin)
    }

    /// Returns the node of a slot of the intended graph, adding it if necessary.
    pub(super) fn node_of_intended(&mut self, origin: Slot) -> Option<Id> {
        if let Some(id) = self.course.of_intended.get(origin) {
            return Some(id);
        }
        let intended = self.intent.graph()?;
        let slot = self.current.pin(intended.reference(origin));
        Some(self.add_node(slot, Some(origin)))
    }

    fn add_node(&mut self, slot: Slot, origin: Option<Slot>) -> Id {
        let intended = self.intent.graph().zip(origin);
        let item = intended
            .and_then(|(intended, origin)| intended.item(origin))
            .filter(|item| !item.is_external());
        let intent = item.map(|item| Arc::clone(&item.spec));
        self.course.add(slot, origin, intent)
    }

    /// Looks up the nodes of an item's intended targets.
    pub(super) fn resolve_needs(&mut self, id: Id) {
        let node = self.node(id);
        let (Some(origin), Some(_)) = (node.origin, &node.intent) else {
            return;
        };
        if node.need.1 > 0 {
            return;
        }
        let count = self.intent.graph().map_or(0, |graph| graph.edges(origin).len());
        let start = self.course.needs.len();
        for at in 0..count {
            let target = self.intent.graph().and_then(|graph| graph.edges(origin).nth(at));
            let target = target.and_then(|target| self.node_of_intended(target));
            self.course.needs.extend(target);
        }
        let count = self.course.needs.len() - start;
        // Targets are edges, and those fit their items' boxes: far below 2^32.
        self.course.node_mut(id).need = (start as u32, count as u32);
    }

    /// Returns the dependents of an item in the current graph, each once. A replacement counts as its item.
    pub(super) fn current_dependents(&mut self, id: Id) -> Vec<Id> {
        let slots = self.current.dependents_of(self.node(id).slot).to_vec();
        self.spend(slots.len());
        let mut found: Vec<Id> = Vec::with_capacity(slots.len());
        for slot in slots {
            let base = self.base_slot(slot);
            found.push(self.node_at(base));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the dependents of an item in the intended graph, each once.
    pub(super) fn intended_dependents(&mut self, id: Id) -> Vec<Id> {
        let Some(origin) = self.node(id).origin else {
            return Vec::new();
        };
        let origins = self
            .intent
            .graph()
            .map_or_else(Vec::new, |graph| graph.dependents_of(origin).to_vec());
        self.spend(origins.len());
        let mut found: Vec<Id> = origins
            .into_iter()
            .filter_map(|origin| self.node_of_intended(origin))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
