//! The combiner: one task at a time has the host, no request is lost, the driver gets its turn, and no host stays behind.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use shuttle::future::block_on;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize};
use shuttle::sync::mpsc::{self, Sender};
use shuttle::thread;

use super::explore;
use crate::event_loop::combining::{AfterLoan, Combiner, LentTo};

/// Inputs that were left for the host.
type Things = Arc<Mutex<Vec<usize>>>;

/// Takes what was left, one thing in a turn, so that there is often more.
struct Taker {
    left: Things,
    taken: Sender<usize>,
    is_steered: Arc<AtomicBool>,
}

impl Taker {
    fn turn(&mut self) -> AfterLoan {
        assert!(
            !self.is_steered.swap(true, Ordering::SeqCst),
            "two have the combiner"
        );
        let thing = self.left.lock().unwrap().pop();
        self.is_steered.store(false, Ordering::SeqCst);
        if let Some(thing) = thing {
            self.taken.send(thing).unwrap();
        }
        match self.left.lock().unwrap().is_empty() {
            true => AfterLoan::Idle,
            false => AfterLoan::NeedsDriver,
        }
    }
}

#[test]
fn whatever_is_left_is_taken_once_whoever_makes_the_turn() {
    const THINGS: usize = 3;
    explore(|| {
        let (left, combiner) = (Things::default(), Arc::new(Combiner::new()));
        let (tell, told) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let mut host = Taker {
            left: Arc::clone(&left),
            taken: tell,
            is_steered: Arc::default(),
        };
        let (shared, is_over) = (Arc::clone(&combiner), Arc::clone(&ended));
        let driving = thread::spawn(move || {
            let driver = shared.driver();
            while !is_over.load(Ordering::SeqCst) {
                if host.turn() == AfterLoan::NeedsDriver {
                    continue;
                }
                host = driver.rest(host).unwrap_or_else(|| {
                    block_on(driver.woken());
                    block_on(driver.take()).ok().unwrap()
                });
            }
        });
        let leaving: Vec<_> = (0..THINGS)
            .map(|thing| {
                let (left, combiner) = (Arc::clone(&left), Arc::clone(&combiner));
                thread::spawn(move || {
                    left.lock().unwrap().push(thing);
                    match thing {
                        0 => combiner.wake(),
                        1 => combiner.run_or_wake(LentTo::Worker, Taker::turn),
                        _ => combiner.run_or_wake(LentTo::Caller, Taker::turn),
                    }
                })
            })
            .collect();
        // Nothing else wakes anybody meanwhile.
        let mut taken: Vec<_> = (0..THINGS).map(|_| told.recv().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
        leaving.into_iter().for_each(|thread| thread.join().unwrap());
        ended.store(true, Ordering::SeqCst);
        combiner.wake();
        driving.join().unwrap();
    });
}

#[test]
fn no_borrower_comes_before_a_waiting_driver() {
    explore(|| {
        let combiner = Arc::new(Combiner::new());
        let driver = combiner.driver();
        assert!(driver.rest(()).is_none());
        let visiting: Vec<_> = (0..2)
            .map(|_| {
                let combiner = Arc::clone(&combiner);
                thread::spawn(move || {
                    for _ in 0..3 {
                        combiner.run_or_wake(LentTo::Caller, |()| AfterLoan::Idle);
                    }
                })
            })
            .collect();
        let mut take = pin!(driver.take());
        let first = take.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Pending = first {
            let last_loan = combiner.last_loan();
            assert!(block_on(take).is_ok());
            assert_eq!(
                combiner.last_loan(),
                last_loan,
                "a borrower got the host before the driver"
            );
        }
        visiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Counts how often it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_host_goes_with_the_driver_whoever_has_it() {
    explore(|| {
        let combiner = Arc::new(Combiner::new());
        let count = Arc::new(AtomicUsize::new(0));
        let driver = combiner.driver();
        assert!(driver.rest(Dropped(Arc::clone(&count))).is_none());
        let to = Arc::clone(&combiner);
        let visiting = thread::spawn(move || to.run_or_wake(LentTo::Caller, |_| AfterLoan::Idle));
        drop(driver);
        visiting.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        combiner.run_or_wake(LentTo::Caller, |_| panic!("nobody is there"));
    });
}
