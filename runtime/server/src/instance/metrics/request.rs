//! Requests of the command line: a query of a metrics view, with conditions in SQL, for a user, into a file.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use watershed_drivers::olap::{Existing, Export, FileFormat};
use watershed_metrics::plan::PlanError;
use watershed_metrics::{Query, QueryError};

use super::viewer::Viewer;
use super::{LONGEST, MetricsError, Views, answer as answers, condition};
use crate::exit::Exit;
use crate::instance::export;
use crate::socket::{Answer, Fault, MetricsRequest, Refusal, Replies};

/// Answers a request. Ends early when nobody listens any more.
///
/// # Errors
/// A query that can't be read, planned or run, and a file that can't be written.
pub(in crate::instance) async fn answer(
    views: &Views<'_>,
    request: MetricsRequest,
    replies: &Replies,
) -> Result<Answer, Refusal> {
    tokio::select! {
        answered = answered(views, request, replies) => answered,
        () = replies.closed() => Err(Refusal::new(Exit::Interrupted, "interrupted")),
    }
}

async fn answered(views: &Views<'_>, request: MetricsRequest, replies: &Replies) -> Result<Answer, Refusal> {
    let now = time(request.at.as_deref())?;
    let viewer = match request.user {
        Some(attributes) => Viewer::user(attributes),
        None => Viewer::Owner,
    };
    let mut json = request.query;
    add_condition(&mut json, "where", request.condition.as_deref())?;
    add_condition(&mut json, "having", request.having.as_deref())?;
    let mut query = Query::from_json(&json).map_err(|error| refused(&error))?;
    let shown = request
        .shown
        .filter(|_| query.limit.is_none() && query.pivot_on.is_empty());
    if request.sql {
        let planned = views.planned(&query, &viewer, now).await.map_err(refusal)?;
        let sql = planned.statement();
        let document = answers::unanswered(&query, &planned.plan, sql);
        return Ok(Answer::Metrics(Box::new(document)));
    }
    if let Some(file) = &request.file {
        let planned = views.planned(&query, &viewer, now).await.map_err(refusal)?;
        if planned.plan.totals || !query.pivot_on.is_empty() {
            let message = "a file has neither totals nor a pivot";
            return Err(Refusal::new(Exit::Usage, message)
                .hint("leave them out, or write `--format csv` to standard output"));
        }
        let export = export_of(planned.statement(), file, request.force)?;
        let written = export::write(views.engine, views.secrets, &export, replies).await;
        return written.map_err(|refusal| match viewer.unspoken(MetricsError::Engine(refusal)) {
            MetricsError::Engine(refusal) => refusal,
            other => Refusal::new(Exit::ProjectError, other.to_string()),
        });
    }
    // One more than is shown tells whether there are more.
    query.limit = query.limit.or(shown.map(|shown| shown + 1));
    let mut document = views.answer(&query, &viewer, now).await.map_err(refusal)?;
    let shown = shown.and_then(|shown| usize::try_from(shown).ok());
    if let Some(shown) = shown.filter(|shown| document.rows.len() > *shown) {
        document.rows.truncate(shown);
        document.truncated = true;
    }
    Ok(Answer::Metrics(Box::new(document)))
}

/// The time that a question is put at.
fn time(typed: Option<&str>) -> Result<Timestamp, Refusal> {
    let Some(typed) = typed else {
        return Ok(Timestamp::now());
    };
    let day = || format!("{typed}T00:00:00Z").parse().ok();
    typed.parse().ok().or_else(day).ok_or_else(|| {
        Refusal::new(Exit::Usage, format!("`{typed}` is no time"))
            .hint("write a time such as `2024-02-29T12:00:00Z`, or a day")
    })
}

/// Adds a condition in SQL to the filter that a query has.
fn add_condition(query: &mut Value, key: &str, sql: Option<&str>) -> Result<(), Refusal> {
    let Some(sql) = sql else {
        return Ok(());
    };
    let added = condition::filter(sql).map_err(|message| {
        Refusal::new(Exit::Usage, format!("`--{key}`: {message}")).hint(
            "conditions compare fields with constants, as in `origin = 'JFK' AND delay > 15`; text stands in single quotes",
        )
    })?;
    if let Value::Object(query) = query {
        let filter = match query.remove(key) {
            None | Some(Value::Null) => added,
            Some(there) => json!({"cond": {"op": "and", "exprs": [there, added]}}),
        };
        query.insert(key.to_owned(), filter);
    }
    Ok(())
}

fn export_of(sql: String, file: &Path, force: bool) -> Result<Export, Refusal> {
    let Some(format) = FileFormat::from_path(file) else {
        let message = format!("`{}` is neither a .csv nor a .parquet file", file.display());
        return Err(Refusal::new(Exit::Usage, message));
    };
    Ok(Export {
        sql,
        // A file has all rows, or is not there: they pass through, and the time is bounded.
        limit: None,
        timeout: Some(LONGEST),
        format,
        existing: match force {
            true => Existing::Replace,
            false => Existing::Keep,
        },
        file: file.to_owned(),
    })
}

fn refused(error: &QueryError) -> Refusal {
    let refusal = Refusal {
        fault: Some(Fault {
            code: error.code.name().to_owned(),
            offset: None,
        }),
        ..Refusal::new(Exit::Usage, error.to_string())
    };
    match &error.hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

fn refusal(error: MetricsError) -> Refusal {
    match error {
        MetricsError::Unknown(refusal) | MetricsError::Engine(refusal) => refusal,
        MetricsError::Refused(PlanError::Refused(error)) => refused(&error),
        MetricsError::NotValid(ref name) => Refusal::new(Exit::ProjectError, error.to_string()).hint(
            format!("`watershed status metrics_view/{name}` says what is wrong with it"),
        ),
        MetricsError::Policy { .. } | MetricsError::Render(_) => {
            Refusal::new(Exit::ProjectError, error.to_string())
        }
        MetricsError::Refused(_) | MetricsError::TooManyRows | MetricsError::TooManyColumns(_) => {
            Refusal::new(Exit::Usage, error.to_string())
        }
    }
}
