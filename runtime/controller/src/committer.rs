//! Commits run in a task of their own: a dropped commit has an unknown outcome, and the loop drops futures.

use std::sync::Arc;

use tokio::sync::mpsc;
use watershed_core::{Commit, CommitError};

use crate::call::Signal;
use crate::crash::{COMMIT_AFTER, COMMIT_BEFORE, crash_point};
use crate::panics;
use crate::store::Catalog;

/// Writes one commit after the other until the loop ends. The core asks for one at a time.
pub(crate) async fn run(
    catalog: Arc<dyn Catalog>,
    mut commits: mpsc::Receiver<Commit>,
    signals: mpsc::UnboundedSender<Signal>,
) {
    while let Some(commit) = commits.recv().await {
        crash_point(COMMIT_BEFORE);
        let result = match panics::catch(catalog.commit(&commit)).await {
            Ok(result) => result,
            Err(panic) => Err(CommitError::Failed(format!("the store panicked: {panic}"))),
        };
        crash_point(COMMIT_AFTER);
        let _ = signals.send(Signal::Committed {
            commit: commit.id,
            result,
        });
    }
}
