//! Checkpoints, which keep the engine's file small.
//!
//! A replaced table's space can be used again only after a checkpoint, and a checkpoint needs a moment in which no
//! transaction is open, readers included. The engine's own checkpoints never find that moment while work goes on. So
//! they are ours: once the file has grown by a share of what is live in it, new work waits at the gate until the
//! work under way has ended and the checkpoint is made. One is made for every so many bytes written, so their cost
//! stays in proportion to the writing, however many builds that were.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::gate::Company;
use super::growth::size_on_disk;
use super::retention::tidy_lake;
use super::running::Running;
use super::tidy::tidy;
use super::transaction::Work;
use super::trash::now_ms;
use crate::crash;
use crate::olap::Failure;

/// Time for which new work is held back while a checkpoint waits for running work. If a reader lasts longer, the file
/// may grow by another step.
const PATIENCE: Duration = Duration::from_millis(500);

/// Changes of a lake after which its trash is tidied.
const CHANGES_OF_LAKE: usize = 64;

/// Counts a change, and makes a checkpoint if the file has grown enough. The change itself is already committed,
/// whatever the result.
pub(super) async fn after_change(engine: &Engine, cancel: &CancellationToken) {
    let growth = &engine.parts.growth;
    growth.count_change();
    if engine.lake().is_some() {
        return after_change_in_lake(engine, cancel).await;
    }
    let size = size_on_disk(&engine.options().path);
    if !growth.is_due(size) {
        return;
    }
    // Work that lasts must not hold up everybody else behind a waiter.
    let entered = tokio::time::timeout(PATIENCE, engine.enter(cancel, Company::Alone)).await;
    let Ok(Ok(pass)) = entered else {
        growth.postpone(size);
        return;
    };
    // Another may have made it while this one waited.
    if !growth.is_due(size_on_disk(&engine.options().path)) {
        return;
    }
    let this = engine.clone();
    let running = Running::start(&CancellationToken::new(), None);
    let made = engine
        .work_with(pass, running, move |work| {
            checkpoint_here(&this, work)?;
            match tidy(&this.parts.names, &this.parts.trash, work, now_ms())? {
                false => Ok(()),
                true => checkpoint_here(&this, work),
            }
        })
        .await;
    if let Err(error) = made {
        tracing::warn!(%error, "no checkpoint could be made");
        growth.postpone(size);
    }
}

/// Tidies a lake and its trash once in a number of changes.
async fn after_change_in_lake(engine: &Engine, cancel: &CancellationToken) {
    if engine.parts.growth.changes() < CHANGES_OF_LAKE {
        return;
    }
    engine.parts.growth.forget_changes();
    let this = engine.clone();
    let tidied = engine.work(cancel, Company::Others, move |work| {
        tidy_lake(&this.parts.names, &this.parts.trash, work, now_ms())
    });
    if let Err(error) = tidied.await {
        tracing::warn!(%error, "the lake could not be tidied");
    }
}

/// Waits until no work runs, and writes the log into the file, so that the space of replaced outputs is reused.
#[cfg(test)]
pub(super) async fn checkpoint(engine: &Engine, cancel: &CancellationToken) -> Result<(), Failure> {
    let this = engine.clone();
    let made = engine.work(cancel, Company::Alone, move |work| checkpoint_here(&this, work));
    made.await
}

/// Writes the log into the file. The caller works alone.
pub(super) fn checkpoint_here(engine: &Engine, work: &Work<'_>) -> Result<(), Failure> {
    crash::point("drivers::checkpoint::before");
    work.run("CHECKPOINT", &[])?;
    crash::point("drivers::checkpoint::after");
    engine.parts.growth.measure(work)
}
