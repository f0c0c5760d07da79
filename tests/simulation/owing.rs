//! The bound on work: how often a resource may be invoked for what was asked.
//!
//! A request for a resource makes it and all below it pending, and each of them is *owed* one reconcile for it, however
//! many requests come before that starts. One that was cancelled, or stood settled without having run (paused, on a cycle,
//! without a ref or a name, behind an abandoned one, stopped by a caller), is owed it still. Nothing else is owed. So a
//! resource has at most one reconcile for each request for it or something above it, and one more for each cancel.
//!
//! It is checked at each start, not only at rest: a superfluous one is found where it happens.

use watershed_core::{Settled, Stage, Uid};

use crate::world::{Check, Simulation, ensure};

impl Simulation {
    /// Something asks for this resource, and so for what is below it now; an edit may move that away before it starts.
    pub(crate) fn owe(&mut self, uid: Uid) {
        self.asks += 1;
        let asks = self.asks;
        for uid in self.catalog.descendants(uid).into_iter().chain([uid]) {
            self.past(uid).asked_as = asks;
        }
    }

    /// It keeps what it was owed: it did not run for it, or was stopped.
    pub(crate) fn owe_still(&mut self, uid: Uid) {
        self.past(uid).owed_still = true;
    }

    /// A resource that settles otherwise than by a completed run keeps what it was owed, and when it is asked for again,
    /// because it may run now, so is what is below it.
    pub(crate) fn note_stage(&mut self, uid: Uid, stage: &Stage) {
        let has_run = |why: &Settled| matches!(why, Settled::Idle | Settled::Failed | Settled::Retrying);
        match stage {
            Stage::Settled(why) if !has_run(why) => self.owe_still(uid),
            Stage::Settled(_) => {}
            _ => self.owe_below(uid),
        }
    }

    fn owe_below(&mut self, uid: Uid) {
        if self.past(uid).owed_still {
            self.owe(uid);
        }
    }

    /// A reconcile starts: for something that came since the last one began.
    pub(crate) fn take_what_is_owed(&mut self, uid: Uid) -> Check {
        self.owe_below(uid);
        let mut family = self.catalog.ancestors(uid);
        family.insert(uid);
        let asked = family.iter().filter_map(|uid| self.past.get(uid));
        let asked = asked.map(|past| past.asked_as).max().unwrap_or_default();
        let asks = self.asks;
        let past = self.past(uid);
        let is_owed = asked > past.served_to;
        (past.served_to, past.owed_still) = (asks, false);
        ensure(is_owed, "bound", || {
            format!(
                "{} runs once more than it was asked to: {:?}",
                self.catalog.items[&uid].key,
                self.past.get(&uid)
            )
        })
    }
}
