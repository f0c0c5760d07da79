//! Timed requests that never cease keep no resource from completing (the contract's C17).
//!
//! A resource that timed requests alone have kept from completing for its kind's `timed_patience` is *starved*: until it
//! has completed once, timed requests of its ancestors are deferred, [`DEFERRED_FOR`] at a time. Each asks again then,
//! so none is lost.
//!
//! Who is starved is only worked out when a timed request comes, something has been unsettled for long enough, and the
//! last result is [`Limits::starvation_slack`](crate::Limits::starvation_slack) old. So it costs nothing where all
//! settles in time, and else one pass over the graph a second at most, whatever the number of timed requests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::QuickHash;
use crate::core::Core;
use crate::resource::Slot;
use crate::resource::lifecycle::At;
use crate::timers::Timer;
use crate::{Mono, Uid};

/// How long a timed request is deferred before it asks again.
pub(crate) const DEFERRED_FOR: Duration = Duration::from_secs(1);

/// What the last pass found.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Starvation {
    /// Since when something has been unsettled without a break.
    restless_since: Mono,
    found_at: Option<Mono>,
    /// The ancestors of what is starved. By uid, for a slot may be used again.
    above_starved: HashSet<Uid, QuickHash>,
}

impl Starvation {
    /// Nothing was unsettled, and something is.
    pub(crate) fn restless(&mut self, now: Mono) {
        self.restless_since = now;
        self.found_at = None;
        self.above_starved.clear();
    }
}

impl Core {
    /// Sets the timer of a timed request anew if the request is to be deferred; returns whether it is.
    pub(crate) fn defer(&mut self, slot: Slot, timer: Timer) -> bool {
        let defers = self.defers(slot);
        // One that is deferred already keeps its time, however often it comes.
        if defers && self.timers.due(timer).is_none() {
            self.timers.set(timer, self.now.mono.after(DEFERRED_FOR));
        }
        defers
    }

    /// Whether a timed request for this resource is to be deferred.
    pub(crate) fn defers(&mut self, slot: Slot) -> bool {
        let now = self.now.mono;
        let restless = now.since(self.starvation.restless_since);
        if self.unsettled == 0 || restless < self.kinds.least_timed_patience() {
            return false;
        }
        let slack = self.limits.starvation_slack;
        let found_at = self.starvation.found_at;
        if found_at.is_none_or(|found_at| now.since(found_at) >= slack) {
            self.find_starved();
        }
        let uid = self.slots[slot].row.uid;
        self.starvation.above_starved.contains(&uid)
    }

    fn find_starved(&mut self) {
        let mut disturbed = HashMap::default();
        let waiting = self.slots.iter().filter_map(|(slot, _)| self.long_waiting(slot));
        let waiting: Vec<(Slot, Mono, Mono)> = waiting.collect();
        self.starvation.found_at = Some(self.now.mono);
        self.starvation.above_starved.clear();
        let mut open = Vec::new();
        for (slot, since, until) in waiting {
            let since = since.max(self.disturbed_above(slot, &mut disturbed));
            if until.since(since) >= self.timed_patience(slot) {
                open.push(slot);
            }
        }
        while let Some(slot) = open.pop() {
            let parents: Vec<Slot> = self.parents(slot).collect();
            self.counters.edges += parents.len() as u64;
            for parent in parents {
                let uid = self.slots[parent].row.uid;
                if self.starvation.above_starved.insert(uid) {
                    self.counters.nodes += 1;
                    open.push(parent);
                }
            }
        }
    }

    fn timed_patience(&self, slot: Slot) -> Duration {
        let options = self.options(slot);
        options.map_or(Duration::MAX, |options| options.timed_patience)
    }

    /// From when until when it has waited, if that is long enough to be starved. It still counts while the invocation
    /// runs that came of it.
    fn long_waiting(&self, slot: Slot) -> Option<(Slot, Mono, Mono)> {
        let (since, until) = match self.slots[slot].lifecycle.at() {
            At::Settled(_) | At::Concluding => return None,
            At::Pending(pending) => (pending.since, self.now.mono),
            At::Running(run) => (run.waited_since, run.begun),
        };
        let long = self.slots[slot].is_live() && until.since(since) >= self.timed_patience(slot);
        long.then_some((slot, since, until))
    }

    /// When something other than a timed request last came for a resource or anything above it.
    fn disturbed_above(&mut self, slot: Slot, known: &mut HashMap<Slot, Mono, QuickHash>) -> Mono {
        let start = self.rep(slot);
        let mut open = vec![(start, false)];
        while let Some((rep, ready)) = open.pop() {
            if known.contains_key(&rep) {
                continue;
            }
            let members: Vec<Slot> = (0..).map_while(|index| self.member(rep, index)).collect();
            let own = members.iter().map(|member| self.slots[*member].disturbed).max();
            let above: Vec<Slot> = members
                .iter()
                .flat_map(|member| self.parents(*member))
                .map(|parent| self.rep(parent))
                .filter(|above| *above != rep)
                .collect();
            if ready {
                let above = above.iter().filter_map(|above| known.get(above).copied());
                let latest = above.chain(own).max().unwrap_or_default();
                known.insert(rep, latest);
            } else {
                self.counters.nodes += 1;
                self.counters.edges += above.len() as u64;
                open.push((rep, true));
                open.extend(above.into_iter().map(|above| (above, false)));
            }
        }
        known[&start]
    }
}
