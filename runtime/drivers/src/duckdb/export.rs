//! Export of an answer to a file, atomically: the engine writes a part file, which is renamed once it is complete and
//! synced.

mod sheet;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::confine;
use super::engine::Engine;
use super::failure::{Source, classify};
use super::parameters;
use super::query::{begin_reading, ended, put_attributes};
use super::schema;
use super::sys::{Answer, RawError, Shape, StatementKind};
use super::transaction::{Work, disk_full};
use crate::crash;
use crate::olap::{
    Existing, Export, ExportError, Exported, Failure, FileFormat, QueryError, reads, sole_statement,
};

/// Counter that makes the names of part files unique within the process.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// Writes an answer into a file.
pub(super) async fn export(
    engine: &Engine,
    export: &Export,
    cancel: &CancellationToken,
) -> Result<Exported, ExportError> {
    sole_statement(&export.query.sql)?;
    // Before anything is waited for or computed.
    let target = Target::find(export)?;
    if let Some(sandbox) = &engine.options().sandbox {
        confine::refuse_outside(sandbox, &target.file)?;
    }
    let (running, pass) = begin_reading(engine, export.query.timeout, cancel).await?;
    let job = export.clone();
    let written = engine.work_with(pass, running.clone(), move |work| write(work, &job));
    written.await.map_err(|error| match error {
        ExportError::Query(error) => ExportError::Query(ended(&running, export.query.timeout, error)),
        other => other,
    })
}

/// Performs a whole export on a blocking thread.
fn write(work: &Work<'_>, export: &Export) -> Result<Exported, ExportError> {
    let target = Target::find(export)?;
    let part = Part::beside(&target.file)?;
    put_attributes(work, &export.query.attributes)?;
    work.run("BEGIN TRANSACTION READ ONLY", &[])?;
    let copied = copy(work, export, &part).and_then(|rows| Ok((rows, is_cut(work, export, rows)?)));
    work.roll_back();
    let (rows, truncated) = copied?;
    crash::point("drivers::export::before");
    let bytes = part.put_in_place(target).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists(export.file.clone()),
        _ => unwritable(&export.file, &error),
    })?;
    crash::point("drivers::export::after");
    Ok(Exported {
        rows,
        bytes,
        truncated,
    })
}

/// Writes the part file. Returns the number of rows.
fn copy(work: &Work<'_>, export: &Export, part: &Part) -> Result<Option<u64>, ExportError> {
    let sql = sole_statement(&export.query.sql)?;
    if !reads(sql) {
        return Err(QueryError::NotReading.into());
    }
    work.check_cancelled()?;
    let own = Source { prefix: "", sql };
    let alone = work.connection().prepare(sql);
    let alone = alone.map_err(|raw| work.fail(&raw, Some(own)))?;
    if alone.kind() == StatementKind::Other {
        return Err(QueryError::NotReading.into());
    }
    let values = parameters::Values::of(&alone, &export.query.parameters)?;
    if export.format == FileFormat::Xlsx {
        let mut answer = alone
            .stream(&values.params())
            .map_err(|raw| work.fail(&raw, Some(own)))?;
        return sheet::write(work, export, &mut answer, &part.0).map(Some);
    }
    // Text that a spreadsheet would run is found by its type, which the answer's columns have.
    let selected = match export.layout.guards_formulas && export.format == FileFormat::Csv {
        true => {
            let answer = alone
                .stream(&values.params())
                .map_err(|raw| work.fail(&raw, Some(own)))?;
            guarded(&answer)
        }
        false => {
            drop(alone);
            "*".to_owned()
        }
    };
    // In parentheses stands whatever may be read from; the line ends a comment.
    let prefix = format!("COPY (SELECT {selected} FROM (");
    let source = Source { prefix: &prefix, sql };
    let limit = export.query.limit;
    let limit = limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
    let form = match export.format {
        FileFormat::Csv => "FORMAT csv, HEADER true",
        FileFormat::Parquet => "FORMAT parquet",
        FileFormat::Json | FileFormat::Xlsx => "FORMAT json",
    };
    let path = part.0.to_str().ok_or_else(|| {
        let message = "its path is not in UTF-8".to_owned();
        let file = export.file.clone();
        ExportError::Io { file, message }
    })?;
    let file = DuckDb.text(path);
    let statement = format!(
        "{}{sql}\n){limit}) TO {file} ({form}, USE_TMP_FILE false)",
        source.prefix
    );
    let answer = work
        .connection()
        .run(&statement, &values.params())
        .and_then(Answer::collect);
    let rows = answer.map_err(|raw| match classify(&raw, None).0 {
        // The part's volume, which may be another than the engine's.
        Failure::DiskFull { message } => disk_full(message, &part.0),
        _ => work.fail(&raw, Some(source)),
    })?;
    if export.format == FileFormat::Csv && !export.layout.above.is_empty() {
        put_above(&export.layout.above, &part.0).map_err(|error| unwritable(&export.file, &error))?;
    }
    Ok(schema::count(&rows))
}

/// Returns true if a query has more rows than the file, which is asked only if the file has as many as the limit allows.
fn is_cut(work: &Work<'_>, export: &Export, rows: Option<u64>) -> Result<bool, ExportError> {
    let Some(limit) = export.query.limit.filter(|limit| rows == Some(*limit)) else {
        return Ok(false);
    };
    let sql = sole_statement(&export.query.sql)?;
    let fail = |raw: RawError| work.fail(&raw, Some(Source { prefix: "", sql }));
    let more = format!("SELECT 1 FROM ({sql}\n) LIMIT 1 OFFSET {limit}");
    let more = work.connection().prepare(&more).map_err(fail)?;
    let values = parameters::Values::of(&more, &export.query.parameters)?;
    let more = more
        .run(&values.params())
        .and_then(Answer::collect)
        .map_err(fail)?;
    Ok(!more.is_empty())
}

/// Returns the columns of an answer as SQL, with an apostrophe before texts that a spreadsheet would execute.
fn guarded(answer: &Answer<'_>) -> String {
    let column = |(name, shape): &(String, Shape)| {
        let name = DuckDb.name(name);
        match shape.name.as_str() {
            "VARCHAR" => format!(
                "CASE WHEN regexp_matches({name}, {RUN}) THEN {APOSTROPHE} || {name} ELSE {name} END AS {name}"
            ),
            _ => name,
        }
    };
    let columns: Vec<String> = answer.columns().iter().map(column).collect();
    columns.join(", ")
}

/// SQL literal of the pattern for texts that a spreadsheet would execute.
const RUN: &str = r"'^[=+\-@\t\r]'";
/// SQL literal of the apostrophe that prevents execution.
const APOSTROPHE: &str = "\u{27}\u{27}\u{27}\u{27}";

/// Inserts lines before the content of a file.
fn put_above(lines: &[String], file: &Path) -> io::Result<()> {
    let mut content = File::open(file)?;
    // Its name is free while the content is open.
    fs::remove_file(file)?;
    let mut whole = File::create_new(file)?;
    for line in lines {
        let line = match line.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", line.replace('"', "\"\"")),
            false => line.clone(),
        };
        writeln!(whole, "{line}")?;
    }
    io::copy(&mut content, &mut whole)?;
    Ok(())
}

/// The destination of an export.
struct Target {
    /// Path of the file, with links resolved.
    file: PathBuf,
    /// Permissions of an existing file to be replaced, if any.
    permissions: Option<fs::Permissions>,
}

impl Target {
    /// Resolves the destination, and refuses one that can't be replaced.
    fn find(export: &Export) -> Result<Self, ExportError> {
        let file = &export.file;
        match fs::metadata(file) {
            Ok(found) if !found.is_file() => Err(ExportError::NotAFile(file.clone())),
            Ok(_) if export.existing == Existing::Keep => Err(ExportError::Exists(file.clone())),
            Ok(found) => Ok(Self {
                file: file.canonicalize().map_err(|error| unwritable(file, &error))?,
                permissions: Some(found.permissions()),
            }),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(file, &error)),
            // A link to nothing is somebody's all the same.
            Err(_) if file.is_symlink() => Err(ExportError::NotAFile(file.clone())),
            Err(_) => Ok(Self {
                file: file.clone(),
                permissions: None,
            }),
        }
    }
}

/// A part file, removed when dropped.
struct Part(PathBuf);

impl Part {
    /// Creates an empty part file with a unique name in the folder of `file`.
    fn beside(file: &Path) -> Result<Self, ExportError> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let name = format!(".watershed-{}-{number}.part", std::process::id());
        let part = folder.join(name);
        // One of a process of the same id that was killed is in nobody's use.
        File::create(&part).map_err(|error| unwritable(file, &error))?;
        Ok(Self(part))
    }

    /// Renames the part file to the destination. Returns its size in bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when a file came to stand there that is not to be replaced.
    fn put_in_place(self, target: Target) -> io::Result<u64> {
        let file = File::open(&self.0)?;
        let bytes = file.metadata()?.len();
        match target.permissions {
            Some(permissions) => {
                file.set_permissions(permissions)?;
                file.sync_all()?;
                fs::rename(&self.0, &target.file)?;
            }
            None => {
                file.sync_all()?;
                match fs::hard_link(&self.0, &target.file) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        // A file system without links: a file that comes to stand there in between is lost.
                        if target.file.exists() {
                            return Err(io::ErrorKind::AlreadyExists.into());
                        }
                        fs::rename(&self.0, &target.file)?;
                    }
                    linked => linked?,
                }
            }
        }
        if let Some(folder) = target.file.parent() {
            // Some file systems can't; the file is there all the same.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Gone already when it has got its name.
        let _ = fs::remove_file(&self.0);
    }
}

fn unwritable(file: &Path, error: &io::Error) -> ExportError {
    if matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    ) {
        return disk_full(error.to_string(), file).into();
    }
    ExportError::Io {
        file: file.to_owned(),
        message: error.to_string(),
    }
}
