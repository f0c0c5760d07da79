//! The gate: permission for units of work to use the file, shared or exclusively.
//!
//! Invariants:
//! 1. At most [`Options::connections`](super::Options::connections) units of work run at the same time, and among those
//!    [`Options::builds`](super::Options::builds) that make outputs: queries find room beside builds. A slot goes back when the
//!    thread is done, whatever became of the caller, or for good once the thread waits for whoever reads its rows.
//! 2. Who works holds the gate shared. Who must be alone (a checkpoint, a second try after a lack of memory, the
//!    opening anew after a fatal error, closing) holds it whole, so nobody's transaction is open then.
//! 3. Nobody enters a file that is broken before it was forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard};
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore};
use tokio_util::sync::CancellationToken;

use super::options::Options;
use crate::olap::{Failure, Hooks};
use crate::shares::{Share, Slot};

/// The mode of access: shared or exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    Others,
    Alone,
}

/// Permission to work, released when dropped.
pub(super) struct Pass {
    _held: Held,
    slot: Option<OwnedSemaphorePermit>,
}

impl Pass {
    /// Returns true until the slot is given back.
    pub(super) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Gives the slot back for good. It is not waited for again: who wants to be alone has a slot and waits for this pass.
    pub(super) fn give_slot_back(&mut self) {
        self.slot = None;
    }
}

/// Permission to build outputs beside other work, released when dropped.
pub(super) struct BuildTurn {
    _own: OwnedSemaphorePermit,
    /// The slot of the process; none if the engine is no part of a share.
    _slot: Option<Slot>,
}

/// Permission to run statements around a build, released when dropped.
pub(super) type HookTurn = OwnedMutexGuard<()>;

enum Held {
    Shared(#[expect(dead_code, reason = "held")] OwnedRwLockReadGuard<()>),
    Whole(#[expect(dead_code, reason = "held")] OwnedRwLockWriteGuard<()>),
}

/// The gate of an engine, through which all work passes.
pub(super) struct Gate {
    gate: Arc<RwLock<()>>,
    slots: Arc<Semaphore>,
    builders: Arc<Semaphore>,
    /// The share in the slots for builds of the whole process; none if only this engine's number is bounded.
    share: Option<Share>,
    hooks: Arc<Mutex<()>>,
    /// True after a fatal error, until the file is reopened.
    broken: AtomicBool,
}

impl Gate {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            gate: Arc::default(),
            slots: Arc::new(Semaphore::new(options.connections.get())),
            builders: Arc::new(Semaphore::new(options.builds.get())),
            share: options.share.clone(),
            hooks: Arc::default(),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits for permission to work. For a broken file, `forget` is called first, exclusively.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn enter(
        &self,
        cancel: &CancellationToken,
        company: Company,
        forget: impl Fn(),
    ) -> Result<Pass, Failure> {
        let pass = async {
            // The slot first: who waits for one must not hold up whoever wants to be alone.
            let slot = Arc::clone(&self.slots).acquire_owned().await;
            let slot = slot.map_err(|_| Failure::Closed)?;
            loop {
                let gate = Arc::clone(&self.gate);
                let held = match company {
                    Company::Others => Held::Shared(gate.read_owned().await),
                    Company::Alone => Held::Whole(gate.write_owned().await),
                };
                if !self.is_broken() {
                    return Ok(Pass {
                        _held: held,
                        slot: Some(slot),
                    });
                }
                drop(held);
                let _alone = self.gate.write().await;
                if self.broken.swap(false, Ordering::AcqRel) {
                    forget();
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            pass = pass => pass,
        }
    }

    /// Returns exclusive permission if no work runs at this moment.
    pub(super) fn enter_alone_now(&self) -> Option<Pass> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let held = Held::Whole(Arc::clone(&self.gate).try_write_owned().ok()?);
        (!self.is_broken()).then_some(Pass {
            _held: held,
            slot: Some(slot),
        })
    }

    /// Waits until all work has ended, and keeps new work out.
    pub(super) async fn shut(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    /// Waits for a slot for building outputs.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn enter_to_build(&self, cancel: &CancellationToken) -> Result<BuildTurn, Failure> {
        let turn = async {
            let own = Arc::clone(&self.builders).acquire_owned().await;
            let own = own.map_err(|_| Failure::Closed)?;
            let slot = match &self.share {
                Some(share) => Some(share.take().await),
                None => None,
            };
            Ok(BuildTurn {
                _own: own,
                _slot: slot,
            })
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            turn = turn => turn,
        }
    }

    /// Waits until no other build runs statements around it. A build without such statements doesn't wait.
    pub(super) async fn turn_of(
        &self,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Option<HookTurn>, Failure> {
        if hooks.is_empty() {
            return Ok(None);
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            turn = Arc::clone(&self.hooks).lock_owned() => Ok(Some(turn)),
        }
    }

    /// Keeps all work out until the file is reopened.
    pub(super) fn declare_broken(&self) {
        self.broken.store(true, Ordering::Release);
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::AtomicUsize;

    use futures::FutureExt as _;

    use super::*;
    use crate::shares::Slots;

    fn gate(connections: usize, builds: usize) -> Gate {
        let mut options = Options::new("none", ".");
        options.connections = NonZeroUsize::new(connections).unwrap();
        options.builds = NonZeroUsize::new(builds).unwrap();
        Gate::new(&options)
    }

    /// Returns permission to work if it is available at once.
    fn enter(gate: &Gate, company: Company) -> Option<Pass> {
        let cancel = CancellationToken::new();
        let entered = gate.enter(&cancel, company, || {});
        entered.now_or_never().map(Result::unwrap)
    }

    #[test]
    fn as_many_work_as_there_are_slots_and_one_alone() {
        let gate = gate(2, 1);
        let first = enter(&gate, Company::Others).unwrap();
        let second = enter(&gate, Company::Others).unwrap();
        assert!(enter(&gate, Company::Others).is_none(), "there are two slots");
        drop(second);
        let mut stalled = enter(&gate, Company::Others).unwrap();
        stalled.give_slot_back();
        assert!(
            enter(&gate, Company::Others).is_some(),
            "one waits for its reader"
        );
        drop(stalled);
        assert!(enter(&gate, Company::Alone).is_none() && gate.enter_alone_now().is_none());
        drop(first);
        let alone = enter(&gate, Company::Alone).unwrap();
        assert!(enter(&gate, Company::Others).is_none());
        drop(alone);
        assert!(gate.enter_alone_now().is_some());
    }

    #[test]
    fn builds_leave_room_for_other_work() {
        let gate = gate(3, 2);
        let cancel = CancellationToken::new();
        let turn = || gate.enter_to_build(&cancel).now_or_never().map(Result::unwrap);
        let (_first, _second) = (turn().unwrap(), turn().unwrap());
        assert!(turn().is_none(), "two builds are at work");
        assert!(enter(&gate, Company::Others).is_some());
    }

    #[test]
    fn engines_of_one_process_build_as_many_outputs_as_it_has_slots() {
        let slots = Slots::new(NonZeroUsize::new(2).unwrap());
        let gates = [1, 1].map(|weight| {
            let mut options = Options::new("none", ".");
            options.share = Some(slots.share(weight.try_into().unwrap()));
            Gate::new(&options)
        });
        let cancel = CancellationToken::new();
        let turn = |gate: usize| {
            let entered = gates[gate].enter_to_build(&cancel).now_or_never();
            entered.map(Result::unwrap)
        };
        let (_first, second) = (turn(0).unwrap(), turn(0).unwrap());
        assert!(
            turn(0).is_none() && turn(1).is_none(),
            "the process has two slots"
        );
        drop(second);
        assert!(turn(1).is_some());
        let gone = CancellationToken::new();
        gone.cancel();
        let refused = gates[1].enter_to_build(&gone).now_or_never();
        assert!(matches!(refused, Some(Err(Failure::Interrupted))));
        assert!(turn(1).is_some(), "whoever was interrupted holds nothing");
    }

    #[test]
    fn a_broken_file_is_forgotten_once_before_anybody_enters() {
        let (gate, forgotten, cancel) = (gate(2, 1), AtomicUsize::new(0), CancellationToken::new());
        gate.declare_broken();
        assert!(gate.enter_alone_now().is_none());
        let forget = || {
            forgotten.fetch_add(1, Ordering::Relaxed);
        };
        for _ in 0..2 {
            let pass = gate.enter(&cancel, Company::Others, forget).now_or_never();
            assert!(pass.unwrap().is_ok());
        }
        assert_eq!(forgotten.into_inner(), 1);
    }

    #[test]
    fn builds_with_statements_around_them_take_turns() {
        let (gate, cancel) = (gate(3, 3), CancellationToken::new());
        let mut hooks = Hooks::default();
        let turn = |hooks: &Hooks| gate.turn_of(hooks, &cancel).now_or_never().map(Result::unwrap);
        assert!(turn(&hooks).unwrap().is_none());
        hooks.before.push("SET x = 1".to_owned());
        let first = turn(&hooks).unwrap();
        assert!(first.is_some() && turn(&hooks).is_none());
        drop(first);
        assert!(turn(&hooks).is_some());
    }
}
