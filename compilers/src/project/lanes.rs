//! Parallel work on many items, with results in the order of the items.

use std::{num::NonZeroUsize, panic::resume_unwind, thread};

/// The number of items for which another thread is worth its start.
const WORTH: usize = 128;
/// The largest number of threads, as the process has other work.
const MOST: usize = 4;

/// Returns the results of `work` for all items, in their order.
pub(super) fn map<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let lanes = (things.len() / WORTH).clamp(1, cores.min(MOST));
    if lanes == 1 {
        return things.iter().map(work).collect();
    }
    let work = &work;
    let share = things.len().div_ceil(lanes);
    thread::scope(|scope| {
        let lanes: Vec<_> = things
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>()))
            .collect();
        let done = lanes.into_iter().map(|lane| lane.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_things_however_many_there_are() {
        for count in [0, 1, WORTH, WORTH * 2, WORTH * 2 + 1, WORTH * 9 + 5] {
            let things: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = things.iter().map(|thing| thing * 2).collect();
            assert_eq!(map(&things, |thing| thing * 2), doubled);
        }
    }
}
