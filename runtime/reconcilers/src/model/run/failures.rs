//! Storage of rows that failed tests, for people.

use watershed_core::Error;
use watershed_drivers::olap::{Failure, KeptRows, Verdict};
use watershed_outputs::failure::from_failure;

use super::subject::Subject;
use crate::model::data_tests::Tests;

/// Stores the rows that failed tests, in place of earlier ones. Storage errors don't fail the run, as nothing depends
/// on these rows.
pub(super) async fn keep(subject: Subject<'_>, tests: &Tests, verdicts: &[Verdict]) -> Result<(), Error> {
    if tests.store_failures() || are_stored(subject) {
        store(subject, tests.kept(verdicts)).await?;
    }
    Ok(())
}

pub(super) fn are_stored(subject: Subject<'_>) -> bool {
    let state = subject.context.state();
    state.is_some_and(|state| state.0.test_results.iter().any(|result| result.stored > 0))
}

/// Stores rows that failed tests; returns an error only if another owner has taken the engine's data.
pub(super) async fn store(subject: Subject<'_>, kept: Vec<KeptRows>) -> Result<(), Error> {
    let (uid, table) = (subject.uid(), subject.table());
    let stored = subject
        .outputs()
        .keep_tested_rows(uid, table, kept, subject.cancel());
    match stored.await {
        Err(fenced @ Failure::Fenced) => return Err(from_failure(&fenced)),
        Err(error) => tracing::warn!(%error, "the rows that failed tests were not kept"),
        Ok(()) => {}
    }
    Ok(())
}
