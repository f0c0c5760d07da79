//! Tests of the points at which the kit interrupts: each await, and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use watershed_core::{Error, Outcome};

use crate::{Kit, Outside};
use watershed_controller::{Context, Reconciler};

/// Number of awaits in each run of this reconciler.
const AWAITS: usize = 5;

/// Fates of the runs, by the number of awaits before.
#[derive(Debug, Default)]
struct Met {
    cancelled: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
}

/// An outside without contents, in which every run is right.
#[derive(Clone)]
struct Nothing(Arc<Mutex<Met>>);

impl Outside for Nothing {
    type Seen = ();

    fn look(&self) {}
}

struct Waiting(Arc<Mutex<Met>>);

/// Guard that records at which await it was dropped, unless that was at the end.
struct AwaitPoint(usize, Arc<Mutex<Met>>);

impl Drop for AwaitPoint {
    fn drop(&mut self) {
        if self.0 < AWAITS {
            self.1
                .lock()
                .expect("nobody panics with it")
                .dropped
                .insert(self.0 + 1);
        }
    }
}

impl Reconciler for Waiting {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let mut place = AwaitPoint(0, Arc::clone(&self.0));
        let mut was_cancelled = context.is_cancelled();
        while place.0 < AWAITS {
            tokio::task::yield_now().await;
            place.0 += 1;
            if context.is_cancelled() && !was_cancelled {
                was_cancelled = true;
                self.0
                    .lock()
                    .expect("nobody panics with it")
                    .cancelled
                    .insert(place.0);
            }
        }
        Ok(Outcome::default())
    }
}

#[test]
fn a_run_is_cancelled_and_dropped_at_each_of_its_awaits() {
    let met = Arc::new(Mutex::new(Met::default()));
    let outside = Nothing(Arc::clone(&met));
    let waiting = |nothing: &Nothing| Waiting(Arc::clone(&nothing.0));
    // The systematic seeds alone have to get everywhere.
    Kit::new(move || outside.clone(), waiting, |_| ())
        .steps(1)
        .check();
    let met = met.lock().expect("nobody panics with it");
    let all: BTreeSet<usize> = (1..=AWAITS).collect();
    assert_eq!((&met.cancelled, &met.dropped), (&all, &all));
}
