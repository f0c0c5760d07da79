//! Fairness towards timed requests: however often they come, every resource completes (the contract's C17).
//!
//! A resource that timed requests alone have kept from completing for its kind's `timed_patience` is *starved*: until it
//! has completed once, timed requests of its ancestors are deferred, [`DEFERRED_FOR`] at a time. Each is repeated then,
//! so none is lost.
//!
//! Who is starved is only worked out when a timed request comes, something has been unsettled for long enough, and the
//! last result is [`Limits::starvation_slack`](crate::Limits::starvation_slack) old. So it costs nothing where all
//! settles in time, and else one pass over the graph a second at most, whatever the number of timed requests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::graph::Graph;
use crate::graph::lifecycle::At;
use crate::timers::{Timer, Timers};
use crate::types::index::Slot;
use crate::{Mono, Uid};
use rustc_hash::FxBuildHasher;

/// Delay of a timed request before it is repeated.
pub(crate) const DEFERRED_FOR: Duration = Duration::from_secs(1);

/// The starved resources found by the last pass over the graph.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Starvation {
    /// Greatest age of the result before another pass is made.
    slack: Duration,
    /// Time of the last pass, and the stretch of unrest that it belongs to; none before the first.
    found: Option<(Mono, u64)>,
    /// Ancestors of starved resources; by uid, because slots may be reused.
    above_starved: HashSet<Uid, FxBuildHasher>,
}

impl Starvation {
    pub(crate) fn new(slack: Duration) -> Self {
        Self {
            slack,
            found: None,
            above_starved: HashSet::default(),
        }
    }

    /// Defers a timed request if necessary, by setting its timer again; returns whether it is deferred.
    pub(crate) fn defer(
        &mut self,
        graph: &mut Graph,
        timers: &mut Timers,
        now: Mono,
        (slot, timer): (Slot, Timer),
    ) -> bool {
        let defers = self.defers(graph, now, slot);
        // One that is deferred already keeps its time, however often it comes.
        if defers && timers.due(timer).is_none() {
            timers.set(timer, now.after(DEFERRED_FOR));
        }
        defers
    }

    /// Returns true if a timed request for this resource must be deferred.
    pub(crate) fn defers(&mut self, graph: &mut Graph, now: Mono, slot: Slot) -> bool {
        let (restless_since, stretch) = graph.restless();
        let restless = now.since(restless_since);
        // Nothing can have starved yet. A catalog that settles between its timers never gets beyond this line.
        if graph.unsettled() == 0 || restless < graph.kinds().least_timed_patience() {
            return false;
        }
        let is_fresh = |(at, of): (Mono, u64)| of == stretch && now.since(at) < self.slack;
        if !self.found.is_some_and(is_fresh) {
            self.find_starved(graph, now);
        }
        self.above_starved.contains(&graph[slot].row().uid)
    }

    fn find_starved(&mut self, graph: &mut Graph, now: Mono) {
        let mut disturbed = HashMap::default();
        let waiting = graph
            .iter()
            .filter_map(|(slot, _)| long_waiting(graph, slot, now));
        let waiting: Vec<(Slot, Mono, Mono)> = waiting.collect();
        self.found = Some((now, graph.restless().1));
        self.above_starved.clear();
        let mut open = Vec::new();
        for (slot, since, until) in waiting {
            // An edit above it is a good reason to have waited; only timed requests must not be one.
            let since = since.max(disturbed_above(graph, slot, &mut disturbed));
            if until.since(since) >= timed_patience(graph, slot) {
                open.push(slot);
            }
        }
        while let Some(slot) = open.pop() {
            let parents: Vec<Slot> = graph.parents(slot).collect();
            graph.visit_edges(parents.len());
            for parent in parents {
                let uid = graph[parent].row().uid;
                if self.above_starved.insert(uid) {
                    graph.visit();
                    open.push(parent);
                }
            }
        }
    }
}

fn timed_patience(graph: &Graph, slot: Slot) -> Duration {
    let options = graph.options(slot);
    options.map_or(Duration::MAX, |options| options.timed_patience)
}

/// Returns the start and end of a resource's wait, if that is long enough to be starved. A running invocation does not
/// end the starvation.
fn long_waiting(graph: &Graph, slot: Slot, now: Mono) -> Option<(Slot, Mono, Mono)> {
    let (since, until) = match graph[slot].at() {
        At::Settled(_) | At::Concluding => return None,
        At::Pending(pending) => (pending.since(), now),
        At::Running(run) => (run.waited_since(), run.begun()),
    };
    let long = graph[slot].is_live() && until.since(since) >= timed_patience(graph, slot);
    long.then_some((slot, since, until))
}

/// Returns the time of the last request that was not timed, for a resource or its ancestors.
fn disturbed_above(graph: &mut Graph, slot: Slot, known: &mut HashMap<Slot, Mono, FxBuildHasher>) -> Mono {
    let start = graph.scc_root(slot);
    // Each node twice, before and after its ancestors: a recursion would be as deep as the longest chain of refs.
    let mut open = vec![(start, false)];
    while let Some((scc_root, ready)) = open.pop() {
        if known.contains_key(&scc_root) {
            continue;
        }
        let members: Vec<Slot> = (0..).map_while(|index| graph.member(scc_root, index)).collect();
        let own = members.iter().map(|member| graph[*member].disturbed()).max();
        let above: Vec<Slot> = members
            .iter()
            .flat_map(|member| graph.parents(*member))
            .map(|parent| graph.scc_root(parent))
            .filter(|above| *above != scc_root)
            .collect();
        if ready {
            let above = above.iter().filter_map(|above| known.get(above).copied());
            let latest = above.chain(own).max().unwrap_or_default();
            known.insert(scc_root, latest);
        } else {
            graph.visit();
            graph.visit_edges(above.len());
            open.push((scc_root, true));
            open.extend(above.into_iter().map(|above| (above, false)));
        }
    }
    known[&start]
}
