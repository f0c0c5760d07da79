//! Progress under steady change (C17): timed requests that never cease keep nobody from completing.
//!
//! Two bounds. A resource two of whose invocations were cancelled by timed requests is *spared*: no timed request
//! cancels its next one. A resource that timed requests alone have kept waiting for its kind's `timed_patience` is
//! *starved*: until it has completed once, timed requests of its ancestors are put off. Nothing is put off for good:
//! what is due is looked at again after [`PUT_OFF`].
//!
//! Who is starved is only worked out when a timed request comes, something has been unsettled for long enough, and the
//! last look is [`Limits::progress_slack`](crate::Limits::progress_slack) old. So it costs nothing where all settles
//! in time, and else one pass over the graph a second at most, whatever the number of timed requests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::QuickHash;
use crate::core::Core;
use crate::resource::{Slot, Stage};
use crate::{Mono, Uid};

/// So many invocations of a resource in a row may timed requests cancel.
pub(crate) const TIMED_CANCELS_MAX: u8 = 2;
/// How long a timed request is put off before it is looked at again.
pub(crate) const PUT_OFF: Duration = Duration::from_secs(1);

/// What the last look found.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Progress {
    /// Since when something has been unsettled without a break.
    restless_since: Mono,
    looked: Option<Mono>,
    /// The ancestors of what is starved. By uid, for a slot may be used again.
    above_starved: HashSet<Uid, QuickHash>,
}

impl Progress {
    /// Nothing was unsettled, and something is.
    pub(crate) fn restless(&mut self, now: Mono) {
        self.restless_since = now;
        self.looked = None;
        self.above_starved.clear();
    }
}

impl Core {
    /// When a timed request for this resource is to be looked at again, if it may not be taken up now.
    pub(crate) fn put_off(&mut self, slot: Slot) -> Option<Mono> {
        let now = self.now.mono;
        let restless = now.since(self.progress.restless_since);
        if self.unsettled == 0 || restless < self.kinds.least_timed_patience() {
            return None;
        }
        let slack = self.limits.progress_slack;
        let looked = self.progress.looked;
        if looked.is_none_or(|looked| now.since(looked) >= slack) {
            self.look_for_starved();
        }
        let uid = self.slots[slot].row.uid;
        let blocked = self.progress.above_starved.contains(&uid);
        blocked.then(|| now.after(PUT_OFF))
    }

    fn look_for_starved(&mut self) {
        let mut disturbed = HashMap::default();
        let waiting = self.slots.iter().filter_map(|(slot, _)| self.long_waiting(slot));
        let waiting: Vec<(Slot, Mono, Mono)> = waiting.collect();
        self.progress.looked = Some(self.now.mono);
        self.progress.above_starved.clear();
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
                if self.progress.above_starved.insert(uid) {
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

    /// From when until when it has waited, if that is long enough to be starved. It is still counted while the
    /// invocation runs that came of it.
    fn long_waiting(&self, slot: Slot) -> Option<(Slot, Mono, Mono)> {
        let (since, until) = match &self.slots[slot].stage {
            Stage::Settled(_) => return None,
            Stage::Pending(pending) => (pending.since, self.now.mono),
            Stage::Running(run) => (run.waited_since, run.begun),
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

    /// Whether timed requests have cancelled enough invocations of this resource.
    pub(crate) fn is_spared(&self, slot: Slot) -> bool {
        self.slots[slot].timed_cancels >= TIMED_CANCELS_MAX
    }

    /// A timed request cancels what runs.
    pub(crate) fn cancel_by_time(&mut self, slot: Slot) {
        let resource = &mut self.slots[slot];
        resource.timed_cancels = resource.timed_cancels.saturating_add(1);
        self.cancel_run(slot, crate::resource::Cancelled::ToRunAgain);
    }
}
