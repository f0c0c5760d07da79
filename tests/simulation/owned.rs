//! Request 9 for owners, and readiness, as the naive reference has them.

use watershed_core::{Error, OnOwned, Outcome, Returned, Start, Uid};

use crate::world::{Check, Left, Run, Simulation, ensure};

impl Simulation {
    /// Whom to ask for what happens to a resource.
    fn owner_that_looks(&self, uid: Uid, exhausted: bool) -> Option<Uid> {
        let owner = self.catalog.items.get(&uid)?.owner;
        let owner = owner.filter(|owner| *owner != uid && self.catalog.is_live(*owner))?;
        let on_owned = self.options(owner)?.on_owned;
        (on_owned == OnOwned::Changed || (exhausted && on_owned == OnOwned::Exhausted)).then_some(owner)
    }

    /// The attempts of a resource are used up: its owner is asked, after all else has come of the run.
    pub(crate) fn note_exhausted(&mut self, uid: Uid) {
        if let Some(owner) = self.owner_that_looks(uid, true) {
            self.note_owner_asked(owner);
        }
    }

    fn note_owner_asked(&mut self, owner: Uid) {
        self.note_asked(owner);
        self.note_disturbed(owner);
        self.must_unsettle.insert(owner);
    }

    /// A resource with this owner leaves the catalog.
    pub(crate) fn note_leaves(&mut self, uid: Uid, owner: Option<Uid>) {
        let owner = owner.filter(|owner| *owner != uid && self.catalog.is_live(*owner));
        let looks = |owner: &Uid| {
            let options = self.options(*owner);
            options.is_some_and(|options| options.on_owned == OnOwned::Changed)
        };
        if let Some(owner) = owner.filter(looks) {
            self.note_owner_asked(owner);
        }
    }

    /// A reconcile completed: whether it is ready now, and what its owner is asked for.
    pub(crate) fn note_left(&mut self, run: &Run, (result, error): (&Returned, Option<&Error>)) {
        let unready = match result {
            Returned::Done(outcome) => outcome.unready.clone(),
            _ => None,
        };
        let left = Left {
            state_version: self.catalog.items[&run.uid].state_version,
            error: error.cloned(),
            unready,
        };
        let past = self.past(run.uid);
        let is_ready = left.error.is_none() && left.unready.is_none();
        past.ready_as = is_ready.then_some(run.spec_version);
        let before = past.left.replace(left.clone());
        let Some(owner) = self.owner_that_looks(run.uid, false) else {
            return;
        };
        if before != Some(left) {
            self.note_owner_asked(owner);
        }
    }

    /// The error of its last reconcile has gone for another reason: a cycle that is to be broken before the next one, a
    /// rename that is done.
    pub(crate) fn note_error_gone(&mut self, uid: Uid) {
        if let Some(left) = &mut self.past(uid).left {
            left.error = None;
        }
    }

    /// It is taken up again: what its last run left is shown no more.
    pub(crate) fn note_taken_up(&mut self, uid: Uid) {
        if let Some(left) = &mut self.past(uid).left {
            (left.error, left.unready) = (None, None);
        }
    }

    /// Returns true if its last completed run succeeded, left it ready and knew its present spec.
    pub(crate) fn was_left_ready(&self, uid: Uid) -> bool {
        let known = self.past.get(&uid).and_then(|past| past.ready_as);
        known == Some(self.catalog.items[&uid].spec_version)
    }

    /// An outcome that may leave its resource unready, and may ask for the time that is set already.
    pub(crate) fn looked_at(&mut self, uid: Uid, outcome: Outcome, draw: u32) -> Outcome {
        match draw % 4 {
            0 => outcome.unready("not yet"),
            1 => Outcome {
                retrigger: self.past(uid).requeue,
                ..Outcome::unchanged()
            },
            _ => outcome,
        }
    }

    /// An owner sees all that it owns, as it is.
    pub(crate) fn check_owned(&self, start: &Start) -> Check {
        let uid = start.resource.uid;
        let looks = self
            .options(uid)
            .is_some_and(|it| it.on_owned != OnOwned::Nothing);
        let seen = start.owned.iter().map(|view| {
            let row = &view.resource;
            (row.key(), row.uid, row.spec_version, row.state_version)
        });
        let seen: Vec<_> = seen.collect();
        let owned = self.catalog.items.iter();
        let owned = owned.filter(|(other, item)| looks && item.owner == Some(uid) && **other != uid);
        let owned = owned.map(|(uid, item)| (item.key.clone(), *uid, item.spec_version, item.state_version));
        let mut owned: Vec<_> = owned.collect();
        owned.sort();
        ensure(seen == owned, "snapshot", || {
            format!(
                "{} sees that it owns {seen:?}, not {owned:?}",
                start.resource.key()
            )
        })
    }
}
