//! Execution of texts with several statements.

use super::confine;
use super::transaction::Work;
use crate::olap::{Failure, SoleError, SqlError, sole_statement};

/// Runs the statements of a text one by one, with positions of errors relative to the whole text.
pub(super) fn each_statement(work: &Work<'_>, sql: &str) -> Result<(), Failure> {
    let mut start = 0;
    while let Some(rest) = sql.get(start..) {
        let (one, next) = match sole_statement(rest) {
            Ok(last) => (last, sql.len() + 1),
            Err(SoleError::Several { offset }) => (rest.get(..offset).unwrap_or(rest), start + offset),
            Err(SoleError::None) => return Ok(()),
        };
        let ran = work
            .sandbox()
            .map_or(Ok(()), confine::refuse_dangling_links)
            .and_then(|()| work.run_authors(one));
        // A statement that failed may have left a part of what it wrote.
        let left = match work.working_folder() {
            Some(folder) => confine::refuse_leftovers(folder, one),
            None => Ok(()),
        };
        let ran = ran.and(left);
        ran.map_err(|failure| match failure {
            Failure::Sql(error) => Failure::Sql(SqlError {
                // Where the engine says nothing, the statement itself.
                offset: Some(error.offset.unwrap_or_default() + start),
                ..error
            }),
            other => other,
        })?;
        start = next;
    }
    Ok(())
}
