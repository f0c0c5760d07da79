//! C17 as the naive reference sees it: whom timed requests may still cancel, and which of them are put off.

use std::time::Duration;

use watershed_core::{Mono, OnTimedAncestor, Phase, Uid};

use crate::world::{Run, World};

/// How long a timed request is put off before it is looked at again.
pub(crate) const PUT_OFF: Duration = Duration::from_secs(1);

impl World {
    /// When a timed request for this resource is looked at again, because something below has been kept waiting for
    /// too long by timed requests alone and has not completed since.
    pub(crate) fn put_off(&mut self, uid: Uid) -> Option<Mono> {
        let starved =
            |other: &&Uid| self.catalog.ancestors(**other).contains(&uid) && self.is_starved(**other);
        let other = self.past.keys().find(starved)?;
        let (key, other) = (&self.catalog.items[&uid].key, &self.catalog.items[other].key);
        self.trace.push(format!("    {key} is put off for {other}"));
        Some(self.now.mono.after(PUT_OFF))
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

    /// A timed request for this resource counts, unless it is put off: then until when.
    pub(crate) fn timed_counts(&mut self, uid: Uid) -> Option<Mono> {
        let later = self.put_off(uid);
        if later.is_none() {
            self.must_unsettle.insert(uid);
            self.note_timed(uid);
        }
        later
    }

    /// Timed requests: descendants are cancelled as their kind says, unless they were often enough.
    pub(crate) fn note_timed(&mut self, uid: Uid) {
        self.note_asked(uid);
        let below = self.catalog.descendants(uid);
        for uid in below.into_iter().filter(|other| *other != uid) {
            let regular = |run: &Run| run.uid == uid && run.phase == Phase::Reconcile && !run.cancelled;
            let Some(wait) = self.options(uid).map(|options| options.on_timed_ancestor) else {
                continue;
            };
            let (least, most) = self.past(uid).timed_cancels;
            let now = self.now.mono;
            let Some(run) = self.running.values_mut().find(|run| regular(run)) else {
                continue;
            };
            if least >= 2 {
                continue;
            }
            match wait {
                OnTimedAncestor::Cancel => {
                    self.by_time.insert(uid);
                    self.may_cancel.insert(uid);
                    if most < 2 {
                        self.must_cancel.insert(uid);
                    }
                }
                OnTimedAncestor::Finish(_) if most >= 2 => run.may_linger = true,
                OnTimedAncestor::Finish(wait) => {
                    run.finish_by.get_or_insert(now.after(wait));
                }
            }
        }
    }

    /// Invocations that were let go on have had their time.
    pub(crate) fn finishing_ends(&mut self) {
        let mono = self.now.mono;
        let late = |run: &&Run| !run.cancelled && run.finish_by.is_some_and(|by| by <= mono);
        let late: Vec<Uid> = self.running.values().filter(late).map(|run| run.uid).collect();
        self.must_cancel.extend(late.iter().copied());
        self.may_cancel.extend(late.iter().copied());
        self.by_time.extend(late);
        let lingers = self.running.values().filter(|run| run.may_linger);
        let lingers: Vec<Uid> = lingers.map(|run| run.uid).collect();
        self.may_cancel.extend(lingers.iter().copied());
        self.by_time.extend(lingers);
    }

    /// An invocation was cancelled: it counts if a timed request did that, and may count if both came at once.
    pub(crate) fn count_timed_cancel(&mut self, uid: Uid) {
        let (by_time, by_other) = (self.by_time.contains(&uid), self.by_other.contains(&uid));
        let (least, most) = &mut self.past(uid).timed_cancels;
        *least += u32::from(by_time && !by_other);
        *most += u32::from(by_time);
    }
}
