//! Writing of an output's rows into files, which nobody reads before the caller publishes them.

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::confine;
use super::engine::Engine;
use super::failure::classify;
use super::query::{begin_reading, ended};
use super::schema::{self, qualified};
use super::sys::Answer;
use super::transaction::{Work, disk_full};
use crate::olap::{ExportError, Failure, FileFormat, WriteRows};

/// Writes the rows of an output into files.
pub(super) async fn write_rows(
    engine: &Engine,
    job: &WriteRows,
    cancel: &CancellationToken,
) -> Result<Option<u64>, ExportError> {
    if let Some(sandbox) = &engine.options().sandbox {
        confine::refuse_outside(sandbox, &job.place)?;
    }
    let (running, pass) = begin_reading(engine, job.timeout, cancel).await?;
    let copied = job.clone();
    let written = engine.work_with(pass, running.clone(), move |work| write(work, &copied));
    written.await.map_err(|error| match error {
        ExportError::Query(error) => ExportError::Query(ended(&running, job.timeout, error)),
        other => other,
    })
}

fn write(work: &Work<'_>, job: &WriteRows) -> Result<Option<u64>, ExportError> {
    work.run("BEGIN TRANSACTION READ ONLY", &[])?;
    let rows = copy(work, job);
    work.roll_back();
    rows
}

fn copy(work: &Work<'_>, job: &WriteRows) -> Result<Option<u64>, ExportError> {
    work.check_cancelled()?;
    let statement = statement(job).ok_or_else(|| ExportError::Io {
        file: job.place.clone(),
        message: "its path is not in UTF-8".to_owned(),
    })?;
    let answer = work.connection().run(&statement, &[]).and_then(Answer::collect);
    let rows = answer.map_err(|raw| match classify(&raw, None).0 {
        // The volume of the files, which may be another than the engine's.
        Failure::DiskFull { message } => disk_full(message, &job.place),
        _ => work.fail(&raw, None),
    })?;
    Ok(schema::count(&rows))
}

/// Returns the statement; none if the path can't be expressed in SQL.
fn statement(job: &WriteRows) -> Option<String> {
    let mut options = vec![match job.format {
        FileFormat::Csv => "FORMAT csv".to_owned(),
        FileFormat::Json => "FORMAT json".to_owned(),
        // Outputs are written in forms that the engine has.
        FileFormat::Xlsx => "FORMAT xlsx".to_owned(),
        FileFormat::Parquet => "FORMAT parquet".to_owned(),
    }];
    if job.format == FileFormat::Csv {
        options.push(format!("HEADER {}", job.header));
    }
    if let Some(delimiter) = &job.delimiter {
        options.push(format!("DELIMITER {}", DuckDb.text(delimiter)));
    }
    if let Some(compression) = &job.compression {
        options.push(format!("COMPRESSION {}", DuckDb.text(compression)));
    }
    if job.partition_by.is_empty() {
        options.push("USE_TMP_FILE false".to_owned());
    } else {
        let columns: Vec<String> = job.partition_by.iter().map(|it| DuckDb.name(it)).collect();
        options.push(format!("PARTITION_BY ({})", columns.join(", ")));
    }
    let place = DuckDb.text(job.place.to_str()?);
    let (table, options) = (qualified(&job.table), options.join(", "));
    Some(format!("COPY (FROM {table}) TO {place} ({options})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_project_stay_texts_in_the_statement() {
        let job = WriteRows {
            table: "a\"b".to_owned(),
            place: "/x/it's".into(),
            format: FileFormat::Csv,
            partition_by: vec!["c\"); DROP".to_owned()],
            header: true,
            delimiter: Some("'".to_owned()),
            compression: None,
            timeout: None,
        };
        assert_eq!(
            statement(&job).unwrap(),
            format!(
                "COPY (FROM {}) TO '/x/it''s' (FORMAT csv, HEADER true, DELIMITER '''', \
                 PARTITION_BY (\"c\"\"); DROP\"))",
                qualified("a\"b")
            )
        );
    }
}
