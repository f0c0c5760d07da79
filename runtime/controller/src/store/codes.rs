//! Error codes of SQLite.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

/// Returns true if a database error says that the file is damaged, or is not a SQLite database.
pub(super) fn is_corrupt(error: &(dyn std::error::Error + 'static)) -> bool {
    let code = error.downcast_ref::<sqlx::Error>().and_then(code_of);
    // Further codes have more above the lowest byte.
    code.is_some_and(|code| [CORRUPT, NOT_A_DATABASE].contains(&(code & 0xff)))
}

/// Returns true if a database error says that a write found no room: on the disk, or within the process's limit for
/// files.
pub(super) fn is_full(error: &sqlx::Error) -> bool {
    use rustix::process::{Resource, getrlimit};
    match code_of(error) {
        Some(FULL | NO_ROOM_FOR_INDEX) => true,
        Some(NOT_WRITTEN) => getrlimit(Resource::Fsize).current.is_some(),
        _ => false,
    }
}

/// Returns the code of a SQLite error; none for other errors.
fn code_of(error: &sqlx::Error) -> Option<u32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse().ok()
}

/// SQLite's code for a write that found no room.
const FULL: u32 = 13;
/// SQLite's code for a write that failed otherwise, such as one beyond the size limit of a file.
const NOT_WRITTEN: u32 = 10 | 3 << 8;
/// SQLite's code for a journal whose index could not grow.
const NO_ROOM_FOR_INDEX: u32 = 10 | 19 << 8;

/// SQLite's code for pages that contradict one another.
const CORRUPT: u32 = 11;
/// SQLite's code for a file that is not a database.
const NOT_A_DATABASE: u32 = 26;
