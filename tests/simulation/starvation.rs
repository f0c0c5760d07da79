//! C17 as the naive reference sees it: which timed requests are deferred, and what the others cancel.

use std::time::Duration;

use watershed_core::{Mono, OnTimedAncestor, Phase, Uid};

use crate::world::Simulation;

/// The time that a timed request is deferred before it asks again.
pub(crate) const DEFERRED_FOR: Duration = Duration::from_secs(1);

impl Simulation {
    /// Returns the time at which a timed request for this resource asks again, because something below has been kept
    /// waiting for too long by timed requests alone and has not completed since.
    pub(crate) fn deferred_to(&mut self, uid: Uid) -> Option<Mono> {
        let starved =
            |other: &&Uid| self.catalog.ancestors(**other).contains(&uid) && self.is_starved(**other);
        let other = self.past.keys().find(starved)?;
        let (key, other) = (&self.catalog.items[&uid].key, &self.catalog.items[other].key);
        self.trace.push(format!("    {key} is deferred for {other}"));
        Some(self.now.mono.after(DEFERRED_FOR))
    }

    pub(crate) fn is_starved(&self, uid: Uid) -> bool {
        let (Some(options), true) = (self.options(uid), self.catalog.is_live(uid)) else {
            return false;
        };
        let Some(since) = self.past.get(&uid).and_then(|past| past.waiting_since) else {
            return false;
        };
        let until = self.run_of(uid).map_or(self.now.mono, |run| run.begun);
        if until.since(since) < options.timed_patience {
            return false;
        }
        let mut family = self.catalog.ancestors(uid);
        family.insert(uid);
        let disturbed = family.iter().filter_map(|uid| self.past.get(uid));
        let disturbed = disturbed.map(|past| past.disturbed).max().unwrap_or_default();
        until.since(since.max(disturbed)) >= options.timed_patience
    }

    /// After an input: who has waited since when. Whatever settled has nothing to wait for.
    pub(crate) fn note_waiting(&mut self) {
        let now = self.now.mono;
        let all: Vec<Uid> = self.catalog.items.keys().copied().collect();
        for uid in all {
            let waits = self.catalog.is_live(uid) && self.is_unsettled(uid);
            let past = self.past(uid);
            past.waiting_since = past.waiting_since.or(Some(now)).filter(|_| waits);
        }
    }

    /// A request that is none of the timed ones came for it.
    pub(crate) fn note_disturbed(&mut self, uid: Uid) {
        let now = self.now.mono;
        self.past(uid).disturbed = now;
    }

    /// A timed request for this resource counts, unless it is deferred: then until when.
    pub(crate) fn timed_counts(&mut self, uid: Uid) -> Option<Mono> {
        let later = self.deferred_to(uid);
        if later.is_none() {
            self.must_unsettle.insert(uid);
            self.note_timed(uid);
        }
        later
    }

    /// A timed request cancels running descendants of kinds that say so.
    pub(crate) fn note_timed(&mut self, uid: Uid) {
        self.note_asked(uid);
        let below = self.catalog.descendants(uid);
        let consents = |uid: &Uid| {
            let options = self.options(*uid);
            options.is_some_and(|options| options.on_timed_ancestor == OnTimedAncestor::Cancel)
        };
        let regular = |uid: &Uid| self.run_of(*uid).is_some_and(|run| run.phase == Phase::Reconcile);
        let below = below.into_iter().filter(|other| *other != uid);
        let below: Vec<Uid> = below.filter(|uid| consents(uid) && regular(uid)).collect();
        self.must_cancel.extend(below.iter().copied());
        self.may_cancel.extend(below);
    }
}
