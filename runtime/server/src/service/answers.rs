//! Statements of callers from elsewhere: behind the fence, with a slot and a time limit.

use std::time::Duration;

use watershed_api::request::{QueryRequest, ShowRequest};
use watershed_api::{Code, Problem, Request};
use watershed_drivers::olap::Query;

use super::fence;
use super::live::Live;
use super::parameters;
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
    let asked = match request {
        Request::Query(asked) => *asked,
        Request::Show(asked) => rows_of(instance, &asked).await?,
        _ => return Err(Problem::new(Code::Defect, "the operation has no rows")),
    };
    let timeout = time_limit(asked.timeout_ms, usual)?;
    let parameters = parameters::values(asked.parameters)?;
    // The check asks the engine too.
    let slot = instance.slots.take().await?;
    let asking = Asking::of(instance);
    let sql = fence::check(instance, &asking.opened.engine, &asked.sql).await?;
    Ok(Statement {
        query: Query {
            limit: asked.limit,
            timeout: Some(timeout),
            parameters,
            ..Query::new(sql)
        },
        slot,
    })
}

/// Returns the question for the rows of a resource.
async fn rows_of(instance: &Instance, asked: &ShowRequest) -> Result<QueryRequest, Problem> {
    let place = Live::of(instance);
    let entries = place.listing().await?.entries;
    match Reading::new(place.project(), &entries).show(&asked.name)? {
        // Without a limit all rows are asked for.
        Subject::Rows { sql, .. } => Ok(QueryRequest {
            limit: Some(asked.limit).filter(|limit| *limit < u64::MAX),
            ..QueryRequest::new(sql)
        }),
        Subject::Resource(_) => {
            let message = format!("`{}` has no rows", asked.name);
            Err(Problem::new(Code::WrongState, message))
        }
    }
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
