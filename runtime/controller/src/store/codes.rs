//! Codes of SQLite's errors.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

/// Returns true if an error of the database says that the file is damaged, or none of SQLite's.
pub(super) fn is_corrupt(error: &(dyn std::error::Error + 'static)) -> bool {
    let code = error.downcast_ref::<sqlx::Error>().and_then(code_of);
    // Further codes have more above the lowest byte.
    code.is_some_and(|code| [CORRUPT, NOT_A_DATABASE].contains(&(code & 0xff)))
}

/// Returns true if an error of the database says that there is no room to write: on the disk, or in what this process
/// may write into one file.
pub(super) fn is_full(error: &sqlx::Error) -> bool {
    use rustix::process::{Resource, getrlimit};
    match code_of(error) {
        Some(FULL | NO_ROOM_FOR_INDEX) => true,
        Some(NOT_WRITTEN) => getrlimit(Resource::Fsize).current.is_some(),
        _ => false,
    }
}

/// The code of an error that SQLite gave.
fn code_of(error: &sqlx::Error) -> Option<u32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse().ok()
}

/// SQLite's code for a write that found no room.
const FULL: u32 = 13;
/// SQLite's code for a write that failed for another reason, as one beyond the size that a file may have.
const NOT_WRITTEN: u32 = 10 | 3 << 8;
/// SQLite's code for a journal whose index could not grow.
const NO_ROOM_FOR_INDEX: u32 = 10 | 19 << 8;

/// SQLite's code for pages that contradict one another.
const CORRUPT: u32 = 11;
/// SQLite's code for a file that never was a database.
const NOT_A_DATABASE: u32 = 26;
