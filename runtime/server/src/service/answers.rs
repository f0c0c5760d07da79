//! Statements of callers from elsewhere: behind the fence, with a slot and a time limit.

use std::time::Duration;

use watershed_api::{Code, Problem, Request};
use watershed_drivers::olap::Query;

use super::fence;
use super::live::Live;
use super::place::Place as _;
use super::questions::Asking;
use super::reading::{Reading, Subject};
use crate::instance::Instance;
use crate::slots::Slot;

/// The longest time that a caller may ask for.
pub(crate) const LONGEST_STATEMENT: Duration = Duration::from_secs(600);

/// A statement that a caller may run, with its slot.
pub(crate) struct Statement {
    /// The statement, with its limits.
    pub(crate) query: Query,
    /// The slot, which is given back when the value is dropped.
    pub(crate) slot: Slot,
}

/// Waits for a slot, and returns the statement of a request for rows, once it is known to read outputs alone.
///
/// # Errors
/// `busy`, where too many wait already; `not-allowed` with the part that callers may not use, `bad-argument`, and those of names.
pub(crate) async fn statement(
    instance: &Instance,
    request: Request,
    usual: Duration,
) -> Result<Statement, Problem> {
    let place = Live::of(instance);
    let entries = place.listing().await?.entries;
    let (sql, limit, timeout_ms) = match request {
        Request::Query(asked) => (asked.sql, asked.limit, asked.timeout_ms),
        Request::Show(asked) => match Reading::new(place.project(), &entries).show(&asked.name)? {
            // Without a limit all rows are asked for.
            Subject::Rows { sql, .. } => (sql, Some(asked.limit).filter(|limit| *limit < u64::MAX), None),
            Subject::Resource(_) => {
                let message = format!("`{}` has no rows", asked.name);
                return Err(Problem::new(Code::WrongState, message));
            }
        },
        _ => return Err(Problem::new(Code::Defect, "the operation has no rows")),
    };
    let timeout = time_limit(timeout_ms, usual)?;
    // The check asks the engine too.
    let slot = instance.slots.take().await?;
    let asking = Asking::of(instance);
    let sql = fence::check(&instance.slots.fence, &asking.opened.engine, &entries, &sql).await?;
    Ok(Statement {
        query: Query {
            sql,
            limit,
            timeout: Some(timeout),
            attributes: Default::default(),
        },
        slot,
    })
}

/// Returns the time limit of a statement: what the caller asks for, or else the usual one.
fn time_limit(asked_ms: Option<u64>, usual: Duration) -> Result<Duration, Problem> {
    let Some(asked) = asked_ms.map(Duration::from_millis) else {
        return Ok(usual);
    };
    match asked <= LONGEST_STATEMENT.max(usual) && !asked.is_zero() {
        true => Ok(asked),
        false => {
            let most = LONGEST_STATEMENT.max(usual).as_millis();
            let message = format!("`timeout_ms` takes 1 to {most}, not {}", asked.as_millis());
            Err(Problem::new(Code::BadArgument, message))
        }
    }
}
