//! Where the host rests between turns, so that whoever has something for it can make a turn on the spot.
//!
//! A call that had to wake the loop's task for its answer would cost two switches of tasks and often one of threads,
//! which is more than most turns take. So who has something for the host leaves it there, takes the helm if that is
//! free, makes a turn and goes on. The loop's own task is the pilot: it makes the turns that nobody comes by for.
//!
//! Invariants:
//! 1. One at a time has the helm.
//! 2. Whoever finds it taken is not forgotten: who has it hears of that, and makes another turn or wakes the pilot.
//! 3. A pilot who wants the helm is the next to get it, whoever else comes by.
//! 4. Without a pilot nothing is at the helm, and what is brought back is dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{Mutex, MutexGuard, Notify, Unpoisoned};

/// The most visits of somebody who came by and is told each time that others did; the pilot makes the rest.
const VISITS: usize = 4;

/// A panic, as it was caught.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The helm of one controller.
#[derive(Debug)]
pub(crate) struct Helm<T> {
    state: Mutex<State<T>>,
    /// For the pilot alone.
    bell: Notify,
}

#[derive(Debug)]
struct State<T> {
    place: Place<T>,
    last: Visit,
}

#[derive(Debug)]
enum Place<T> {
    /// There is no pilot.
    Vacant,
    Free(T),
    /// For the pilot alone.
    Kept(T),
    Taken {
        /// Somebody has come by since.
        called: bool,
        /// The pilot waits for it.
        wanted: bool,
    },
    /// A turn has panicked, and the host is lost.
    Broken(Panic),
}

/// Who comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// One who waits for an answer, and often comes back with the next call when it is there.
    Caller,
    Worker,
}

/// One time that somebody came by and took the helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    number: u64,
    pub(crate) by: Visitor,
}

/// What a visitor says after its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// There is nothing to do until something comes.
    AtRest,
    /// The pilot has to go on.
    ToPilot,
}

impl<T> Place<T> {
    const TAKEN: Self = Place::Taken {
        called: false,
        wanted: false,
    };
}

impl<T> Helm<T> {
    pub(crate) fn new() -> Self {
        let last = Visit {
            number: 0,
            by: Visitor::Worker,
        };
        Self {
            state: Mutex::new(State {
                place: Place::Vacant,
                last,
            }),
            bell: Notify::new(),
        }
    }

    /// Has the host take what was left for it: makes turns here and now if nobody else does. A turn that panics takes the
    /// host with it, which is the pilot's to deal with.
    pub(crate) fn come_by(&self, by: Visitor, mut make_turns: impl FnMut(&mut T) -> Left) {
        let Some(mut host) = self.take(by) else { return };
        for _ in 0..VISITS {
            match catch_unwind(AssertUnwindSafe(|| make_turns(&mut host))) {
                Ok(Left::AtRest) => {}
                Ok(Left::ToPilot) => break,
                Err(panic) => {
                    drop(host);
                    return self.break_with(panic);
                }
            }
            match self.put(host) {
                None => return,
                Some(back) => host = back,
            }
        }
        self.bring(self.lock(), host, true);
    }

    /// Tells the host that something was left for it, without making a turn.
    pub(crate) fn ring(&self) {
        match &mut self.lock().place {
            Place::Free(_) => {}
            Place::Taken { called, .. } => {
                *called = true;
                return;
            }
            Place::Vacant | Place::Kept(_) | Place::Broken(_) => return,
        }
        self.bell.notify_one();
    }

    /// The last time that somebody came by and took the helm.
    pub(crate) fn last_visit(&self) -> Visit {
        self.lock().last
    }

    /// The pilot begins, with the host in its hands; the helm is vacant again when this is dropped.
    pub(crate) fn pilot(&self) -> Pilot<'_, T> {
        self.lock().place = Place::TAKEN;
        Pilot { helm: self }
    }

    fn take(&self, by: Visitor) -> Option<T> {
        let mut state = self.lock();
        match std::mem::replace(&mut state.place, Place::TAKEN) {
            Place::Free(host) => {
                let number = state.last.number + 1;
                state.last = Visit { number, by };
                Some(host)
            }
            Place::Taken { wanted, .. } => {
                let called = true;
                state.place = Place::Taken { called, wanted };
                None
            }
            // The pilot is about to look.
            other => {
                state.place = other;
                None
            }
        }
    }

    /// Brings the host back, unless somebody came by meanwhile: then it is given back for another turn.
    fn put(&self, host: T) -> Option<T> {
        let mut state = self.lock();
        if let Place::Taken {
            called: called @ true,
            wanted: false,
        } = &mut state.place
        {
            *called = false;
            return Some(host);
        }
        self.bring(state, host, false);
        None
    }

    fn bring(&self, mut state: MutexGuard<'_, State<T>>, host: T, to_pilot: bool) {
        let Place::Taken { wanted, .. } = state.place else {
            // The pilot has gone; what is dropped here may take a while.
            drop(state);
            return drop(host);
        };
        let to_pilot = to_pilot || wanted;
        state.place = if to_pilot {
            Place::Kept(host)
        } else {
            Place::Free(host)
        };
        drop(state);
        if to_pilot {
            self.bell.notify_one();
        }
    }

    fn break_with(&self, panic: Panic) {
        let mut state = self.lock();
        if matches!(state.place, Place::Taken { .. }) {
            state.place = Place::Broken(panic);
        }
        drop(state);
        self.bell.notify_one();
    }

    /// A panic elsewhere leaves the state whole.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unpoisoned()
    }
}

/// The side of the loop's own task.
#[derive(Debug)]
pub(crate) struct Pilot<'a, T> {
    helm: &'a Helm<T>,
}

impl<T> Pilot<'_, T> {
    /// Lets the host rest, unless somebody came by meanwhile: then it is given back for another turn.
    pub(crate) fn rest(&self, host: T) -> Option<T> {
        self.helm.put(host)
    }

    /// Waits until the helm should be taken again.
    ///
    /// Cancel-safe: a bell that nobody heard is heard by the next who waits.
    pub(crate) async fn rung(&self) {
        self.helm.bell.notified().await;
    }

    /// Takes the helm, from whoever has it now.
    ///
    /// Cancel-safe: what is kept for the pilot stays until it is taken.
    ///
    /// # Errors
    /// The panic of the turn in which the host was lost.
    pub(crate) async fn take(&self) -> Result<T, Panic> {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            self.rung().await;
        }
    }

    fn try_take(&self) -> Option<Result<T, Panic>> {
        let place = &mut self.helm.lock().place;
        match std::mem::replace(place, Place::TAKEN) {
            Place::Free(host) | Place::Kept(host) => Some(Ok(host)),
            Place::Broken(panic) => Some(Err(panic)),
            Place::Taken { called, .. } => {
                let wanted = true;
                *place = Place::Taken { called, wanted };
                None
            }
            Place::Vacant => unreachable!("there is a pilot"),
        }
    }
}

impl<T> Drop for Pilot<'_, T> {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut self.helm.lock().place, Place::Vacant);
        drop(left);
    }
}

#[cfg(all(test, not(interleavings)))]
mod tests {
    use super::*;

    /// Counts its turns.
    fn turn(host: &mut u32) -> Left {
        *host += 1;
        Left::AtRest
    }

    #[tokio::test]
    async fn who_comes_by_makes_a_turn_while_the_host_rests_and_leaves_it_to_who_has_it() {
        let helm = Helm::new();
        helm.come_by(Visitor::Caller, |_: &mut u32| unreachable!("there is no pilot"));
        let pilot = helm.pilot();
        helm.come_by(Visitor::Caller, |_| unreachable!("the pilot has it"));
        let host = pilot.rest(0).expect("somebody came by");
        assert_eq!(pilot.rest(host), None);
        let before = helm.last_visit();
        helm.come_by(Visitor::Caller, turn);
        helm.come_by(Visitor::Worker, turn);
        assert_ne!(helm.last_visit(), before);
        assert_eq!(helm.last_visit().by, Visitor::Worker);
        assert_eq!(pilot.take().await.ok(), Some(2));
    }

    #[tokio::test]
    async fn who_has_it_makes_turns_for_others_and_leaves_the_rest_to_the_pilot() {
        let helm = Helm::new();
        let pilot = helm.pilot();
        assert_eq!(pilot.rest(0), None);
        helm.come_by(Visitor::Caller, |host| {
            helm.come_by(Visitor::Worker, |_| unreachable!("it is taken"));
            turn(host)
        });
        helm.come_by(Visitor::Caller, |_| unreachable!("it is kept for the pilot"));
        pilot.rung().await;
        let host = pilot.take().await.expect("it is whole");
        assert_eq!(host, VISITS as u32);
        assert_eq!(pilot.rest(host), None);
        helm.come_by(Visitor::Caller, |_| Left::ToPilot);
        pilot.rung().await;
        assert_eq!(pilot.take().await.ok(), Some(host));
    }

    #[tokio::test]
    async fn a_panic_in_a_turn_is_the_pilots() {
        let helm = Helm::new();
        let pilot = helm.pilot();
        assert_eq!(pilot.rest(0), None);
        helm.come_by(Visitor::Caller, |_| panic!("a bug"));
        let panic = pilot.take().await.expect_err("the host is lost");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        helm.come_by(Visitor::Caller, |_| unreachable!("nothing is there any more"));
    }

    #[tokio::test]
    async fn nothing_stays_at_a_helm_without_a_pilot() {
        let helm = Helm::new();
        let host = std::sync::Arc::new(());
        let weak = std::sync::Arc::downgrade(&host);
        let pilot = helm.pilot();
        assert!(pilot.rest(host).is_none());
        drop(pilot);
        assert!(weak.upgrade().is_none());
        let host = std::sync::Arc::new(());
        let weak = std::sync::Arc::downgrade(&host);
        let mut pilot = Some(helm.pilot());
        assert!(pilot.as_ref().is_some_and(|pilot| pilot.rest(host).is_none()));
        helm.come_by(Visitor::Caller, |_| {
            pilot = None;
            Left::AtRest
        });
        assert!(weak.upgrade().is_none(), "it was brought back to nobody");
    }
}
