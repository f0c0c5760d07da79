//! Retries in explanations: how often something failed, and its limit.

use std::time::Duration;

use watershed_api::documents::Retry;
use watershed_core::RetryPolicy;

use super::Explanations;
use crate::report::Entry;
use crate::report::kinds::programs;

/// Returns the retry policy in force: the one that the controller reports, or else the resource's own.
pub(super) fn policy(entry: &Entry, said: &Explanations) -> RetryPolicy {
    let own = || entry.row.retry.as_deref().copied().unwrap_or_default();
    said.get(&entry.row.uid).map_or_else(own, |said| said.retry)
}

/// Describes the failed phase, the number of failures in a row, and their limit.
pub(super) fn failure(entry: &Entry, policy: RetryPolicy) -> String {
    let marks = &entry.row.intents;
    let what = match (marks.is_deleted(), marks.is_renamed()) {
        (true, _) => "its delete failed",
        (_, true) => "its rename failed",
        _ => "its last run failed",
    };
    let is_regular = !marks.is_deleted() && !marks.is_renamed();
    match (entry.row.attempts, policy) {
        (failed @ 1.., RetryPolicy::Backoff { attempts, .. }) if is_regular && failed <= attempts => {
            match attempts {
                // It is tried as often as its own record says.
                u32::MAX => what.to_owned(),
                attempts => format!("{what}, attempt {failed} of {attempts}"),
            }
        }
        (0 | 1, _) => what.to_owned(),
        // Each look at a program that has failed counts there; how often that failed is said with its failure.
        _ if programs::is_program(&entry.row) => what.to_owned(),
        (several, _) => format!("{what}, {several} times in a row"),
    }
}

/// Converts a retry policy for documents; none if nothing is retried.
pub(super) fn shown(policy: RetryPolicy) -> Option<Retry> {
    let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    match policy {
        RetryPolicy::Backoff {
            base, cap, attempts, ..
        } => Some(Retry {
            attempts,
            delay_ms: ms(base),
            longest_delay_ms: ms(cap),
        }),
        _ => None,
    }
}
