//! Errors of a run with their places, and with a note on the output that remains.

use watershed_core::Error;
use watershed_drivers::olap::{BuildError, Failure, Hooks};
use watershed_proto::Value;

use super::{databases, dialect, kind, known_output::is_elsewhere, subject::Subject};
use crate::model::{
    failure, hooks,
    plan::BuildReason,
    record::{Record, Shape},
    source, statement,
};

/// Returns the error of a build with its place, given the statements that were sent.
pub(super) fn placed(subject: Subject<'_>, error: &BuildError, sent: &str, hooks: &Hooks) -> Error {
    match error {
        BuildError::Before(hook) => {
            return hooks::before_failed(subject.spec(), subject.paths(), hooks, hook);
        }
        BuildError::After { hook, build: None } => {
            return hooks::after_failed(subject.spec(), subject.paths(), hooks, hook);
        }
        BuildError::After {
            hook,
            build: Some(build),
        } => return hooks::joined(placed(subject, build, sent, hooks), hook),
        BuildError::Order(error) => return hooks::order_failed(subject.spec(), subject.paths(), error),
        _ => {}
    }
    let about_sql = matches!(error, BuildError::Failed(Failure::Sql(_)));
    let data = failure::data_place(error, &subject.model.root);
    let (error, offset) = failure::from_build(error);
    let of_statement = || statement::place_of(subject.spec(), subject.paths(), sent, offset);
    // Where a row of data is wrong, the statement is not.
    let about_sql = about_sql && !databases::is_sent_on(subject.spec());
    let error = if about_sql {
        of_workbook(subject, error)
    } else {
        error
    };
    let of_encoding = dialect::place_of_encoding(subject, &error, sent);
    let place = of_encoding
        .or(data)
        .or_else(|| about_sql.then(of_statement).flatten());
    Error {
        place: place.or_else(|| error.place.clone()),
        ..error
    }
}

/// Adds the path of the workbook that a source reads to an error. What the engine says of workbooks names cells alone.
fn of_workbook(subject: Subject<'_>, error: Error) -> Error {
    let path = source::option(subject.spec(), "path").and_then(Value::as_str);
    let is_workbook = |path: &&str| path.to_ascii_lowercase().ends_with(".xlsx");
    match path.filter(is_workbook) {
        Some(path) if subject.spec().sql.is_none() && !error.message.contains(path) => Error {
            message: format!("{} (in \"{path}\")", error.message).into(),
            ..error
        },
        _ => error,
    }
}

/// Returns the error for an edit that is held. A query that could not be built either is told instead: approving that would
/// help nobody, and often the query is as it was and an input has another name.
pub(super) async fn held(subject: Subject<'_>, reason: &BuildReason) -> Error {
    let mistake = mistake(subject).await;
    mistake.unwrap_or_else(|| failure::held_edit(subject.name(), reason))
}

/// Returns the mistake in a model's query; none if the engine finds none, or other statements have to run first.
async fn mistake(subject: Subject<'_>) -> Option<Error> {
    let spec = subject.opened_spec().ok()?;
    let is_alone = spec.sql.is_some()
        && spec.partitions.is_none()
        && spec.pre_exec.is_empty()
        && spec.init_queries.is_empty()
        && !databases::is_sent_on(&spec);
    if !is_alone {
        return None;
    }
    let sql = statement::sql_in(&spec, &subject.scope(&spec), subject.paths()).ok()?;
    let refused = subject.asking().describe(&sql).await.ok()?.err()?;
    let failed = BuildError::Failed(Failure::Sql(refused));
    Some(placed(subject, &failed, &sql, &Hooks::default()))
}

/// Adds to an error that the last good output still exists, if it does.
pub(super) fn tell_what_stays(subject: Subject<'_>, error: Error) -> Error {
    let last = subject
        .context
        .state()
        .and_then(|state| Record::from_state(&state.0));
    let speaks_of_rows =
        [failure::PARTITIONS_CODE, failure::STALE_INPUT, hooks::AFTER_CODE].contains(&&*error.code);
    // Without a table that it names, a view has no rows to read.
    let is_broken = |last: &Record| last.shape == Shape::View && *error.code == *failure::UNKNOWN_TABLE;
    let stays = |last: &Record| !speaks_of_rows && !is_broken(last) && !is_elsewhere(subject);
    let Some(last) = last.filter(stays) else {
        return error;
    };
    let stays = format!("the {} of the last good build stays", kind(last.shape));
    let hint = error
        .hint
        .as_ref()
        .map_or_else(|| stays.clone(), |hint| format!("{hint} ({stays})"));
    Error {
        hint: Some(hint.into()),
        ..error
    }
}
