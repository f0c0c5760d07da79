//! Release of memory while the engine is idle.
//!
//! The engine keeps what it has read or written until its memory limit is near, and a tombstone for each block that a
//! build has used and freed: half a kilobyte, some dozens a build, of which it begins to sweep up when there are tens of
//! thousands. In a process that stays and builds small things, the limit never comes near, so it would hold a copy of
//! the whole file in blocks of 256 KiB, and grow for hours.
//!
//! It has no statement for that, but it lets go of everything that nobody uses before it refuses a limit that is too
//! low. So it is given one, and then its own again, at a moment in which nobody works.

use super::checkpoint::checkpoint_here;
use super::engine::{Engine, on_blocking_thread};
use super::schema;
use super::transaction::Work;
use crate::olap::{Access, Failure};

/// The fewest changes since the last release that make another one worthwhile.
const CHANGES: usize = 64;

/// The most bytes in use for a release: more is a warm cache of large tables, worth more than the memory. Smaller under
/// test.
const LARGEST_BYTES: u64 = if cfg!(test) { 16 << 20 } else { 256 << 20 };

/// Statement that sets a memory limit into which nothing fits.
const NOTHING: &str = "SET memory_limit = '1KB'";

/// Statement that creates a table which can't be evicted. The engine sweeps its eviction queues until the limit is met;
/// as it never is, all are swept.
const STAYS: &str = "CREATE OR REPLACE TEMP TABLE stays AS SELECT i FROM range(2048) t(i)";

/// Releases the engine's cache if enough has changed, no work runs and the cache is small; later reads load the data
/// from the file. Cheap to call whenever a project becomes idle.
///
/// # Cancel safety
/// Dropping the future leaves it to end by itself.
pub(super) async fn give_back_memory(engine: &Engine) {
    let is_worth_it = engine.parts.growth.changes() >= CHANGES;
    if !is_worth_it || !engine.is_open() || engine.options().access == Access::ReadOnly {
        return;
    }
    let Some(pass) = engine.parts.gate.enter_alone_now() else {
        return;
    };
    let this = engine.clone();
    let given = on_blocking_thread(move || {
        let _pass = pass;
        give_back_here(&this)
    });
    if let Err(error) = given.await.and_then(|given| given) {
        tracing::warn!(%error, "the engine's memory could not be given back");
    }
}

fn give_back_here(engine: &Engine) -> Result<(), Failure> {
    let connection = engine.checkout()?;
    let work = Work::uninterrupted(&connection);
    engine.parts.growth.forget_changes();
    let prepared = prepare(engine, &work);
    let given = match prepared {
        Ok(Some(limit)) => let_go(&work, limit).inspect_err(|_| engine.parts.gate.declare_broken()),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    let aftermath = work.aftermath();
    engine.put_back(connection, aftermath);
    given
}

/// Returns the engine's memory limit if little enough is in use. Writes the log into the file first, since its data
/// would otherwise be written to temporary files.
fn prepare(engine: &Engine, work: &Work<'_>) -> Result<Option<u64>, Failure> {
    let held = work.run(
        "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()",
        &[],
    )?;
    if schema::count(&held).is_none_or(|held| held > LARGEST_BYTES) {
        return Ok(None);
    }
    checkpoint_here(engine, work)?;
    Ok(engine.parts.pool.memory_limit())
}

/// Requests an impossible memory limit, which the engine refuses only after releasing its cache, and restores the
/// limit. If the restoring fails, the limit may stay low, which nothing can mend.
fn let_go(work: &Work<'_>, limit: u64) -> Result<(), Failure> {
    work.run(STAYS, &[])?;
    // It says no, having let go of all that it could.
    let _ = work.connection().run(NOTHING, &[]);
    work.run(&format!("SET memory_limit = '{limit}B'"), &[])?;
    work.run("DROP TABLE temp.stays", &[]).map(drop)
}
