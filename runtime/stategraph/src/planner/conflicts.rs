//! Resolution of dependencies that allow no order: items are deleted first and created last.
//!
//! Waiting tasks can form a circle only through an item that is to be turned away from a target
//! before the target is deleted or changed. Deleting such an item, instead of turning it, takes it out
//! of the circle; if all of them are deleted, deletes go first in the old order and creates follow in
//! the new one. Circles of deletes alone come from a current graph that is circular itself.

use std::collections::BTreeSet;

use super::Planner;
use super::job::{Id, Job, Part, TaskId};
use super::tasks::task;
use crate::links::Links;
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::Value;

/// Number of rounds in which only items on a circle are deleted. After that, all items to be switched away are: a bound
/// on the work for malicious graphs.
const PATIENT_ROUNDS: usize = 8;

/// Number of vertices per node in the graph of tasks: its three tasks, and being calm.
const PER_NODE: u32 = 4;

/// Index of a node's last vertex, after its tasks: being calm.
const CALM: u32 = 3;

fn vertex(task: TaskId) -> u32 {
    task.node * PER_NODE + task.part as u32
}

fn calm_vertex(id: Id) -> u32 {
    id * PER_NODE + CALM
}

impl<V: Value> Planner<'_, V> {
    /// Lays a course that can run to its end.
    pub(super) fn untangle(&mut self) {
        // Each round makes at least one job more thorough, which happens a few times to each item, or finds one more that
        // is held up, so there is a last one.
        for round in 0.. {
            self.lay();
            if !self.may_be_tangled() {
                return;
            }
            let knots = self.knots();
            if knots.is_empty() {
                return;
            }
            let inside = |knot: &BTreeSet<u32>, ends: &(TaskId, TaskId)| {
                knot.contains(&vertex(ends.0)) && knot.contains(&vertex(ends.1))
            };
            let order: Vec<(TaskId, TaskId)> = self.course.order_edges.clone();
            let dropped: Vec<_> = order
                .into_iter()
                .filter(|ends| knots.iter().any(|knot| inside(knot, ends)))
                .collect();
            // The cheapest way out first: an order that is only preferred costs nothing to give up, a remake costs an
            // item.
            for (later, earlier) in dropped {
                self.drop_edge(later, earlier);
                self.course.waived.insert((later.node, earlier.node));
            }
            let knots = self.knots();
            let turned = self.turned_away(&knots, round < PATIENT_ROUNDS);
            if turned.is_empty() {
                return self.break_deletes(&knots);
            }
            let mut queue = Vec::new();
            for id in turned {
                self.raise(id, Job::Remake, Reason::InTheWay, &mut queue);
            }
            self.follow(queue);
            if self.hold_up() {
                self.assign_anew();
                self.foresee();
            }
        }
    }

    /// Returns true if tasks may wait in a circle. Without deletes and items that move first, they follow the intended
    /// graph.
    fn may_be_tangled(&self) -> bool {
        !self.course.moves.is_empty() || self.course.active.iter().any(|&id| self.node(id).job.has_down())
    }

    fn knots(&mut self) -> Vec<BTreeSet<u32>> {
        self.spend(self.course.nodes.len());
        let mut links = Links::default();
        for id in 0..self.course.nodes.len() as Id {
            for part in [Part::Down, Part::Up, Part::Finish] {
                let node = self.node(id);
                let counts = node.job != Job::Replace || part == Part::Up;
                let next = self.course.after(task(id, part)).map(vertex);
                links.add(next.chain(counts.then(|| calm_vertex(id))));
            }
            let origin = self.node(id).origin;
            let mentions = origin.map_or(0, |origin| self.intended_mentions(origin));
            let plain = (0..mentions).filter_map(|at| self.plain_above(origin?, at));
            let plain = plain.flat_map(|above| [vertex(task(above, Part::Up)), calm_vertex(above)]);
            links.add(
                plain.chain(
                    self.course
                        .watchers(id)
                        .filter(|&(above, at)| self.counts_on(above, at, id))
                        .flat_map(|(above, _)| [vertex(task(above, Part::Up)), calm_vertex(above)]),
                ),
            );
        }
        links
            .components()
            .1
            .into_iter()
            .map(|knot| knot.into_iter().collect())
            .collect()
    }

    /// Returns true if a dependency will certainly wait for this target: among several targets, only for the one relied
    /// on.
    fn counts_on(&self, id: Id, at: u32, target: Id) -> bool {
        let node = self.node(id);
        let Some(intent) = &node.intent else { return false };
        let at = at as usize;
        let need = &intent.needs[at];
        if need.width() == 1 {
            return true;
        }
        let positions = intent.positions(at);
        let chosen = match self.current.item(node.slot) {
            Some(item) => self.will_rely_on(id, item, need, positions),
            None => self
                .alternatives(id, positions)
                .find(|&one| self.will_hold(one, need.predicate())),
        };
        chosen == Some(target)
    }

    /// Removes a wait that would close a circle: of an `order_only`, or of an alternative that leads back.
    fn drop_edge(&mut self, later: TaskId, earlier: TaskId) {
        self.course.unlink(later, earlier);
    }

    /// Returns the items on circles of waits that were to be switched away from a target that is deleted or changed.
    fn turned_away(&self, knots: &[BTreeSet<u32>], only_inside: bool) -> BTreeSet<Id> {
        let mut found = BTreeSet::new();
        for &id in &self.course.active {
            for part in [Part::Up, Part::Finish] {
                for next in self.course.after(task(id, part)) {
                    // A replacement that is given up goes in its last task.
                    let goes = next.part == Part::Down
                        || (next.part == Part::Finish && self.node(next.node).job == Job::DeleteBoth);
                    let leaves = goes || self.course.moves.contains(&(id, next.node));
                    let ends = [vertex(task(id, part)), vertex(next)];
                    let inside = knots.iter().any(|knot| ends.iter().all(|end| knot.contains(end)));
                    // One that is replaced after others changed, which wait for it to go.
                    let is_other = next.node != id || (part == Part::Up && next.part == Part::Down);
                    if is_other && leaves && (inside || !only_inside) && !knots.is_empty() {
                        found.insert(id);
                    }
                }
            }
        }
        found.retain(|&id| matches!(self.node(id).job, Job::Relink | Job::Modify | Job::Replace));
        found
    }

    /// Breaks circles of deletes by deleting their members in order of ref.
    fn break_deletes(&mut self, knots: &[BTreeSet<u32>]) {
        // What is left out of the order is kept apart when it starts.
        self.course.is_soft |= !knots.is_empty();
        self.course.is_mixed |= !knots.is_empty();
        for knot in knots {
            debug_assert!(
                knot.iter()
                    .all(|&vertex| vertex % PER_NODE != Part::Up as u32 && vertex % PER_NODE != CALM),
                "only deletes are left in a circle"
            );
            let downs = knot
                .iter()
                .filter(|&&vertex| vertex % PER_NODE == Part::Down as u32);
            let mut members: Vec<(Ref, Id)> = downs
                .map(|&vertex| vertex / PER_NODE)
                .map(|id| (self.ref_of(id).clone(), id))
                .collect();
            // Any order is as good as another here; by ref it is the same one in every call and in the plan.
            members.sort();
            let ids: BTreeSet<Id> = members.iter().map(|(_, id)| *id).collect();
            for &(_, id) in &members {
                let after: Vec<TaskId> = self.course.after(task(id, Part::Down)).collect();
                for next in after {
                    if next.part == Part::Down && ids.contains(&next.node) {
                        self.drop_edge(next, task(id, Part::Down));
                        self.course.circular.insert((next.node, id));
                    }
                }
            }
            for pair in members.windows(2) {
                self.after(task(pair[1].1, Part::Down), task(pair[0].1, Part::Down));
            }
            let names: Vec<String> = members
                .iter()
                .map(|(reference, _)| reference.to_string())
                .collect();
            self.log.note(format!(
                "deleted in order of ref, as they depend on one another: {}",
                names.join(", ")
            ));
        }
    }
}
