//! Interleavings of wake-ups: of log readers, and of workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::future::block_on;
use shuttle::sync::mpsc;
use shuttle::thread;

use super::explore;
use crate::read::ring_log::{Bounds, Read, RingLog};
use crate::workers::run_queue::RunQueue;

#[test]
fn a_reader_wakes_for_every_entry_and_for_the_end() {
    explore(|| {
        let feed = RingLog::new(Bounds {
            kept: 100,
            bound: 100,
        });
        let (tell, told) = mpsc::channel();
        let reading: Vec<_> = (0..2)
            .map(|_| {
                let (mut reader, tell) = (feed.follow(|_| true), tell.clone());
                thread::spawn(move || {
                    loop {
                        match block_on(reader.read()) {
                            Read::Entry(entry) => tell.send(*entry).unwrap(),
                            Read::Ended => return,
                            Read::Lagged => panic!("everything is held"),
                        }
                    }
                })
            })
            .collect();
        for entry in 0..2 {
            feed.push(1, entry);
            // Nothing else wakes them meanwhile.
            for _ in &reading {
                assert_eq!(told.recv(), Ok(entry));
            }
        }
        feed.end();
        reading.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(!feed.has_readers());
    });
}

#[test]
fn a_reader_lags_exactly_when_its_next_entry_is_further_behind_than_the_bound() {
    const BOUND: u64 = 2;
    const COUNT: u64 = 6;
    explore(|| {
        let (kept, bound) = (1, BOUND as usize);
        let feed = RingLog::new(Bounds { kept, bound });
        let begun = Arc::new(AtomicU64::new(0));
        let dropped = Arc::new(AtomicU64::new(0));
        let mut reader = feed.follow(|_| true);
        let (pushes, begins, drops) = (feed.clone(), Arc::clone(&begun), Arc::clone(&dropped));
        let pushing = thread::spawn(move || {
            for entry in 0..COUNT {
                begins.store(entry + 1, Ordering::SeqCst);
                let removed = pushes.push(1, entry);
                if let Some(last) = removed.last() {
                    drops.store(**last + 1, Ordering::SeqCst);
                }
            }
            pushes.end();
        });
        let mut next = 0;
        loop {
            let before = dropped.load(Ordering::SeqCst);
            match block_on(reader.read()) {
                Read::Entry(entry) => {
                    assert_eq!(*entry, next, "without gaps, each once");
                    assert!(before <= next, "it was removed");
                    next += 1;
                }
                Read::Lagged => {
                    let pushed = begun.load(Ordering::SeqCst);
                    assert!(pushed - next > BOUND, "{next} was held when {pushed} were pushed");
                    break;
                }
                Read::Ended => {
                    assert_eq!(next, COUNT);
                    break;
                }
            }
        }
        pushing.join().unwrap();
    });
}

#[test]
fn whatever_is_added_is_taken_once_however_workers_wait_and_all_of_them_end() {
    const THINGS: usize = 4;
    explore(|| {
        let run_queue = Arc::new(RunQueue::new());
        let (begin, begun) = mpsc::channel();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (run_queue, begin) = (Arc::clone(&run_queue), begin.clone());
                thread::spawn(move || {
                    while let Some(thing) = block_on(run_queue.take()) {
                        begin.send(thing).unwrap();
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        // The second lot comes when the first is over: the workers have gone to wait, or are about to.
        for lot in [0..3, 3..THINGS] {
            let expected = lot.len();
            run_queue.add(&mut lot.collect(), workers.len());
            taken.extend((0..expected).map(|_| begun.recv().unwrap()));
        }
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
        assert_eq!((run_queue.len(), run_queue.taken()), (0, THINGS as u64));
        run_queue.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn two_things_begin_together_if_two_workers_are_free() {
    explore(|| {
        let run_queue = Arc::new(RunQueue::new());
        let together = Arc::new(shuttle::sync::Barrier::new(2));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (run_queue, together) = (Arc::clone(&run_queue), Arc::clone(&together));
                thread::spawn(move || {
                    // It blocks until the other one has begun as well: only another worker can free it.
                    while block_on(run_queue.take()).is_some() {
                        together.wait();
                    }
                })
            })
            .collect();
        run_queue.add(&mut vec![0, 1], workers.len());
        while run_queue.taken() < 2 {
            thread::yield_now();
        }
        run_queue.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}
