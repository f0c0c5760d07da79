//! Runs that failed because the lake that models are built in can't be reached: they are run again, after waits that grow.
//!
//! A model without `retry` is not built again by itself, for it would fail as before. While the lake is away nothing was tried
//! that could.

use std::time::Duration;

use watershed_controller::{Context, Reconciler};
use watershed_core::{Error, Timestamp};
use watershed_outputs::Outputs;

/// Wait after the first failure; each one after it doubles the wait.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Returns the error with the time of another run, if the lake with the outputs is away.
pub(crate) fn run_again<K: Reconciler>(outputs: &Outputs, context: &Context<K>, error: Error) -> Error {
    if !outputs.is_away(&error) {
        return error;
    }
    let at = next(context.row().attempts, context.now());
    Error {
        retrigger: Some(error.retrigger.map_or(at, |other| other.min(at))),
        ..error
    }
}

/// Returns the time of the next run after so many failures in a row before this one.
fn next(failures: u32, now: Timestamp) -> Timestamp {
    let wait = FIRST_WAIT
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(LONGEST_WAIT);
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_add(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound() {
        let waits = [0, 1, 2, 6, u32::MAX].map(|failures| next(failures, Timestamp(1)).0 - 1);
        assert_eq!(waits, [5_000, 10_000, 20_000, 300_000, 300_000]);
    }
}
