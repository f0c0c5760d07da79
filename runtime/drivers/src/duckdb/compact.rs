//! Compaction of the engine's file by copying.
//!
//! Space that outputs leave behind is used again but never given back: a file stays as large as it was once. So it is
//! copied, object by object, into a new file beside it that takes its name once it is known to hold the same.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, on_blocking_thread};
use super::gate::Company;
use super::growth::size_on_disk;
use super::pool;
use super::proof::wal_path;
use super::running::Running;
use super::schema;
use super::sys::Connection;
use super::transaction::Work;
use crate::olap::{Access, Compacted, Failure, OpenError, Value};
use crate::volume::{Bytes, Volume};

/// The least free space that justifies a copy, in bytes.
const SMALLEST_GAIN: u64 = 4 << 20;
/// Divisor of the file's size: at least this fraction must be free for a copy.
const SMALLEST_SHARE: u64 = 4;
/// Name of the copy in the engine, and extension of its file.
const COPY: &str = "watershed_copy";
const ENDING: &str = "copy";

/// Queries that list the objects of a database, one line each, for comparing a copy with its original.
const OBJECTS: [&str; 7] = [
    "SELECT concat_ws(' ', 'table', schema_name, table_name, comment, temporary) FROM duckdb_tables() \
     WHERE database_name = $db AND NOT internal",
    "SELECT concat_ws(' ', 'view', schema_name, view_name, comment, column_count) FROM duckdb_views() \
     WHERE database_name = $db AND NOT internal",
    "SELECT concat_ws(' ', 'column', schema_name, table_name, column_index, column_name, data_type, is_nullable, \
     column_default) FROM duckdb_columns() WHERE database_name = $db AND NOT internal",
    "SELECT concat_ws(' ', 'index', schema_name, index_name, table_name, is_unique, expressions) \
     FROM duckdb_indexes() WHERE database_name = $db",
    "SELECT concat_ws(' ', 'constraint', schema_name, table_name, constraint_text) FROM duckdb_constraints() \
     WHERE database_name = $db",
    "SELECT concat_ws(' ', 'macro', schema_name, function_name, parameters::VARCHAR, macro_definition) \
     FROM duckdb_functions() WHERE database_name = $db AND NOT internal",
    "SELECT concat_ws(' ', 'sequence', schema_name, sequence_name, last_value) FROM duckdb_sequences() \
     WHERE database_name = $db AND NOT temporary",
];

const TYPES: &str = "SELECT concat_ws(' ', 'type', schema_name, type_name, labels::VARCHAR) FROM duckdb_types() \
                     WHERE database_name = $db AND NOT internal";

/// Compacts the file if enough of it is free, while no other work runs. Outputs, tags and records stay the same, and
/// the next work reopens the file.
///
/// # Errors
/// When there is no room for a copy, or something can't be copied; then the file is as it was.
///
/// # Cancel safety
/// Dropping the future leaves the file as it was or made anew.
pub(super) async fn compact(engine: &Engine, cancel: &CancellationToken) -> Result<Compacted, Failure> {
    let path = engine.options().path.clone();
    if engine.options().access == Access::ReadOnly || !path.exists() {
        return Ok(Compacted::default());
    }
    // Opened before, so that what is wrong with it is found by the usual way.
    engine.open(cancel).await?;
    let pass = engine.enter(cancel, Company::Alone).await?;
    let this = engine.clone();
    let running = Running::start(cancel, None);
    on_blocking_thread(move || {
        let _pass = pass;
        compact_here(&this, &path, &running)
    })
    .await?
}

fn compact_here(engine: &Engine, path: &Path, running: &Running) -> Result<Compacted, Failure> {
    let before = size_on_disk(path);
    engine.forget_file();
    let copy = copy_path(path);
    remove_copy(&copy)?;
    let copied = copy_into(engine, path, &copy, running);
    running.finish();
    if !matches!(copied, Ok(true)) {
        remove_copy(&copy)?;
        return copied.map(|_| Compacted {
            before,
            after: before,
        });
    }
    put_in_place(&copy, path).map_err(|error| Failure::Fatal {
        message: format!("`{}` can't be put in its place: {error}", copy.display()),
    })?;
    let after = size_on_disk(path);
    Ok(Compacted { before, after })
}

/// Copies the file and closes both. Returns true if the copy was worth it.
fn copy_into(engine: &Engine, path: &Path, copy: &Path, running: &Running) -> Result<bool, Failure> {
    let (_database, connection) = pool::open(engine.options(), None)?;
    let work = Work::new(&connection, running);
    running.arm(connection.interrupt());
    work.run("CHECKPOINT", &[])?;
    let Some(live) = worth_it(&work, path)? else {
        return Ok(false);
    };
    refuse_without_room(path, live)?;
    let own = own_name(&connection)?;
    let target = DuckDb.text(&copy.to_string_lossy());
    work.run(&format!("ATTACH {target} AS {COPY}"), &[])?;
    let from = DuckDb.name(&own);
    work.run(&format!("COPY FROM DATABASE {from} TO {COPY}"), &[])?;
    copy_comments(&work, &own)?;
    let (ours, theirs) = (contents(&work, &own)?, contents(&work, COPY)?);
    if ours != theirs {
        return Err(unfaithful(&ours, &theirs));
    }
    work.run(&format!("CHECKPOINT {COPY}"), &[])?;
    work.run(&format!("DETACH {COPY}"), &[])?;
    running.disarm();
    Ok(true)
}

/// Returns the used bytes if enough other bytes are free to justify a copy. The file's size is measured too, since
/// blocks of a build that was cut off lie behind the blocks that the engine knows.
fn worth_it(work: &Work<'_>, path: &Path) -> Result<Option<u64>, Failure> {
    let of = |what: &str| {
        format!(
            "SELECT ({what} * block_size)::BIGINT FROM pragma_database_size() \
             WHERE database_name = current_database()"
        )
    };
    let bytes = |what: &str| Ok::<_, Failure>(schema::count(&work.run(&of(what), &[])?).unwrap_or(0));
    let (known, used) = (bytes("total_blocks")?, bytes("used_blocks")?);
    let total = known.max(size_on_disk(path));
    let free = bytes("free_blocks")?.max(total.saturating_sub(used));
    Ok((free >= SMALLEST_GAIN && free >= total / SMALLEST_SHARE).then_some(used))
}

fn refuse_without_room(path: &Path, live: u64) -> Result<(), Failure> {
    // A tenth more, as blocks of a copy may be filled otherwise.
    let needed = live + live / 10 + SMALLEST_GAIN;
    match Volume::at_path(path) {
        Ok(volume) if volume.free < needed => Err(Failure::DiskFull {
            message: format!("{volume}, and a copy of what is in use needs {}", Bytes(needed)),
        }),
        _ => Ok(()),
    }
}

fn own_name(connection: &Connection) -> Result<String, Failure> {
    let rows = Work::uninterrupted(connection).run("SELECT current_database()", &[])?;
    let name = rows.into_iter().flatten().next();
    Ok(name.map(|name| name.to_string()).unwrap_or_default())
}

/// Copies comments, which hold the tags and are not copied by every version of the engine.
fn copy_comments(work: &Work<'_>, own: &str) -> Result<(), Failure> {
    let commented = format!(
        "SELECT 'TABLE', schema_name, table_name, comment FROM duckdb_tables() \
         WHERE database_name = {db} AND comment IS NOT NULL AND NOT internal \
         UNION ALL SELECT 'VIEW', schema_name, view_name, comment FROM duckdb_views() \
         WHERE database_name = {db} AND comment IS NOT NULL AND NOT internal",
        db = DuckDb.text(own)
    );
    for row in work.run(&commented, &[])? {
        let Ok(
            [
                Value::Text(word),
                Value::Text(schema),
                Value::Text(name),
                Value::Text(comment),
            ],
        ) = <[Value; 4]>::try_from(row)
        else {
            continue;
        };
        let place = format!("{COPY}.{}.{}", DuckDb.name(&schema), DuckDb.name(&name));
        let comment = DuckDb.text(&comment);
        work.run(&format!("COMMENT ON {word} {place} IS {comment}"), &[])?;
    }
    Ok(())
}

/// Lists the content of a database, one line each: objects, and each table's number of rows with a checksum.
fn contents(work: &Work<'_>, database: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for sql in OBJECTS.iter().chain([&TYPES]) {
        let rows = work.run(&sql.replace("$db", &DuckDb.text(database)), &[])?;
        lines.extend(rows.into_iter().flatten().map(|line| line.to_string()));
    }
    let tables = format!(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = {} AND NOT internal",
        DuckDb.text(database)
    );
    for row in work.run(&tables, &[])? {
        let names: Vec<String> = row.iter().map(|name| DuckDb.name(&name.to_string())).collect();
        let place = names.join(".");
        let from = format!("{}.{place}", DuckDb.name(database));
        let sum = format!(
            "SELECT concat_ws(' ', count(*), sum(hash(_watershed_row)::HUGEINT)) FROM {from} AS _watershed_row"
        );
        let sum = work.run(&sum, &[])?;
        let sum = sum.into_iter().flatten().next();
        lines.push(format!("rows {place} {}", sum.unwrap_or(Value::Null)));
    }
    lines.sort();
    Ok(lines)
}

fn unfaithful(ours: &[String], theirs: &[String]) -> Failure {
    let missing = ours.iter().find(|line| theirs.binary_search(line).is_err());
    let what = missing.or_else(|| theirs.iter().find(|line| ours.binary_search(line).is_err()));
    let what = what.map(String::as_str).unwrap_or("its contents");
    Failure::Fatal {
        message: format!("the copy of the file is not equal ({what}), so the file was left as it is"),
    }
}

/// Syncs the copy to disk and renames it over the original.
fn put_in_place(copy: &Path, path: &Path) -> std::io::Result<()> {
    // Whoever could not read the file before can't read the copy.
    fs::set_permissions(copy, fs::metadata(path)?.permissions())?;
    File::open(copy)?.sync_all()?;
    // An orderly close leaves none; one that stayed holds what the copy was made with.
    let _ = fs::remove_file(wal_path(path));
    fs::rename(copy, path)?;
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn copy_path(path: &Path) -> PathBuf {
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".{ENDING}"));
    copy.into()
}

fn remove_copy(copy: &Path) -> Result<(), Failure> {
    for path in [copy.to_owned(), wal_path(copy)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("can't remove what is left of an earlier copy: {error}");
                return Err(Failure::Open(OpenError::Io { path, message }));
            }
            _ => {}
        }
    }
    Ok(())
}
