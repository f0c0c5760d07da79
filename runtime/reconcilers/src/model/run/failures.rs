//! Rows that failed tests, kept for people.

use watershed_drivers::olap::{KeptRows, Verdict};

use super::subject::Subject;
use crate::model::data_tests::Tests;

/// Keeps the rows that failed tests, in place of those that failed before. Nothing depends on them, so a run does not
/// fail because of them.
pub(super) async fn keep(subject: Subject<'_>, tests: &Tests, verdicts: &[Verdict]) {
    if tests.store_failures() || are_stored(subject) {
        store(subject, tests.kept(verdicts)).await;
    }
}

pub(super) fn are_stored(subject: Subject<'_>) -> bool {
    let state = subject.context.state();
    state.is_some_and(|state| state.0.test_results.iter().any(|result| result.stored > 0))
}

pub(super) async fn store(subject: Subject<'_>, kept: Vec<KeptRows>) {
    let stored = async {
        let rows = subject.outputs().olap().tested_rows()?;
        rows.keep(subject.uid(), subject.table(), kept, subject.cancel())
            .await
    };
    if let Err(error) = stored.await {
        tracing::warn!(%error, "the rows that failed tests were not kept");
    }
}
