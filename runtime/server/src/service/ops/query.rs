//! One read-only statement, whose rows are sent in batches while they are computed.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::answers::RowsEnd;
use watershed_api::request::QueryRequest;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::Query;
use watershed_reconcilers::model;

use crate::instance::Holder;
use crate::out::Out;
use crate::service::Principal;
use crate::service::parameters;
use crate::service::place::Place;
use crate::service::problems::of_query;
use crate::service::questions::Asking;

/// Runs one statement and sends its rows. Ends early when the reader hangs up.
pub(crate) async fn query(
    place: &impl Place,
    _: &Principal,
    input: QueryRequest,
    out: &Out,
) -> Result<RowsEnd, Problem> {
    // The engine answers also where the catalog can't be read.
    let entries = place.listing().await.unwrap_or_default().entries;
    let asking = place.asking(&entries).await?;
    let streamed = until_closed(stream(&asking, input, out), out).await;
    asking.opened.give_back().await;
    streamed
}

/// Runs one statement in an engine and sends its rows.
pub(super) async fn stream(asking: &Asking, input: QueryRequest, out: &Out) -> Result<RowsEnd, Problem> {
    refuse_files(&asking.root, &input.sql).await?;
    let engine = &*asking.opened.engine;
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let query = Query {
        limit: input.limit,
        timeout: input.timeout_ms.map(Duration::from_millis),
        parameters: parameters::values(input.parameters)?,
        ..Query::new(input.sql)
    };
    let sent = async {
        let mut rows = engine.query(query, &cancel).await?;
        out.columns(rows.columns()).await;
        while let Some(chunk) = rows.next().await {
            out.rows(chunk?).await;
        }
        Ok(RowsEnd {
            more: rows.truncated(),
        })
    };
    tokio::pin!(sent);
    let mut holder = Holder::from_engine(engine);
    loop {
        tokio::select! {
            ended = &mut sent => return ended.map_err(|error| of_query(&error)),
            holder = holder.next() => out.waiting(holder).await,
        }
    }
}

/// Does work until the reader hangs up, which cancels it.
///
/// # Errors
/// `interrupted`, when nobody listens any more; then the work is dropped, which interrupts the engine.
pub(crate) async fn until_closed<T>(
    work: impl Future<Output = Result<T, Problem>>,
    out: &Out,
) -> Result<T, Problem> {
    tokio::select! {
        answered = work => answered,
        () = out.closed() => Err(Problem::new(Code::Interrupted, "interrupted")),
    }
}

/// Refuses a statement that reads files outside of what models may read.
///
/// # Errors
/// When it names one.
pub(crate) async fn refuse_files(root: &Path, sql: &str) -> Result<(), Problem> {
    let (root, sql) = (root.to_owned(), sql.to_owned());
    let looking = move || model::refuse_files_of_statement(&root, &sql).err();
    let looked = tokio::task::spawn_blocking(looking).await;
    // A panic there is told in the log; the engine has its say all the same.
    let Ok(Some(error)) = looked else {
        return Ok(());
    };
    let problem = Problem::new(Code::ProjectError, error.message.to_string());
    Err(Problem {
        hint: error.hint.as_deref().map(Into::into),
        ..problem.at(&*error.code, None)
    })
}
