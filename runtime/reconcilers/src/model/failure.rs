//! Errors of models without a fresh output, in the form in which they are stored.

use std::path::Path;
use std::sync::Arc;

use watershed_api::hint;
use watershed_core::{Error, ErrorKind, Ref, SourcePosition};
use watershed_drivers::data_file::MOST_LEVELS;
use watershed_drivers::files::FilesError;
use watershed_drivers::olap::{BuildError, ColumnsDiffer, Failure, RenameError, SqlError};
use watershed_drivers::volume::Bytes;

use super::{plan::BuildReason, source::SourceError};

pub(crate) use watershed_outputs::failure::*;

/// The error code for a failed ref.
pub(crate) const REF_FAILED: &str = "ref-failed";

/// Returns the error for a failed ref, because of which the model was skipped and its last good output stays.
pub(super) fn failed_ref(to: &Ref) -> Error {
    let message = format!("not built, because {} \"{}\" has failed", to.kind, to.name);
    Error::new(ErrorKind::Dependency(to.clone()), REF_FAILED, message)
}

/// The error code for a model built from the last good output of a failed ref.
pub const STALE_INPUT: &str = "stale-input";

/// Returns the error for an edited model that was built from the last good output of a failed ref; the model stays
/// blocked by the ref.
pub(super) fn built_on_stale(to: &Ref) -> Error {
    let message = format!(
        "built from the last good rows of {} \"{}\", which has failed",
        to.kind, to.name
    );
    Error::new(ErrorKind::Dependency(to.clone()), STALE_INPUT, message)
}

/// Returns the error for an edited model that could not be built from the last good output of a failed ref. Only failed
/// tests and transient errors are reported as the model's own, since the edit may need the ref's new output.
pub(super) fn unbuilt_on_stale(to: &Ref, error: Error) -> Error {
    if error.kind != ErrorKind::Permanent || error.code.starts_with("test-") {
        return error;
    }
    let hint = format!("from its last good rows it can't be built: {}", error.message);
    Error {
        hint: Some(hint.into()),
        details: error.details,
        place: error.place,
        ..failed_ref(to)
    }
}

pub(super) fn from_files(error: &FilesError) -> Error {
    let (code, kind) = match error {
        FilesError::Missing { .. } | FilesError::NoMatch { .. } => ("missing-file", ErrorKind::Permanent),
        FilesError::Folder { .. } | FilesError::Odd { .. } => ("not-a-file", ErrorKind::Permanent),
        FilesError::TooMany { .. } => ("too-many-files", ErrorKind::Permanent),
        FilesError::Workbooks { .. } => ("several-workbooks", ErrorKind::Permanent),
        FilesError::Pattern { .. } => ("bad-pattern", ErrorKind::Permanent),
        FilesError::Outside { .. } => ("outside-sandbox", ErrorKind::Permanent),
        FilesError::Empty { .. } => (EMPTY_CODE, ErrorKind::Permanent),
        FilesError::TooDeep { .. } => ("nested-too-deep", ErrorKind::Permanent),
        FilesError::CutOff { .. } => ("file-cut-off", ErrorKind::Permanent),
        FilesError::Uneven { .. } => ("sql-invalid-input", ErrorKind::Permanent),
        FilesError::Utf16BigEndian { .. } | FilesError::Undecodable { .. } => {
            (ENCODING_CODE, ErrorKind::Permanent)
        }
        FilesError::Io { .. } => ("file-unreadable", ErrorKind::Transient),
    };
    let confined = confined();
    let hint = match error {
        FilesError::Outside { .. } => Some(confined.as_str()),
        FilesError::Empty { .. } => Some(EMPTY_HINT),
        FilesError::CutOff { .. } => {
            Some("what writes it may not be done, or was interrupted: write it again")
        }
        FilesError::Utf16BigEndian { .. } => Some(
            "write it as UTF-8: `iconv -f UTF-16BE -t UTF-8 FILE`; UTF-16 with the low byte first is read",
        ),
        FilesError::Uneven { .. } => Some(
            "`null_padding` fills missing values with NULL; `ignore_errors` leaves such rows out; `delim` says what separates values",
        ),
        FilesError::Workbooks { .. } => Some(
            "a source whose `path` is the pattern reads all; in SQL, `UNION ALL BY NAME` puts several together",
        ),
        FilesError::TooDeep { most, .. } if *most < MOST_LEVELS => {
            Some("`maximum_depth: 10` makes columns of the first 10 levels, and JSON of what is below")
        }
        _ => None,
    };
    let place = match error {
        FilesError::CutOff { path, line } => line.map(|line| (path, line)),
        FilesError::Undecodable { path, line, .. } | FilesError::Uneven { path, line, .. } => {
            Some((path, *line))
        }
        _ => None,
    };
    let place = place.map(|(path, line)| SourcePosition {
        path: path.as_str().into(),
        line,
        column: 1,
    });
    Error {
        hint: hint.map(Arc::from),
        place,
        ..Error::new(kind, code, with_source(error))
    }
}

/// The error code for an unsupported encoding.
const ENCODING_CODE: &str = "encoding-unsupported";

/// The error code for an empty input.
const EMPTY_CODE: &str = "empty-file";

/// The hint in the error for an empty input.
const EMPTY_HINT: &str =
    "what writes it may not be done; where it may be empty, `columns` says what its columns are";

/// Returns the error for partitions that read rows of a database, which is not supported.
pub(super) fn partitioned_database() -> Error {
    let message = "partitions of what a database yields are not supported yet";
    Error {
        hint: Some("read the table whole in a source, and partition a model that reads that".into()),
        ..Error::permanent("not-supported-yet", message)
    }
}

pub(super) fn from_source(error: &SourceError) -> Error {
    Error {
        hint: error.hint().map(Arc::from),
        ..Error::permanent(error.code(), error.to_string())
    }
}

/// Returns the error for partitions in a place which can't be listed yet.
pub(super) fn remote_partitions(pattern: &str) -> Error {
    let message = format!("partitions by the files of `{pattern}` are not supported yet");
    Error {
        hint: Some("partitions are local files, or rows of `partitions: {sql: ...}`".into()),
        ..Error::permanent("not-supported-yet", message)
    }
}

/// Returns the error for partitions that are listed neither by SQL nor by files.
pub(super) fn unknown_partition_resolver(resolver: &str) -> Error {
    let message = format!("partitions by `{resolver}` are not supported yet");
    Error {
        hint: Some("write `partitions: {sql: ...}` or `partitions: {glob: ...}`".into()),
        ..Error::permanent("not-supported-yet", message)
    }
}

/// Returns the error for an empty list of partitions.
pub(super) fn no_partitions() -> Error {
    Error {
        hint: Some("the list under `partitions:` has no row".into()),
        ..Error::permanent(NO_PARTITIONS_CODE, "no partitions found")
    }
}

/// Returns the error for a model with more partitions than allowed.
pub(super) fn too_many_partitions(most: usize) -> Error {
    let message = format!("the model has more than {most} partitions");
    Error {
        hint: Some("list larger ones: a month instead of a day, a folder instead of a file".into()),
        ..Error::permanent(TOO_MANY_PARTITIONS_CODE, message)
    }
}

/// Returns the error for a query of partitions that the engine refuses.
pub(super) fn from_partition_query(error: &SqlError) -> Error {
    let message = format!("the partitions can't be listed: {}", error.message);
    Error::permanent(from_sql(error).code, message)
}

/// Returns the error for a failure of the first partition in a first build, so that the others were not tried.
pub(super) fn first_partition(data: &str, error: Error) -> Error {
    Error {
        message: format!("the first partition, {data}, failed: {}", error.message).into(),
        ..error
    }
}

/// Returns the error about failed partitions, with the details of one.
pub(super) fn failed_partitions(name: &str, count: u64, data: &str, first: &Error, published: bool) -> Error {
    let message = match count {
        1 => format!("a partition failed: {data}: {}", first.message),
        count => format!("{count} partitions failed; the first, {data}: {}", first.message),
    };
    let rest = match published {
        true => "the rows of the others are there",
        false => "nothing is replaced until all succeed",
    };
    let list = hint::operation_with("partitions", [name], &[("errored", "")]);
    let hint = format!("{list} lists them; the next run builds them again; {rest}");
    Error {
        place: first.place.clone(),
        hint: Some(hint.into()),
        ..Error::permanent(PARTITIONS_CODE, message)
    }
}

/// The error code for failed partitions.
pub(super) const PARTITIONS_CODE: &str = "partitions-failed";
/// The error code for an empty list of partitions.
const NO_PARTITIONS_CODE: &str = "no-partitions";
/// The error code for a list of partitions that is too long.
const TOO_MANY_PARTITIONS_CODE: &str = "too-many-partitions";

/// Returns the error for a state that is not fetched by SQL.
pub(super) fn unknown_state_resolver(resolver: &str) -> Error {
    let message = format!("a state by `{resolver}` is not supported yet");
    Error {
        hint: Some("write `state: {sql: ...}`".into()),
        ..Error::permanent("not-supported-yet", message)
    }
}

/// The error code for rows with other columns than the table's.
pub(super) const COLUMNS_CODE: &str = "columns-changed";

/// The error code for a query that names a table which does not exist.
pub(crate) const UNKNOWN_TABLE: &str = "unknown-table";

/// The error code for an edit that waits for approval.
pub const HELD_CODE: &str = "held-change";

/// Returns the error for an edit that would discard rows which a new build may not restore.
pub(crate) fn held_edit(name: &str, reason: &BuildReason) -> Error {
    if *reason == BuildReason::Moved {
        return held_move(name);
    }
    let message = format!("held: {reason}, and a new build would throw away the rows that are there");
    let hint = format!(
        "`watershed approve {name}` has them made anew; \
         `change_mode: patch` keeps them and goes on by the new definition; or take the edit back"
    );
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(HELD_CODE, message)
    }
}

/// Returns the error for rows in the place where models were built before, which a build in the new one may not bring back.
fn held_move(name: &str) -> Error {
    let message = "held: models are built in another place than before, where a new build may not bring back all of its rows";
    let hint = format!(
        "its table stays in the place of before; `watershed approve {name}` builds it here from what can be read now; \
         or name the `olap_connector` of before again"
    );
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(HELD_CODE, message)
    }
}

/// Returns the error for a protected output that can't be dropped, since the trash has no room for it.
pub(super) fn held_drop(name: &str, needs: u64, room: u64) -> Error {
    let (needs, room) = (Bytes(needs), Bytes(room));
    let message = format!(
        "held: its file is gone, and the trash has no room for its rows: they take {needs}, and {room} are left"
    );
    let hint = format!(
        "`watershed approve {name}` drops them for good; `trash: {{size: ...}}` in the manifest makes room; \
         or bring the file back"
    );
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(HELD_CODE, message)
    }
}

/// Returns the error for a query that names a resource which was removed, or has another name now.
pub(crate) fn lost_input(name: &str, renamed: Option<&str>) -> Error {
    let (message, hint) = match renamed {
        Some(to) => (
            format!("its query reads \"{name}\", which is called \"{to}\" now"),
            format!("write `{to}` in its place"),
        ),
        None => (
            format!("its query reads \"{name}\", which no file declares any more"),
            "bring the file back, or read something else".to_owned(),
        ),
    };
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(UNKNOWN_TABLE, message)
    }
}

pub(super) fn from_rename(error: &RenameError) -> Error {
    match error {
        RenameError::NameTaken { .. } => taken_name(error.to_string()),
        RenameError::Absent => Error::permanent("output-missing", error.to_string()),
        RenameError::Failed(failure) => from_failure(failure),
    }
}

/// Returns the error of a build, and the offset in the sent SQL that it is about, if any.
pub(super) fn from_build(error: &BuildError) -> (Error, Option<usize>) {
    match error {
        BuildError::NameTaken { .. } => (taken_name(error.to_string()), None),
        BuildError::Absent => (Error::transient("output-missing", error.to_string()), None),
        BuildError::Columns(differ) => (changed_columns(differ), None),
        BuildError::NoColumns => (
            Error {
                hint: Some(EMPTY_HINT.into()),
                ..Error::permanent(EMPTY_CODE, error.to_string())
            },
            None,
        ),
        BuildError::SameKey { .. } => (duplicate_key(error.to_string()), None),
        BuildError::Order(sql) => (from_sql(sql), None),
        // Told by callers that know the texts.
        BuildError::Before(hook) => (from_sql(&hook.error), None),
        BuildError::After { hook, build } => match build {
            Some(build) => from_build(build),
            None => (from_sql(&hook.error), None),
        },
        BuildError::State(sql) => {
            let message = format!("the query of `state` fails: {}", sql.message);
            let hint = sql.hint.as_deref().map(Arc::from);
            (
                Error {
                    hint,
                    ..Error::permanent(sql_code(sql), message)
                },
                None,
            )
        }
        // Callers that hand in tests name them.
        BuildError::Undone(_) => (Error::permanent("test-failed", error.to_string()), None),
        BuildError::Failed(Failure::Sql(sql)) => (from_sql(sql), sql.offset),
        BuildError::Failed(failure) => (from_failure(failure), None),
    }
}

fn changed_columns(differ: &ColumnsDiffer) -> Error {
    let way_out = match differ.retyped.is_empty() {
        true => "`output.on_schema_change: append_new_columns` (or `ignore`) takes such rows",
        false => {
            "cast it in the query to the type that the table has; \
             `output.on_schema_change: append_new_columns` has the table's become wider where one type holds both"
        }
    };
    let refresh = hint::operation_with("refresh", [], &[("full", "NAME")]);
    Error {
        hint: Some(format!("{way_out}; {refresh} makes the table anew").into()),
        ..Error::permanent(COLUMNS_CODE, differ.to_string())
    }
}

fn duplicate_key(message: String) -> Error {
    let hint = "`output.unique_key` names columns whose values no two rows share: \
                add one, or keep one row of each key with `QUALIFY row_number() OVER (PARTITION BY ...) = 1`";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent("same-key", message)
    }
}

/// Returns the line of a data file at which a build failed; paths below `root`, the project's folder, are made
/// relative.
pub(super) fn data_place(error: &BuildError, root: &Path) -> Option<SourcePosition> {
    let BuildError::Failed(Failure::Sql(sql)) = error else {
        return None;
    };
    let data = sql.data.as_ref()?;
    let file = Path::new(&data.file);
    let below = file.strip_prefix(root).unwrap_or(file);
    Some(SourcePosition {
        path: below.to_string_lossy().as_ref().into(),
        line: data.line,
        column: 1,
    })
}

/// Returns the error for an output whose name another model's output has.
pub(super) fn shared_output(table: &str, other: &str) -> Error {
    let hint = Some(Arc::from("give one of them another `output.table`"));
    Error {
        hint,
        ..Error::permanent(
            "output-shared",
            format!("\"{table}\" is the output of model \"{other}\" too"),
        )
    }
}

/// Returns the error for SQL of a model that is meant for a database which only a connector can reach.
pub(super) fn other_database(connector: &str, paths: &[Arc<str>]) -> Error {
    let hint = "name a table of it, `table: orders`, and query that in another model";
    Error {
        hint: Some(hint.into()),
        place: paths.first().map(|path| SourcePosition {
            path: Arc::clone(path),
            line: 1,
            column: 1,
        }),
        ..Error::permanent(
            "connector-unsupported",
            format!("reading the database of connector \"{connector}\" is not supported yet"),
        )
    }
}

/// Returns the error for a build that exceeded its time limit.
pub(super) fn timeout(seconds: u64) -> Error {
    let hint = Some(Arc::from("raise the model's `timeout`"));
    Error {
        hint,
        ..Error::permanent("timeout", format!("the build took longer than {seconds} s"))
    }
}

/// Returns true if an error is about an encoding that the engine can't read.
pub(super) fn is_of_encoding(error: &Error) -> bool {
    let is_missing = &*error.code == "missing-extension" && error.message.contains("`encodings`");
    is_missing || &*error.code == ENCODING_CODE || error.message.contains("does not support the encoding")
}

fn taken_name(message: String) -> Error {
    let hint = Some(Arc::from(
        "rename or drop it by hand, or give the model another name",
    ));
    Error {
        hint,
        ..Error::permanent("name-taken", message)
    }
}

fn with_source(error: &FilesError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_says_gets_a_stable_code() {
        let code = |class: &str, message: &str| {
            let error = SqlError {
                class: class.into(),
                message: message.into(),
                offset: Some(3),
                ..SqlError::default()
            };
            let (error, offset) = from_build(&BuildError::Failed(Failure::Sql(error)));
            assert_eq!(offset, Some(3));
            error.code.to_string()
        };
        assert_eq!(code("parser", "syntax error at or near \"x\""), "sql-syntax");
        assert_eq!(
            code("binder", "Referenced column \"x\" not found"),
            "unknown-column"
        );
        assert_eq!(
            code("catalog", "Table with name x does not exist!"),
            "unknown-table"
        );
        assert_eq!(code("conversion", "Could not convert"), "sql-conversion");
        assert_eq!(code("out of range", "Overflow"), "sql-out-of-range");
        assert_eq!(code("planner", "No plan"), "sql");
    }

    #[test]
    fn an_object_of_somebody_else_is_named() {
        let kind = watershed_drivers::olap::OutputKind::Table;
        let (error, _) = from_build(&BuildError::NameTaken {
            name: "orders".into(),
            kind,
        });
        assert_eq!(&*error.code, "name-taken");
        assert!(error.message.contains("orders"), "{}", error.message);
    }
}
