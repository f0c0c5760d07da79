//! Queries that run while others build: one statement in a read-only transaction, its rows passed on as they arrive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, on_blocking_thread};
use super::failure::{Source, classify};
use super::gate::{Company, Pass};
use super::parameters;
use super::running::{Finished, Running};
use super::shapes::{Shaped, Values};
use super::sys::{Answer, Connection, Convert as _, Database, StatementKind};
use super::transaction::Work;
use crate::olap::{
    Chunk, Column, Failure, Query, QueryError, RowSink, Rows, leading_words, reads, row_channel,
    sole_statement,
};

/// The time after which work waits for a reader who takes no rows, and no longer for the engine.
const PATIENCE: Duration = Duration::from_millis(100);

/// Prepares for a statement that a person waits for: opens the file and waits at the gate.
pub(super) async fn begin_reading(
    engine: &Engine,
    timeout: Option<Duration>,
    cancel: &CancellationToken,
) -> Result<(Running, Pass), QueryError> {
    engine.be_open_for_reader(cancel).await?;
    let running = Running::start(cancel, timeout);
    match engine.enter(&running.cancel, Company::Others).await {
        Ok(pass) => Ok((running, pass)),
        Err(failure) => {
            running.finish();
            Err(ended(&running, timeout, failure.into()))
        }
    }
}

/// Starts a query, whose rows arrive while it runs.
pub(super) async fn query(
    engine: &Engine,
    query: Query,
    cancel: &CancellationToken,
) -> Result<Rows, QueryError> {
    let (rows, ()) = start::<Values>(engine, query, cancel).await?;
    Ok(rows)
}

/// Starts a query, whose rows arrive as Arrow batches while it runs.
#[cfg(feature = "arrow")]
pub(super) async fn query_batches(
    engine: &Engine,
    query: Query,
    cancel: &CancellationToken,
) -> Result<crate::olap::Batches, QueryError> {
    let (rows, schema) = start::<super::shapes::Arrow>(engine, query, cancel).await?;
    Ok(crate::olap::Batches::new(schema, rows))
}

/// Starts a query of an in-memory database, which no gate guards, on a connection of its own.
pub(super) async fn query_in_memory(
    database: &Arc<Database>,
    query: Query,
    cancel: &CancellationToken,
) -> Result<Rows, QueryError> {
    sole_statement(&query.sql)?;
    let running = Running::start(cancel, query.timeout);
    let (sink, rows_of) = row_channel(running.cancel.clone());
    let (head_in, head_out) = oneshot::channel();
    let handle = Handle::current();
    let database = Arc::clone(database);
    // Not awaited: it ends when the rows are read, or when whoever reads them is gone.
    let reading = on_blocking_thread(move || {
        let _finished = Finished(&running);
        let reading = Reading::<Values> {
            query: &query,
            running: &running,
            sink: &sink,
            pass: &RefCell::new(None),
            handle,
        };
        let mut head = Some(head_in);
        let read = read_in_memory(&database, &reading, &mut head);
        let read = read.map_err(|error| ended(&running, query.timeout, error));
        match (read, head) {
            // Whoever asked has gone if this fails.
            (Err(error), Some(head)) => drop(head.send(Err(error))),
            (Err(error), None) => sink.fail(error),
            (Ok(()), _) => {}
        }
    });
    drop(tokio::spawn(reading.in_current_span()));
    match head_out.await {
        Ok(head) => head.map(|(columns, ())| rows_of(columns)),
        Err(_) => Err(QueryError::Failed(Failure::Fatal {
            message: "the query panicked".to_owned(),
        })),
    }
}

fn read_in_memory(
    database: &Arc<Database>,
    reading: &Reading<'_, Values>,
    head: &mut Option<oneshot::Sender<Head<Values>>>,
) -> Result<(), QueryError> {
    let unopened = |raw| QueryError::Failed(classify(&raw, None).0);
    let connection = Connection::new(database).map_err(unopened)?;
    let work = Work::new(&connection, reading.running);
    reading.running.arm(connection.interrupt());
    work.run("BEGIN TRANSACTION READ ONLY", &[])?;
    let read = reading.run(&work, head);
    reading.running.disarm();
    read
}

/// The columns of an answer, with the head of its shape; or the reason for which there is no answer.
type Head<S> = Result<(Vec<Column>, <S as Shaped>::Head), QueryError>;

/// Starts a query, whose rows arrive in a shape.
async fn start<S: Shaped>(
    engine: &Engine,
    query: Query,
    cancel: &CancellationToken,
) -> Result<(Rows<S::Batch>, S::Head), QueryError> {
    sole_statement(&query.sql)?;
    let (running, pass) = begin_reading(engine, query.timeout, cancel).await?;
    let (sink, rows_of) = row_channel(running.cancel.clone());
    let (head_in, head_out) = oneshot::channel();
    let this = engine.clone();
    let handle = Handle::current();
    // Not awaited: it ends when the rows are read, or when whoever reads them is gone.
    let reading = on_blocking_thread(move || {
        let pass = RefCell::new(Some(pass));
        let reading = Reading::<S> {
            query: &query,
            running: &running,
            sink: &sink,
            pass: &pass,
            handle,
        };
        match read_here(&this, &reading, head_in) {
            Ok(()) => {}
            Err(error) => sink.fail(error),
        }
    });
    drop(tokio::spawn(reading.in_current_span()));
    match head_out.await {
        Ok(head) => head.map(|(columns, head)| (rows_of(columns), head)),
        Err(_) => Err(QueryError::Failed(Failure::Fatal {
            message: "the query panicked".to_owned(),
        })),
    }
}

/// Performs a whole query on a blocking thread. Sends columns or an error to the caller, and returns errors after the
/// columns.
fn read_here<S: Shaped>(
    engine: &Engine,
    reading: &Reading<'_, S>,
    head: oneshot::Sender<Head<S>>,
) -> Result<(), QueryError> {
    let mut head = Some(head);
    let done = engine.read_here(reading.running, |work| {
        put_attributes(work, &reading.query.attributes)?;
        work.run("BEGIN TRANSACTION READ ONLY", &[])?;
        let read = reading.run(work, &mut head);
        work.roll_back();
        read
    });
    let done = done.map_err(|error| ended(reading.running, reading.query.timeout, error));
    match (done, head.take()) {
        (Err(error), Some(head)) => {
            // Whoever asked has gone if this fails, and with that the need for an answer.
            drop(head.send(Err(error)));
            Ok(())
        }
        (done, _) => done,
    }
}

/// Sets attributes of a query as variables of its connection, which no later work uses.
pub(super) fn put_attributes(work: &Work<'_>, attributes: &BTreeMap<String, String>) -> Result<(), Failure> {
    for (name, value) in attributes {
        work.spend();
        let (name, value) = (DuckDb.name(name), DuckDb.text(value));
        work.run(&format!("SET VARIABLE {name} = {value}"), &[])?;
    }
    Ok(())
}

/// Returns the error of an interrupted query, which may have exceeded its own time limit.
pub(super) fn ended(running: &Running, timeout: Option<Duration>, error: QueryError) -> QueryError {
    match (error, timeout) {
        (QueryError::Failed(Failure::Interrupted), Some(timeout)) if running.timed_out() => {
            QueryError::Timeout(timeout)
        }
        (error, _) => error,
    }
}

/// A running query with its reader.
struct Reading<'a, S: Shaped> {
    query: &'a Query,
    running: &'a Running,
    sink: &'a RowSink<S::Batch>,
    /// The permission to work; none for a database that no gate guards.
    pass: &'a RefCell<Option<Pass>>,
    handle: Handle,
}

impl<S: Shaped> Reading<'_, S> {
    fn run(&self, work: &Work<'_>, head: &mut Option<oneshot::Sender<Head<S>>>) -> Result<(), QueryError> {
        let sql = sole_statement(&self.query.sql)?;
        let fail = |raw| QueryError::Failed(work.fail(&raw, Some(Source { prefix: "", sql })));
        if is_other_statement(sql) {
            return Err(QueryError::NotReading);
        }
        work.check_cancelled()?;
        let _span = Work::span(sql).entered();
        // What begins with a word of no statement ends here, with the place of the mistake.
        let statement = work.connection().prepare(sql).map_err(fail)?;
        if !reads(sql) || statement.kind() == StatementKind::Other {
            return Err(QueryError::NotReading);
        }
        let values = parameters::Values::of(&statement, &self.query.parameters)?;
        let mut answer = statement.stream(&values.params()).map_err(fail)?;
        let found = columns_of(&answer)?;
        let (begun, shape) = S::begin(&mut answer).map_err(fail)?;
        if let Some(head) = head.take()
            && head.send(Ok((found, begun))).is_err()
        {
            return Err(Failure::Interrupted.into());
        }
        let mut left = self.query.limit;
        while let Some(chunk) = answer.next_chunk().map_err(fail)? {
            let mut rows = shape.batch(&chunk).map_err(fail)?;
            let number = chunk.len() as u64;
            drop(chunk);
            let truncated = left.is_some_and(|left| number > left);
            if let Some(left) = &mut left {
                if truncated {
                    S::cut(&mut rows, usize::try_from(*left).unwrap_or(usize::MAX));
                }
                *left = left.saturating_sub(number);
            }
            if !self.send(Chunk { rows, truncated }) {
                return Err(Failure::Interrupted.into());
            }
            if truncated {
                return Ok(());
            }
        }
        // An interrupt can end a streamed answer as if it were whole.
        Ok(work.check_cancelled()?)
    }

    /// Sends rows to the reader, waiting at most for the query's time limit. Returns false if the reader is gone. One who takes
    /// no rows for a while holds up no other work.
    fn send(&self, chunk: Chunk<S::Batch>) -> bool {
        self.handle.block_on(async {
            let sending = self.sink.send(chunk);
            tokio::pin!(sending);
            loop {
                let holds_slot = self.pass.borrow().as_ref().is_some_and(Pass::has_slot);
                tokio::select! {
                    biased;
                    () = self.running.cancel.cancelled() => return false,
                    read = &mut sending => return read,
                    () = sleep(PATIENCE), if holds_slot => {
                        if let Some(pass) = &mut *self.pass.borrow_mut() {
                            pass.give_slot_back();
                        }
                    }
                }
            }
        })
    }
}

/// First words of statements that do more than read, which are refused before being prepared.
const OTHER_WORDS: [&str; 40] = [
    "abort",
    "alter",
    "analyse",
    "analyze",
    "attach",
    "begin",
    "call",
    "checkpoint",
    "close",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "detach",
    "do",
    "drop",
    "end",
    "execute",
    "explain",
    "export",
    "force",
    "grant",
    "import",
    "insert",
    "install",
    "load",
    "merge",
    "pragma",
    "prepare",
    "refresh",
    "reset",
    "rollback",
    "set",
    "start",
    "truncate",
    "update",
    "use",
];

/// Returns true if a statement is refused because of its first word.
fn is_other_statement(sql: &str) -> bool {
    let first = leading_words(sql).next().unwrap_or_default();
    !reads(sql) && (OTHER_WORDS.contains(&first.as_str()) || first == "vacuum" || first.is_empty())
}

fn columns_of(answer: &Answer<'_>) -> Result<Vec<Column>, QueryError> {
    answer
        .columns()
        .iter()
        .map(|(name, shape)| {
            let column = Column {
                name: name.clone(),
                data_type: shape.name.clone(),
            };
            if shape.is_showable() {
                Ok(column)
            } else {
                Err(QueryError::Unshowable {
                    column: column.name,
                    data_type: column.data_type,
                })
            }
        })
        .collect()
}
