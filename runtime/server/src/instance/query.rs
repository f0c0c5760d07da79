//! Queries: rows in batches, while they are computed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::Column;
use watershed_api::{Answer, Code, Problem, Reply};
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{Olap, Query, QueryError, Rows, SoleError, SqlError};
use watershed_reconcilers::{model, secrets::Secrets};

use super::sharing::Holder;
use crate::socket::Replies;

/// Runs one read-only statement and sends its rows. Ends early when nobody listens any more.
pub(crate) async fn stream(
    engine: &Engine,
    secrets: &Secrets,
    sql: String,
    limit: Option<u64>,
    timeout: Option<Duration>,
    replies: &Replies,
) {
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let query = Query {
        sql,
        limit,
        timeout,
        attributes: Default::default(),
    };
    if let Err(refusal) = refuse_files(engine, &query.sql).await {
        let _ = replies.send(Reply::Refused(redacted(refusal, secrets))).await;
        return;
    }
    let answered = async {
        let mut rows = engine.query(query, &cancel).await?;
        send(&mut rows, replies).await
    };
    tokio::pin!(answered);
    let mut holder = Holder::from_engine(engine);
    let last = loop {
        tokio::select! {
            answered = &mut answered => break match answered {
                Ok(last) => last,
                Err(error) => Reply::Refused(redacted(refusal(&error), secrets)),
            },
            holder = holder.next() => drop(replies.send(Reply::Waiting(holder)).await),
            () = replies.closed() => return,
        }
    };
    let _ = replies.send(last).await;
}

/// Refuses a statement that names files which must not be opened, as models do.
///
/// # Errors
/// When it names one.
pub(super) async fn refuse_files(engine: &Engine, sql: &str) -> Result<(), Problem> {
    let (root, sql) = (engine.options().root.clone(), sql.to_owned());
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

async fn send(rows: &mut Rows, replies: &Replies) -> Result<Reply, QueryError> {
    let column = |c: &watershed_drivers::olap::Column| Column {
        name: c.name.clone(),
        data_type: c.data_type.clone(),
    };
    let columns = rows.columns().iter().map(column).collect();
    let _ = replies.send(Reply::Columns(columns)).await;
    while let Some(chunk) = rows.next().await {
        let json =
            |row: Vec<watershed_drivers::olap::Value>| row.iter().map(|value| value.to_json()).collect();
        let batch = chunk?.into_iter().map(json).collect();
        let _ = replies.send(Reply::Rows(batch)).await;
    }
    Ok(Reply::Done(Box::new(Answer::Rows {
        more: rows.truncated(),
    })))
}

/// The same without secrets.
pub(super) fn redacted(mut refusal: Problem, secrets: &Secrets) -> Problem {
    refusal.message = secrets.redact(&refusal.message).into_owned();
    refusal.hint = refusal
        .hint
        .map(|hint| secrets.redact(hint.as_str()).into_owned().into());
    refusal
}

pub(super) fn refusal(error: &QueryError) -> Problem {
    match error {
        QueryError::Timeout(_) => {
            Problem::new(Code::DeadlinePassed, error.to_string()).hint("`--timeout D` gives it more time")
        }
        QueryError::NotReading => Problem::new(Code::ProjectError, error.to_string())
            .hint("tables are changed by changing the project's files"),
        QueryError::NotOne(SoleError::Several { offset }) => {
            Problem::new(Code::ProjectError, error.to_string())
                .at(SEVERAL_CODE, Some(*offset))
                .hint("ask one at a time")
        }
        QueryError::Failed(watershed_drivers::olap::Failure::Sql(sql)) => refusal_from(sql),
        QueryError::Failed(failure @ watershed_drivers::olap::Failure::Open(_)) => {
            super::care::refusal(failure)
        }
        error => Problem::new(Code::ProjectError, error.to_string()),
    }
}

/// The code of more than one statement, as the compiler has it for models.
const SEVERAL_CODE: &str = "several-statements";

/// A mistake in the statement, or in the data that it reads.
fn refusal_from(error: &SqlError) -> Problem {
    let message = match &error.data {
        Some(at) => format!("{} ({}:{})", error.message, at.file, at.line),
        None => error.message.clone(),
    };
    let stored = watershed_reconcilers::model::from_sql(error);
    Problem {
        hint: stored.hint.as_deref().map(Into::into),
        ..Problem::new(Code::ProjectError, message).at(&*stored.code, error.offset)
    }
}
