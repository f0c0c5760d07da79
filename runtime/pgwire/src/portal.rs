//! Prepared statements and portals of a session.

use crate::state::{NO_PORTAL, SqlError};
use crate::statement::Ask;

/// A prepared statement.
pub(crate) struct Prepared {
    pub(crate) sql: String,
    /// The wish of the statement; none for a statement without words.
    pub(crate) ask: Option<Ask>,
    /// Types of the parameters.
    pub(crate) types: Vec<u32>,
}

/// A statement with its values.
pub(crate) struct Portal {
    pub(crate) sql: String,
    /// True if the text is that which the client sent, so that places in it mean something there.
    pub(crate) is_own: bool,
    pub(crate) ask: Option<Ask>,
    pub(crate) formats: Vec<i16>,
    /// True once all rows were sent.
    pub(crate) is_over: bool,
    /// True once the rest of the rows was left: from its beginning the statement would send some of them twice.
    pub(crate) is_left: bool,
}

/// Returns the error of a portal whose rest was left.
pub(crate) fn left(name: &str) -> SqlError {
    let message = format!(
        "the rest of portal \"{name}\" was left: a session reads one statement at a time, and takes rows within 30 s"
    );
    SqlError::new(NO_PORTAL, message)
        .hint("read all rows before the next statement, or ask that over a second connection")
}
