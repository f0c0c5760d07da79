//! Keeping the file small.
//!
//! A replaced table's space can be used again only after a checkpoint, and a checkpoint needs a moment in which no
//! transaction is open, readers included. The engine's own checkpoints never find that moment while work goes on. So
//! they are ours: once the file has grown by a share of what is live in it, new work waits at the gate until the
//! work under way has ended and the checkpoint is made. One is made for every so many bytes written, so their cost
//! stays in proportion to the writing, however many builds that were.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::super::proof::wal_path;
use super::super::running::Running;
use super::super::schema;
use super::super::sys::Connection;
use super::super::trash::now_ms;
use super::super::work::Work;
use super::Engine;
use crate::crash;
use crate::olap::Failure;

/// Growth below this is not worth a checkpoint.
const SMALLEST_STEP_BYTES: u64 = 4 << 20;

/// The time that new work waits for the work under way. A reader that lasts longer lets the file grow by another step.
const PATIENCE: Duration = Duration::from_millis(500);

/// The size that the file may reach before a checkpoint is due.
#[derive(Debug, Default)]
pub(in crate::duckdb) struct Growth {
    due_at_bytes: u64,
    live_bytes: u64,
}

impl Growth {
    /// Looks at the live size: after opening, and after each checkpoint.
    pub(in crate::duckdb) fn measure(&mut self, work: &Work<'_>) -> Result<(), Failure> {
        let rows = work.run(
            "SELECT used_blocks * block_size FROM pragma_database_size() \
             WHERE database_name = current_database()",
            &[],
        )?;
        self.live_bytes = schema::count(&rows).unwrap_or(0);
        self.due_at_bytes = self.live_bytes + self.step();
        Ok(())
    }

    /// Half of what is live: so a file stays below twice its live size, and a build on top of it below three times.
    fn step(&self) -> u64 {
        SMALLEST_STEP_BYTES.max(self.live_bytes / 2)
    }

    fn is_due(&self, size: u64) -> bool {
        size > self.due_at_bytes
    }

    fn postpone(&mut self, size: u64) {
        self.due_at_bytes = size + self.step();
    }
}

impl Engine {
    /// Counts a change, and makes a checkpoint if the file has grown enough. Nothing that was done before hangs on how this ends.
    pub(in crate::duckdb) async fn after_change(&self, cancel: &CancellationToken) {
        self.changes().fetch_add(1, Ordering::Relaxed);
        let size = size_on_disk(&self.options().path);
        if !self.growth().is_due(size) {
            return;
        }
        let Some(pass) = self.enter_alone_within(PATIENCE, cancel).await else {
            self.growth().postpone(size);
            return;
        };
        // Another may have made it while this one waited.
        if !self.growth().is_due(size_on_disk(&self.options().path)) {
            return;
        }
        let engine = self.clone();
        let running = Running::start(&CancellationToken::new(), None);
        let made = self
            .work_with(pass, running, move |work| {
                engine.checkpoint_here(work)?;
                match engine.tidy_here(work, now_ms())? {
                    false => Ok(()),
                    true => engine.checkpoint_here(work),
                }
            })
            .await;
        if let Err(error) = made {
            tracing::warn!(%error, "no checkpoint could be made");
            self.growth().postpone(size);
        }
    }

    /// Waits for a moment without work and writes the log into the file, so that the space of replaced outputs is
    /// used again. Worth a call when a project has become idle.
    ///
    /// # Errors
    /// How the engine failed; all outputs are as they were.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the checkpoint made or not made.
    pub async fn checkpoint(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        let engine = self.clone();
        self.work(cancel, super::Company::Alone, move |work| {
            engine.checkpoint_here(work)
        })
        .await
    }

    pub(in crate::duckdb) fn checkpoint_here(&self, work: &Work<'_>) -> Result<(), Failure> {
        crash::point("drivers::checkpoint::before");
        work.run("CHECKPOINT", &[])?;
        crash::point("drivers::checkpoint::after");
        self.growth().measure(work)
    }

    /// The checkpoint of an orderly close: what it can't write stays in the log, where it is just as safe.
    pub(in crate::duckdb) fn write_log_into_file(&self, connection: &Connection) {
        if let Err(error) = Work::uninterrupted(connection).run("CHECKPOINT", &[]) {
            tracing::warn!(%error, "no checkpoint could be made while closing");
        }
    }
}

/// Bytes of the file and its log.
pub(in crate::duckdb) fn size_on_disk(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(path) + size(&wal_path(path))
}
