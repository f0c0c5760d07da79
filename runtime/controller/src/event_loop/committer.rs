//! The committer: completes slow commits in a task of its own. The loop drops futures, and a dropped commit would have
//! an unknown outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use tokio::sync::mpsc;
use tokio::time::Instant;
use watershed_core::{Commit, CommitError};

use crate::failpoints::{COMMIT_AFTER, COMMIT_BEFORE, crash_point};
use crate::inbox::call::Signal;
use crate::inbox::shared::Shared;
use crate::store::{Answers, BoxFuture, Catalog};
use crate::tasks::panics;

/// Maximum number of rows in a commit that the loop itself begins: a fast store completes such a commit without a
/// switch of tasks.
const AT_ONCE: usize = 128;

/// A commit that was begun and has not completed.
pub(crate) type Begun = BoxFuture<'static, Signal>;

/// Begins a commit. Returns its result if it completes at once, or the future for [`run`].
pub(crate) fn begin(
    shared: &Arc<Shared>,
    catalog: &Arc<dyn Catalog>,
    commit: Commit,
    answers: Vec<Answers>,
) -> Result<Signal, Begun> {
    let rows = commit.writes.len() + commit.history.len();
    let mut begun: Begun = Box::pin(write(Arc::clone(shared), Arc::clone(catalog), commit, answers));
    if rows > AT_ONCE {
        return Err(begun);
    }
    // Whoever polls it next is the one to be woken.
    match begun.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(signal) => Ok(signal),
        Poll::Pending => Err(begun),
    }
}

/// Completes commits one after the other until the loop ends. The core has one commit under way at a time.
pub(crate) async fn run(
    mut commits: mpsc::Receiver<Begun>,
    signals: mpsc::UnboundedSender<Signal>,
    shared: Arc<Shared>,
) {
    while let Some(commit) = commits.recv().await {
        let _ = signals.send(commit.await);
        shared.wake();
    }
}

async fn write(
    shared: Arc<Shared>,
    catalog: Arc<dyn Catalog>,
    commit: Commit,
    answers: Vec<Answers>,
) -> Signal {
    crash_point(COMMIT_BEFORE);
    let began = Instant::now();
    let result = match panics::catch(catalog.commit_with(&commit, &answers)).await {
        Ok(result) => result,
        Err(panic) => Err(CommitError::Failed(format!("the store panicked: {panic}"))),
    };
    crash_point(COMMIT_AFTER);
    let now = Instant::now();
    shared.metrics.commits.record(now.duration_since(began), now);
    if result.is_err() {
        shared.metrics.failed_commits.fetch_add(1, Ordering::Relaxed);
    }
    Signal::Committed {
        commit: commit.id,
        result,
    }
}
