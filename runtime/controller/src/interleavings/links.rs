//! Interleavings of the loop and its clients: cancels, progress, metrics, and the end.

use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread;
use tokio::sync::mpsc;
use watershed_core::{InvocationId, Refusal, StopReason, Timestamp};

use super::{explore, shared};
use crate::handle::Handle;
use crate::inbox::call::Signal;
use crate::metrics::Metrics;
use crate::types::error::RequestError;
use crate::workers::reconciler::context::InvocationChannel;

fn link() -> (Arc<InvocationChannel>, mpsc::UnboundedReceiver<Signal>) {
    let (shared, _inbox) = shared();
    let (signals, signalled) = mpsc::unbounded_channel();
    (Arc::new(InvocationChannel::new(shared, signals)), signalled)
}

#[test]
fn a_reconciler_that_waits_for_its_cancel_hears_it() {
    explore(|| {
        let (link, _signalled) = link();
        let waits = Arc::clone(&link);
        let waiting = thread::spawn(move || {
            block_on(waits.cancellation().cancelled());
            assert!(waits.is_cancelled());
        });
        // Clones of a context share the token.
        let asks = Arc::clone(&link);
        let asking = thread::spawn(move || {
            let was_cancelled = asks.is_cancelled();
            assert!(
                asks.cancellation().is_cancelled() || !was_cancelled,
                "a cancel is not taken back"
            );
        });
        link.cancel();
        assert!(link.cancellation().is_cancelled());
        waiting.join().unwrap();
        asking.join().unwrap();
    });
}

#[test]
fn the_last_progress_text_is_taken_and_none_before_it_after_it() {
    const TEXTS: usize = 4;
    explore(|| {
        let (link, mut signalled) = link();
        let says = Arc::clone(&link);
        let saying = thread::spawn(move || {
            for text in 0..TEXTS {
                says.leave_progress(InvocationId(1), text.to_string().into());
            }
            says.signal(Signal::Renewed);
        });
        let mut taken: Vec<usize> = Vec::new();
        loop {
            match block_on(signalled.recv()) {
                Some(Signal::Progress(_)) => {
                    let text = link
                        .take_progress()
                        .expect("the slot is full when the loop is told");
                    taken.push(text.parse().unwrap());
                }
                _ => break,
            }
            assert!(signalled.len() <= 2, "one text is on the way at a time");
        }
        saying.join().unwrap();
        assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
        assert_eq!(taken.last(), Some(&(TEXTS - 1)));
    });
}

#[test]
fn a_call_that_the_loop_never_took_is_refused_with_the_reason_of_the_end() {
    explore(|| {
        let (shared, mut inbox) = shared();
        let calling: Vec<_> = (0..2)
            .map(|_| {
                let handle = Handle::new(Arc::clone(&shared));
                thread::spawn(move || block_on(handle.nudge_all()))
            })
            .collect();
        block_on(shared.stop(&StopReason::LeaseLost, &mut inbox));
        for caller in calling {
            let refused = caller.join().unwrap().expect_err("nobody carries it out");
            assert!(
                matches!(refused, RequestError::Refused(Refusal::LeaseLost)),
                "{refused:?}"
            );
        }
        assert_eq!(inbox.commands.len(), 0);
    });
}

#[test]
fn a_convergence_and_how_long_it_took_belong_together() {
    explore(|| {
        let metrics = Arc::new(Metrics::new());
        let settles = Arc::clone(&metrics);
        let settling = thread::spawn(move || {
            for (idle, at) in [(false, 1), (true, 2), (false, 10), (true, 30)] {
                settles.settled(idle, Timestamp(at));
            }
        });
        for _ in 0..2 {
            let last = metrics.last_convergence();
            let known = [None, Some((Timestamp(2), 1)), Some((Timestamp(30), 20))];
            assert!(known.contains(&last), "{last:?}");
        }
        settling.join().unwrap();
    });
}
