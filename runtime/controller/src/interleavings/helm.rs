//! The helm: one at a time has it, nobody is forgotten, the pilot gets it, and nothing stays behind.

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
use crate::event_loop::combining::{Helm, Left, Visitor};

/// What was left for the host.
type Things = Arc<Mutex<Vec<usize>>>;

/// Takes what was left, one thing in a turn, so that there is often more.
struct Taker {
    left: Things,
    taken: Sender<usize>,
    is_steered: Arc<AtomicBool>,
}

impl Taker {
    fn turn(&mut self) -> Left {
        assert!(!self.is_steered.swap(true, Ordering::SeqCst), "two have the helm");
        let thing = self.left.lock().unwrap().pop();
        self.is_steered.store(false, Ordering::SeqCst);
        if let Some(thing) = thing {
            self.taken.send(thing).unwrap();
        }
        match self.left.lock().unwrap().is_empty() {
            true => Left::AtRest,
            false => Left::ToPilot,
        }
    }
}

#[test]
fn whatever_is_left_is_taken_once_whoever_makes_the_turn() {
    const THINGS: usize = 3;
    explore(|| {
        let (left, helm) = (Things::default(), Arc::new(Helm::new()));
        let (tell, told) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let mut host = Taker {
            left: Arc::clone(&left),
            taken: tell,
            is_steered: Arc::default(),
        };
        let (at_helm, is_over) = (Arc::clone(&helm), Arc::clone(&ended));
        let steering = thread::spawn(move || {
            let pilot = at_helm.pilot();
            while !is_over.load(Ordering::SeqCst) {
                if host.turn() == Left::ToPilot {
                    continue;
                }
                host = pilot.rest(host).unwrap_or_else(|| {
                    block_on(pilot.rung());
                    block_on(pilot.take()).ok().unwrap()
                });
            }
        });
        let leaving: Vec<_> = (0..THINGS)
            .map(|thing| {
                let (left, helm) = (Arc::clone(&left), Arc::clone(&helm));
                thread::spawn(move || {
                    left.lock().unwrap().push(thing);
                    match thing {
                        0 => helm.ring(),
                        1 => helm.come_by(Visitor::Worker, Taker::turn),
                        _ => helm.come_by(Visitor::Caller, Taker::turn),
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
        helm.ring();
        steering.join().unwrap();
    });
}

#[test]
fn nobody_comes_between_the_pilot_and_the_helm() {
    explore(|| {
        let helm = Arc::new(Helm::new());
        let pilot = helm.pilot();
        assert!(pilot.rest(()).is_none());
        let visiting: Vec<_> = (0..2)
            .map(|_| {
                let helm = Arc::clone(&helm);
                thread::spawn(move || {
                    for _ in 0..3 {
                        helm.come_by(Visitor::Caller, |()| Left::AtRest);
                    }
                })
            })
            .collect();
        let mut take = pin!(pilot.take());
        let first = take.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Pending = first {
            let last = helm.last_visit();
            assert!(block_on(take).is_ok());
            assert_eq!(helm.last_visit(), last, "somebody was let in before the pilot");
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
fn the_host_goes_with_the_pilot_whoever_has_it() {
    explore(|| {
        let helm = Arc::new(Helm::new());
        let count = Arc::new(AtomicUsize::new(0));
        let pilot = helm.pilot();
        assert!(pilot.rest(Dropped(Arc::clone(&count))).is_none());
        let visitor = Arc::clone(&helm);
        let visiting = thread::spawn(move || visitor.come_by(Visitor::Caller, |_| Left::AtRest));
        drop(pilot);
        visiting.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        helm.come_by(Visitor::Caller, |_| panic!("nobody is there"));
    });
}
