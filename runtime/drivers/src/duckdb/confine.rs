//! Confinement of an open engine to the folders of a [`Sandbox`].
//!
//! The order matters: the folders can't be named any more once the rest is closed, and nothing can be set once the
//! configuration is locked. Both hold for all connections until the file is closed, whatever SQL says.

use std::path::{Path, PathBuf};

use watershed_api::hint::option;
use watershed_dialect::{DuckDb, Quoting as _};

use super::options::Options;
use super::sys::{Answer, Connection, Effect, FORBIDDEN, RawError};
use crate::olap::{Failure, QueryError, SqlError, leading_words, reads};
use crate::sandbox::{Sandbox, WorkingFolder};

/// Settings that only affect the meaning of statements, and that projects may change inside a sandbox.
const STILL_SET: [&str; 15] = [
    "Calendar",
    "TimeZone",
    // The engine itself sets it while it runs the statements that it makes of a PIVOT.
    "current_transaction_invalidation_policy",
    "default_collation",
    "default_null_order",
    "default_order",
    "disable_timestamptz_casts",
    "ieee_floating_point_ops",
    "integer_division",
    "old_implicit_casting",
    "order_by_non_integer_literal",
    "pivot_filter_threshold",
    "pivot_limit",
    "preserve_insertion_order",
    "scalar_subquery_error_on_multiple_rows",
];

/// Disables the engine's access to anything outside the sandbox.
///
/// # Errors
/// What the engine says, as when an extension is not there, and when the process's working folder is neither the project's nor the empty one: the engine
/// looks at a relative path there before it looks in the project, and would refuse it.
pub(super) fn confine(connection: &Connection, sandbox: &Sandbox, options: &Options) -> Result<(), RawError> {
    refuse_other_folder(options)?;
    for extension in &options.loads {
        let load = format!("LOAD {}", DuckDb.name(extension));
        connection.run(&load, &[]).and_then(Answer::collect)?;
    }
    let working_folder = options.working_folder.as_ref().map(WorkingFolder::path);
    let folders = sandbox.folders().iter().map(PathBuf::as_path);
    let folders = folders.chain(working_folder).map(Path::to_string_lossy);
    let folders = list(folders.map(|folder| DuckDb.text(&folder)));
    let settings = list(STILL_SET.iter().map(|name| DuckDb.text(name)));
    for statement in [
        format!("SET allowed_directories = {folders}"),
        "SET enable_external_access = false".to_owned(),
        format!("SET allowed_configs = {settings}"),
        "SET lock_configuration = true".to_owned(),
    ] {
        connection.run(&statement, &[]).and_then(Answer::collect)?;
    }
    connection.guard();
    Ok(())
}

fn list(texts: impl Iterator<Item = String>) -> String {
    format!("[{}]", texts.collect::<Vec<_>>().join(", "))
}

fn refuse_other_folder(options: &Options) -> Result<(), RawError> {
    let real = |path: &Path| path.canonicalize().ok();
    let here = std::env::current_dir().ok().and_then(|here| real(&here));
    let wanted = options.working_folder.as_ref();
    let wanted = wanted.map_or(options.root.as_path(), WorkingFolder::path);
    if here.is_some() && here == real(wanted) {
        return Ok(());
    }
    Err(RawError(format!(
        "IO Error: in a sandbox the working folder of the process must be `{}`",
        wanted.display()
    )))
}

/// First words of statements that no author runs in a sandbox, which are refused before the engine sees them. Some act upon
/// files, and could write over the state that the process has open; for others the engine reads files, and runs what it
/// finds there.
const REFUSED_WORDS: [&str; 12] = [
    "attach", "call", "copy", "detach", "execute", "export", "force", "import", "install", "load", "pragma",
    "prepare",
];

/// Refuses an author's statement by its first word.
///
/// # Errors
/// When no statement with this word is run in a sandbox.
pub(super) fn refuse_word(sql: &str, is_shared: bool) -> Result<(), Failure> {
    let first = leading_words(sql).next().unwrap_or_default();
    let first = first.as_str();
    match REFUSED_WORDS.contains(&first) {
        true => Err(refused_statement(sql, is_shared)),
        false => Ok(()),
    }
}

/// Refuses an author's statement by what the engine says that it acts upon, whatever its first word seemed to be.
///
/// # Errors
/// When the statement acts upon more than tables.
pub(super) fn refuse_effect(sql: &str, effect: Effect, is_shared: bool) -> Result<(), Failure> {
    let is_permitted = match effect {
        Effect::Tables => true,
        Effect::Explained => reads(sql),
        Effect::Other => false,
    };
    match is_permitted {
        true => Ok(()),
        false => Err(refused_statement(sql, is_shared)),
    }
}

fn refused_statement(sql: &str, is_shared: bool) -> Failure {
    let word = leading_words(sql).next().unwrap_or_default().to_uppercase();
    let run = "SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER, DROP and SET are run";
    let hint = match is_shared {
        true => format!(
            "{run}; for a project that the operator trusts, the service's configuration says `trust: full`"
        ),
        false => format!(
            "{run}; leave {} out for a project that you trust",
            option("sandbox", "")
        ),
    };
    Failure::Sql(SqlError {
        class: CLASS.to_owned(),
        message: format!("the sandbox runs no {word} statement of a project"),
        hint: Some(hint),
        ..SqlError::default()
    })
}

/// Refuses statements that could write through a link to a place outside the sandbox at which nothing is.
///
/// # Errors
/// When there is a link that leads to nothing.
pub(super) fn refuse_dangling_links(sandbox: &Sandbox) -> Result<(), Failure> {
    let Some(link) = sandbox.dangling_link() else {
        return Ok(());
    };
    Err(Failure::Sql(SqlError {
        class: CLASS.to_owned(),
        message: format!(
            "\"{}\" is a link that leads to nothing, through which a statement could write",
            link.display()
        ),
        hint: Some("remove the link".to_owned()),
        ..SqlError::default()
    }))
}

/// Removes what the statements of authors have left in the working folder of the process, where other projects would find
/// it.
///
/// # Errors
/// When something was left that this statement names: it writes a relative path.
pub(super) fn refuse_leftovers(folder: &WorkingFolder, sql: &str) -> Result<(), Failure> {
    let left = folder.clear().map_err(|error| {
        let message = format!("the working folder of the process can't be cleared: {error}");
        Failure::Sql(SqlError {
            class: CLASS.to_owned(),
            message,
            ..SqlError::default()
        })
    })?;
    // Several projects share the folder: what another one left is gone as well, and no fault of this statement.
    let Some(name) = left.iter().find(|name| sql.contains(name.as_str())) else {
        return Ok(());
    };
    Err(Failure::Sql(SqlError {
        class: CLASS.to_owned(),
        message: format!("\"{name}\" was written outside the project: a relative path is for reading only"),
        hint: Some("write the whole path of a file in the project's folder".to_owned()),
        offset: sql.find(name.as_str()),
        ..SqlError::default()
    }))
}

/// Converts the engine's refusal of access outside the sandbox to our message; none for other messages.
pub(super) fn refusal(message: &str) -> Option<String> {
    if message.starts_with(FORBIDDEN) {
        return Some(message.to_owned());
    }
    let quoted = |before: &str| {
        let (_, rest) = message.split_once(before)?;
        rest.split_once('"').map(|(name, _)| name)
    };
    let closed = ["disabled by configuration", "disabled through configuration"];
    if closed.iter().any(|words| message.contains(words)) {
        let path = quoted("Cannot access file \"").or_else(|| quoted("Cannot access directory \""));
        return Some(match path {
            Some(path) => format!("\"{path}\" is outside the sandbox"),
            None if message.contains("extension") => "the sandbox loads no extension".to_owned(),
            None => format!("the sandbox forbids this: {message}"),
        });
    }
    if message.contains("the configuration has been locked") {
        let name = quoted("option \"").unwrap_or("this");
        return Some(format!("the setting \"{name}\" can't be changed in the sandbox"));
    }
    None
}

/// Refuses a file outside the sandbox before any access.
pub(super) fn refuse_outside(sandbox: &Sandbox, file: &Path) -> Result<(), QueryError> {
    if sandbox.holds(file) {
        return Ok(());
    }
    Err(QueryError::Failed(Failure::Sql(SqlError {
        class: CLASS.to_owned(),
        message: format!("\"{}\" is outside the sandbox", file.display()),
        hint: Some(hint()),
        ..SqlError::default()
    })))
}

/// Class of errors about access outside the sandbox.
pub(super) const CLASS: &str = "sandbox";
/// Returns the hint of errors about access outside the sandbox.
pub(super) fn hint() -> String {
    let sandbox = option("sandbox", "");
    format!(
        "with {sandbox} the engine reaches the project's folder and its state alone, loads no extension, and takes no \
         settings but those about the meaning of SQL; run a project that you trust without it (`trust: full` in a service)"
    )
}
