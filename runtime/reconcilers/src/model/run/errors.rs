//! Errors of a run with their places, and with a note on the output that remains.

use watershed_core::Error;
use watershed_drivers::olap::{BuildError, Failure, Hooks};

use super::{databases, dialect, kind, subject::Subject};
use crate::model::{failure, hooks, record::Record, statement};

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
    let of_encoding = dialect::place_of_encoding(subject, &error, sent);
    let place = of_encoding
        .or(data)
        .or_else(|| about_sql.then(of_statement).flatten());
    Error {
        place: place.or_else(|| error.place.clone()),
        ..error
    }
}

/// Adds to an error that the last good output still exists, if it does.
pub(super) fn tell_what_stays(subject: Subject<'_>, error: Error) -> Error {
    let last = subject
        .context
        .state()
        .and_then(|state| Record::from_state(&state.0));
    let speaks_of_rows =
        [failure::PARTITIONS_CODE, failure::STALE_INPUT, hooks::AFTER_CODE].contains(&&*error.code);
    let Some(last) = last.filter(|_| !speaks_of_rows) else {
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
