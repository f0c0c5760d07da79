//! Flat combining: a caller or worker with an input for the host runs a turn in its own task if the host is idle.
//!
//! A call that had to wake the loop's own task for its answer would cost two switches of tasks and often one of threads,
//! which is more than most turns take. So a caller leaves its input in a queue, borrows the host if that is idle, runs a
//! turn and returns it. The loop's own task is the driver: it runs the turns for which nobody has borrowed the host.
//!
//! Invariants:
//! 1. One task at a time has the host.
//! 2. A request while the host is busy is not lost: the task that has it runs another turn or wakes the driver.
//! 3. A driver that waits for the host is the next to get it, whatever other requests come.
//! 4. Without a driver there is no host here, and one that is returned is dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{Mutex, MutexGuard, Notify, Unpoisoned};

/// The most runs of one loan, each for requests that came during the one before; the driver makes the rest.
const LENT_RUNS: usize = 4;

/// A panic, as it was caught.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The holder of one controller's host between turns.
#[derive(Debug)]
pub(crate) struct Combiner<T> {
    state: Mutex<State<T>>,
    /// Wakes the driver.
    wake_up: Notify,
}

#[derive(Debug)]
struct State<T> {
    host_state: HostState<T>,
    last_loan: Loan,
}

#[derive(Debug)]
enum HostState<T> {
    /// There is no driver.
    Detached,
    Idle(T),
    /// For the driver alone.
    Reserved(T),
    Busy {
        /// There was a request since.
        requested: bool,
        /// The driver waits for it.
        wanted: bool,
    },
    /// A turn has panicked, and the host is lost.
    Poisoned(Panic),
}

/// A host that callers and workers may borrow.
pub(crate) trait Lend: Any + Send {
    /// Runs turns in the borrower's task.
    fn run_lent_turns(&mut self) -> AfterLoan;
}

/// The borrower of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LentTo {
    /// A caller that waits for an answer, and often makes its next call once it has that.
    Caller,
    /// A worker that has run invocations.
    Worker,
}

/// One loan of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loan {
    number: u64,
    pub(crate) to: LentTo,
}

/// The state of the host after the turns of a loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLoan {
    /// There is nothing to do until something comes.
    Idle,
    /// The driver has to go on.
    NeedsDriver,
}

impl<T> HostState<T> {
    const BUSY: Self = HostState::Busy {
        requested: false,
        wanted: false,
    };
}

impl<T> Combiner<T> {
    pub(crate) fn new() -> Self {
        let last_loan = Loan {
            number: 0,
            to: LentTo::Worker,
        };
        Self {
            state: Mutex::new(State {
                host_state: HostState::Detached,
                last_loan,
            }),
            wake_up: Notify::new(),
        }
    }

    /// Runs turns here if the host is idle; if it is busy, has its borrower run another. A turn that panics takes the host
    /// with it; the driver gets the panic.
    pub(crate) fn run_or_wake(&self, to: LentTo, mut run_turns: impl FnMut(&mut T) -> AfterLoan) {
        let Some(mut host) = self.take(to) else { return };
        for _ in 0..LENT_RUNS {
            match catch_unwind(AssertUnwindSafe(|| run_turns(&mut host))) {
                Ok(AfterLoan::Idle) => {}
                Ok(AfterLoan::NeedsDriver) => break,
                Err(panic) => {
                    drop(host);
                    return self.poison(panic);
                }
            }
            match self.put_back(host) {
                None => return,
                Some(back) => host = back,
            }
        }
        self.hand_back(self.lock(), host, true);
    }

    /// Requests a turn without running one here.
    pub(crate) fn wake(&self) {
        match &mut self.lock().host_state {
            HostState::Idle(_) => {}
            HostState::Busy { requested, .. } => {
                *requested = true;
                return;
            }
            HostState::Detached | HostState::Reserved(_) | HostState::Poisoned(_) => return,
        }
        self.wake_up.notify_one();
    }

    /// Returns the last loan.
    pub(crate) fn last_loan(&self) -> Loan {
        self.lock().last_loan
    }

    /// Begins as the driver, which has the host. Dropping the driver detaches the combiner.
    pub(crate) fn driver(&self) -> Driver<'_, T> {
        self.lock().host_state = HostState::BUSY;
        Driver { combiner: self }
    }

    fn take(&self, to: LentTo) -> Option<T> {
        let mut state = self.lock();
        match std::mem::replace(&mut state.host_state, HostState::BUSY) {
            HostState::Idle(host) => {
                let number = state.last_loan.number + 1;
                state.last_loan = Loan { number, to };
                Some(host)
            }
            HostState::Busy { wanted, .. } => {
                let requested = true;
                state.host_state = HostState::Busy { requested, wanted };
                None
            }
            // The driver is about to look.
            other => {
                state.host_state = other;
                None
            }
        }
    }

    /// Returns the host, unless there was a request meanwhile: then it is given back for another turn.
    fn put_back(&self, host: T) -> Option<T> {
        let mut state = self.lock();
        if let HostState::Busy {
            requested: requested @ true,
            wanted: false,
        } = &mut state.host_state
        {
            *requested = false;
            return Some(host);
        }
        self.hand_back(state, host, false);
        None
    }

    fn hand_back(&self, mut state: MutexGuard<'_, State<T>>, host: T, to_driver: bool) {
        let HostState::Busy { wanted, .. } = state.host_state else {
            // The driver has gone; what is dropped here may take a while.
            drop(state);
            return drop(host);
        };
        let to_driver = to_driver || wanted;
        state.host_state = if to_driver {
            HostState::Reserved(host)
        } else {
            HostState::Idle(host)
        };
        drop(state);
        if to_driver {
            self.wake_up.notify_one();
        }
    }

    fn poison(&self, panic: Panic) {
        let mut state = self.lock();
        if matches!(state.host_state, HostState::Busy { .. }) {
            state.host_state = HostState::Poisoned(panic);
        }
        drop(state);
        self.wake_up.notify_one();
    }

    /// A panic elsewhere leaves the state whole.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unpoisoned()
    }
}

/// The driver's side.
#[derive(Debug)]
pub(crate) struct Driver<'a, T> {
    combiner: &'a Combiner<T>,
}

impl<T> Driver<'_, T> {
    /// Leaves the host idle, unless there was a request meanwhile: then it is given back for another turn.
    pub(crate) fn rest(&self, host: T) -> Option<T> {
        self.combiner.put_back(host)
    }

    /// Waits until the driver should take the host again.
    ///
    /// Cancel-safe: a wake-up without a waiter is kept for the next one.
    pub(crate) async fn woken(&self) {
        self.combiner.wake_up.notified().await;
    }

    /// Takes the host, as soon as its borrower returns it.
    ///
    /// Cancel-safe: a host that is reserved for the driver stays until it is taken.
    ///
    /// # Errors
    /// The panic of the turn in which the host was lost.
    pub(crate) async fn take(&self) -> Result<T, Panic> {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            self.woken().await;
        }
    }

    fn try_take(&self) -> Option<Result<T, Panic>> {
        let host_state = &mut self.combiner.lock().host_state;
        match std::mem::replace(host_state, HostState::BUSY) {
            HostState::Idle(host) | HostState::Reserved(host) => Some(Ok(host)),
            HostState::Poisoned(panic) => Some(Err(panic)),
            HostState::Busy { requested, .. } => {
                let wanted = true;
                *host_state = HostState::Busy { requested, wanted };
                None
            }
            HostState::Detached => unreachable!("there is a driver"),
        }
    }
}

impl<T> Drop for Driver<'_, T> {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut self.combiner.lock().host_state, HostState::Detached);
        drop(left);
    }
}

#[cfg(all(test, not(interleavings)))]
mod tests {
    use super::*;

    /// Counts its turns.
    fn turn(host: &mut u32) -> AfterLoan {
        *host += 1;
        AfterLoan::Idle
    }

    #[tokio::test]
    async fn a_borrower_runs_a_turn_if_the_host_is_idle_and_requests_one_if_it_is_busy() {
        let combiner = Combiner::new();
        combiner.run_or_wake(LentTo::Caller, |_: &mut u32| unreachable!("there is no driver"));
        let driver = combiner.driver();
        combiner.run_or_wake(LentTo::Caller, |_| unreachable!("the driver has it"));
        let host = driver.rest(0).expect("there was a request");
        assert_eq!(driver.rest(host), None);
        let before = combiner.last_loan();
        combiner.run_or_wake(LentTo::Caller, turn);
        combiner.run_or_wake(LentTo::Worker, turn);
        assert_ne!(combiner.last_loan(), before);
        assert_eq!(combiner.last_loan().to, LentTo::Worker);
        assert_eq!(driver.take().await.ok(), Some(2));
    }

    #[tokio::test]
    async fn a_borrower_runs_turns_for_other_requests_and_leaves_the_rest_to_the_driver() {
        let combiner = Combiner::new();
        let driver = combiner.driver();
        assert_eq!(driver.rest(0), None);
        combiner.run_or_wake(LentTo::Caller, |host| {
            combiner.run_or_wake(LentTo::Worker, |_| unreachable!("it is taken"));
            turn(host)
        });
        combiner.run_or_wake(LentTo::Caller, |_| unreachable!("it is kept for the driver"));
        driver.woken().await;
        let host = driver.take().await.expect("it is whole");
        assert_eq!(host, LENT_RUNS as u32);
        assert_eq!(driver.rest(host), None);
        combiner.run_or_wake(LentTo::Caller, |_| AfterLoan::NeedsDriver);
        driver.woken().await;
        assert_eq!(driver.take().await.ok(), Some(host));
    }

    #[tokio::test]
    async fn a_panic_in_a_turn_goes_to_the_driver() {
        let combiner = Combiner::new();
        let driver = combiner.driver();
        assert_eq!(driver.rest(0), None);
        combiner.run_or_wake(LentTo::Caller, |_| panic!("a bug"));
        let panic = driver.take().await.expect_err("the host is lost");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        combiner.run_or_wake(LentTo::Caller, |_| unreachable!("nothing is there any more"));
    }

    #[tokio::test]
    async fn no_host_stays_without_a_driver() {
        let combiner = Combiner::new();
        let host = std::sync::Arc::new(());
        let weak = std::sync::Arc::downgrade(&host);
        let driver = combiner.driver();
        assert!(driver.rest(host).is_none());
        drop(driver);
        assert!(weak.upgrade().is_none());
        let host = std::sync::Arc::new(());
        let weak = std::sync::Arc::downgrade(&host);
        let mut driver = Some(combiner.driver());
        assert!(driver.as_ref().is_some_and(|driver| driver.rest(host).is_none()));
        combiner.run_or_wake(LentTo::Caller, |_| {
            driver = None;
            AfterLoan::Idle
        });
        assert!(weak.upgrade().is_none(), "it was returned without a driver");
    }
}
