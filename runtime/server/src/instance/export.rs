//! Rows of a query or a resource, written into a file.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::ExportDocument;
use watershed_api::request::{ExportRequest, Rows};
use watershed_api::{Answer, Code, Problem};
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{Existing, Export, ExportError, Exported, FileFormat, Layout, Olap};
use watershed_reconcilers::secrets::Secrets;

use super::query;
use super::read::{Reading, Shown};
use crate::socket::Replies;

impl Reading<'_> {
    /// The export that a request asks for.
    ///
    /// # Errors
    /// When the resource is unknown or has no rows, or files of that name are of no known form.
    pub(super) fn export(&self, request: ExportRequest) -> Result<Export, Problem> {
        let sql = match request.rows {
            Rows::Of(name) => match self.show(&name)? {
                Shown::Rows { sql, .. } => sql,
                Shown::Document(_) => return Err(Problem::without_rows(&name)),
            },
            Rows::Query(sql) => sql,
        };
        let Some(format) = FileFormat::from_path(&request.file) else {
            let message = format!("`{}` is no .csv, .xlsx or .parquet file", request.file.display());
            return Err(Problem::new(Code::BadArgument, message));
        };
        Ok(Export {
            sql,
            limit: request.limit,
            timeout: request.timeout_ms.map(Duration::from_millis),
            attributes: Default::default(),
            format,
            existing: match request.force {
                true => Existing::Replace,
                false => Existing::Keep,
            },
            file: request.file,
            layout: Layout::default(),
        })
    }
}

/// Writes the file. Ends early, leaving nothing, when nobody listens any more.
pub(super) async fn write(
    engine: &Engine,
    secrets: &Secrets,
    export: &Export,
    replies: &Replies,
) -> Result<Answer, Problem> {
    let refused = query::refuse_files(engine, &export.sql).await;
    refused.map_err(|refusal| query::redacted(refusal, secrets))?;
    let cancel = CancellationToken::new();
    let writing = engine.export(export, &cancel);
    tokio::pin!(writing);
    let written = tokio::select! {
        written = &mut writing => written,
        () = replies.closed() => {
            cancel.cancel();
            writing.await
        }
    };
    written.map_or_else(
        |error| Err(query::redacted(refusal(&error), secrets)),
        |exported| Ok(answer(export, exported)),
    )
}

fn answer(export: &Export, exported: Exported) -> Answer {
    Answer::Export(ExportDocument {
        schema: ExportDocument::SCHEMA.to_owned(),
        file: export.file.display().to_string(),
        rows: exported.rows,
        bytes: exported.bytes,
    })
}

fn refusal(error: &ExportError) -> Problem {
    match error {
        ExportError::Exists(_) => Problem::new(Code::AlreadyExists, error.to_string())
            .hint("`--force` replaces it when the new one is whole"),
        ExportError::NotAFile(_) => Problem::new(Code::BadArgument, error.to_string())
            .hint("without `--out`, `--format csv` writes rows to standard output"),
        ExportError::Sheet(_) => Problem::new(Code::BadArgument, error.to_string()),
        ExportError::Io { .. } => Problem::new(Code::Unavailable, error.to_string()),
        ExportError::Query(error) => query::refusal(error),
    }
}
