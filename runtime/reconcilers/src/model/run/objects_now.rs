//! The current objects of a source, queried from their stores when due.

use watershed_core::Error;
use watershed_drivers::files::FileNow;

use super::{stores, subject::Subject};
use crate::model::{failure, objects::Objects, record::Record, source, statement, triggers::triggers};

/// Returns the current objects that a source reads; none if it reads no objects, or no query is due.
pub(super) async fn look(
    subject: Subject<'_>,
    record: Option<&Record>,
) -> Result<Option<Vec<FileNow>>, Error> {
    let spec = subject.spec();
    let Some(driver) = source::store(spec) else {
        return Ok(None);
    };
    if !is_time_to_ask(subject, record)? {
        return Ok(None);
    }
    let secrets = subject.outputs().secrets();
    let scope = statement::scope(
        secrets.open(&spec.variables)?,
        subject.name(),
        &subject.model.environment,
    );
    let addresses = source::versions(spec, &scope).map_err(|error| failure::from_source(&error))?;
    let access = stores::access_of(subject, &spec.input_connector, driver)?;
    if let Some(sandbox) = subject.outputs().sandbox() {
        for address in &addresses {
            stores::refuse_unreached(sandbox, &access, address)?;
        }
    }
    let objects = Objects {
        access,
        addresses,
        cancel: subject.cancel(),
    };
    subject.context.progress("asking the store for its objects");
    let found = objects
        .look()
        .await
        .map_err(|error| secrets.redact_error(error))?;
    Ok(Some(found))
}

/// Returns true if a build is requested by a refresh, a schedule or a changed definition, so that stores are asked for
/// changes.
pub(super) fn is_time_to_ask(subject: Subject<'_>, record: Option<&Record>) -> Result<bool, Error> {
    let Some(record) = record else { return Ok(true) };
    let due = triggers(subject.spec(), record, subject.context.now()).due;
    Ok(due || subject.asked() != record.answered || subject.meaning()? != record.meaning)
}
