//! Export of a query's or a resource's rows to a file.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::ExportDocument;
use watershed_api::request::{ExportRequest, Rows};
use watershed_api::{Code, Problem, hint};
use watershed_drivers::olap::{Export, ExportError, Layout, Query};
use watershed_resolvers::{Prepared, Viewer, metrics::MetricsError};

use super::query;
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;
use crate::service::problems::{made_over, of_metrics, of_query, unspoken};
use crate::service::questions::{Asking, existing, form_of};
use crate::service::reading::{Reading, Subject};

/// Exports the rows of a resource or a query to a file.
pub(crate) async fn export(
    place: &impl Place,
    _: &Principal,
    input: ExportRequest,
    out: &Out,
) -> Result<ExportDocument, Problem> {
    let entries = place.listing().await?.entries;
    let sql = match input.rows {
        Rows::Of(name) => match Reading::new(place.project(), &entries).show(&name)? {
            Subject::Rows { sql, .. } => sql,
            Subject::Resource(_) => return Err(Problem::without_rows(&name)),
        },
        Rows::Query(sql) => sql,
    };
    let export = Export {
        query: Query {
            limit: input.limit,
            timeout: input.timeout_ms.map(Duration::from_millis),
            ..Query::new(sql)
        },
        format: form_of(&input.file)?,
        existing: existing(input.force),
        file: input.file,
        layout: Layout::default(),
    };
    let asking = place.asking(&entries).await?;
    let written = write(&asking, &export, out).await;
    asking.opened.give_back().await;
    written
}

/// Writes the export. Ends early, without a file, when the reader hangs up.
///
/// # Errors
/// A statement that can't be answered, and a file that can't be written.
async fn write(asking: &Asking, export: &Export, out: &Out) -> Result<ExportDocument, Problem> {
    query::refuse_files(&asking.root, &export.query.sql).await?;
    let cancel = CancellationToken::new();
    let writing = asking.opened.engine.export(export, &cancel);
    tokio::pin!(writing);
    let written = tokio::select! {
        written = &mut writing => written,
        () = out.closed() => {
            cancel.cancel();
            writing.await
        }
    };
    let exported = written.map_err(|error| problem(&error))?;
    Ok(ExportDocument {
        schema: ExportDocument::SCHEMA.to_owned(),
        file: export.file.display().to_string(),
        rows: exported.rows,
        bytes: exported.bytes,
        truncated: exported.truncated,
    })
}

/// Writes the rows of a question to a file.
///
/// # Errors
/// When the file's name says no form, the question's rows are made over, or the file can't be written.
pub(crate) async fn write_answer(
    asking: &Asking,
    prepared: &Prepared,
    mut file: Export,
    viewer: &Viewer,
    out: &Out,
) -> Result<ExportDocument, Problem> {
    if prepared.is_made_over() {
        return Err(made_over());
    }
    file.query = Query {
        limit: file.query.limit,
        timeout: file.query.timeout,
        ..prepared.query()
    };
    let written = write(asking, &file, out).await;
    // What the engine says may quote rows that a user may not see.
    written.map_err(|problem| match viewer {
        Viewer::User(_) if problem.code == Code::ProjectError => unspoken(),
        _ => problem,
    })
}

/// Converts the error of an export for a viewer: users are not shown the engine's message.
pub(crate) fn problem_for(error: ExportError, viewer: &Viewer) -> Problem {
    match error {
        ExportError::Query(error) => of_metrics(viewer.unspoken(MetricsError::Engine(error))),
        error => problem(&error),
    }
}

fn problem(error: &ExportError) -> Problem {
    match error {
        ExportError::Exists(_) => Problem::new(Code::AlreadyExists, error.to_string()).hint(format!(
            "{} replaces it when the new one is whole",
            hint::option("force", "")
        )),
        ExportError::NotAFile(_) => Problem::new(Code::BadArgument, error.to_string()).hint(format!(
            "without {}, {} writes rows to standard output",
            hint::option("out", ""),
            hint::option("format", "csv")
        )),
        ExportError::Sheet(_) => Problem::new(Code::BadArgument, error.to_string()),
        ExportError::Io { .. } => Problem::new(Code::Unavailable, error.to_string()),
        ExportError::Query(error) => of_query(error),
    }
}
