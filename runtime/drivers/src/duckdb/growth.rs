//! The growth of the file: when a checkpoint is due, and since when memory was given back.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use watershed_locks::Unpoisoned;

use super::proof::wal_path;
use super::schema;
use super::transaction::Work;
use crate::olap::Failure;

/// Growth below this is not worth a checkpoint.
const SMALLEST_STEP_BYTES: u64 = 4 << 20;

/// The size that the file may reach before a checkpoint is due, and the changes in it.
#[derive(Default)]
pub(super) struct Growth {
    size: Mutex<Size>,
    /// Since memory was given back last.
    changes: AtomicUsize,
}

#[derive(Default)]
struct Size {
    due_at_bytes: u64,
    live_bytes: u64,
}

impl Size {
    /// Half of what is live: so a file stays below twice its live size, and a build on top of it below three times.
    fn step(&self) -> u64 {
        SMALLEST_STEP_BYTES.max(self.live_bytes / 2)
    }
}

impl Growth {
    /// Looks at the live size: after opening, and after each checkpoint.
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

    /// Returns true if a file of a size is due for a checkpoint.
    pub(super) fn is_due(&self, bytes: u64) -> bool {
        bytes > self.size.lock().unpoisoned().due_at_bytes
    }

    /// Lets the file grow by another step.
    pub(super) fn postpone(&self, bytes: u64) {
        let mut size = self.size.lock().unpoisoned();
        size.due_at_bytes = bytes + size.step();
    }

    pub(super) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of changes since it was begun anew.
    pub(super) fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }

    /// Begins to count changes anew.
    pub(super) fn forget_changes(&self) {
        self.changes.store(0, Ordering::Relaxed);
    }
}

/// Bytes of the file and its log.
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
