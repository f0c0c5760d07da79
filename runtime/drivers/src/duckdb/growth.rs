//! Growth of the file: when a checkpoint is due, and the number of changes since memory was released.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use watershed_locks::Unpoisoned;

use super::proof::wal_path;
use super::schema;
use super::transaction::Work;
use crate::olap::Failure;

/// The least growth for which a checkpoint is worthwhile, in bytes.
const SMALLEST_STEP_BYTES: u64 = 4 << 20;

/// The size at which the next checkpoint is due, and the changes since memory was released.
#[derive(Default)]
pub(super) struct Growth {
    size: Mutex<Size>,
    /// Number of changes since memory was released.
    changes: AtomicUsize,
}

#[derive(Default)]
struct Size {
    due_at_bytes: u64,
    live_bytes: u64,
}

impl Size {
    /// Returns the growth until the next checkpoint: half of the live data, so that the file stays below twice its live
    /// size, and below three times with a build in progress.
    fn step(&self) -> u64 {
        SMALLEST_STEP_BYTES.max(self.live_bytes / 2)
    }
}

impl Growth {
    /// Measures the live size, after an opening and after each checkpoint.
    pub(super) fn measure(&self, work: &Work<'_>) -> Result<(), Failure> {
        let rows = work.run(
            "SELECT used_blocks * block_size FROM pragma_database_size() \
             WHERE database_name = current_database()",
            &[],
        )?;
        self.live(schema::count(&rows).unwrap_or(0));
        Ok(())
    }

    fn live(&self, bytes: u64) {
        let mut size = self.size.lock().unpoisoned();
        size.live_bytes = bytes;
        size.due_at_bytes = bytes + size.step();
    }

    /// Returns true if a checkpoint is due at this file size.
    pub(super) fn is_due(&self, bytes: u64) -> bool {
        bytes > self.size.lock().unpoisoned().due_at_bytes
    }

    /// Postpones the checkpoint until the file has grown by another step.
    pub(super) fn postpone(&self, bytes: u64) {
        let mut size = self.size.lock().unpoisoned();
        size.due_at_bytes = bytes + size.step();
    }

    pub(super) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of changes since memory was released.
    pub(super) fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }

    /// Restarts the count of changes.
    pub(super) fn forget_changes(&self) {
        self.changes.store(0, Ordering::Relaxed);
    }
}

/// Returns the size of the file and its log, in bytes.
pub(super) fn size_on_disk(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    size(path) + size(&wal_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_checkpoint_is_due_when_half_of_what_is_live_was_written() {
        let growth = Growth::default();
        growth.live(MIB);
        assert!(
            !growth.is_due(5 * MIB) && growth.is_due(5 * MIB + 1),
            "small files may grow by 4 MiB"
        );
        growth.live(100 * MIB);
        assert!(!growth.is_due(150 * MIB) && growth.is_due(150 * MIB + 1));
        growth.postpone(160 * MIB);
        assert!(!growth.is_due(210 * MIB) && growth.is_due(211 * MIB));
    }
}
