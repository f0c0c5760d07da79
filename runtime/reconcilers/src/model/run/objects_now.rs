//! The objects that a source reads as they are now.

use watershed_core::Error;
use watershed_drivers::files::FileNow;
use watershed_proto::ConnectorSpec;

use super::Run;
use crate::{
    connector,
    model::{failure, objects::Objects, record::Record, source, statement, triggers::triggers},
    refs,
};

impl Run<'_> {
    /// Asks the stores for the objects that a source reads, if this is a time to ask; none if it reads no objects, or those
    /// of the last build stand.
    pub(super) async fn objects(&self, record: Option<&Record>) -> Result<Option<Vec<FileNow>>, Error> {
        let spec = self.spec();
        let Some(driver) = source::store(spec) else {
            return Ok(None);
        };
        if !self.is_time_to_ask(record)? {
            return Ok(None);
        }
        if self.model.outputs.sandbox().is_some() {
            return Err(failure::confined_store());
        }
        let secrets = self.model.outputs.secrets();
        let scope = statement::scope(
            secrets.open(&spec.variables)?,
            self.name(),
            &self.model.environment,
        );
        let addresses = source::versions(spec, &scope).map_err(|error| failure::from_source(&error))?;
        let connector = refs::find(self.context.refs(), connector::KIND, &spec.input_connector);
        let access = match connector.and_then(refs::spec::<ConnectorSpec>) {
            None => None,
            Some(connector) => self.opened_access(&connector)?,
        };
        let objects = Objects {
            access,
            driver,
            addresses,
            cancel: self.cancel(),
        };
        self.context.progress("asking the store for its objects");
        let found = objects
            .look()
            .await
            .map_err(|error| secrets.redact_error(error))?;
        Ok(Some(found))
    }

    /// Returns true if a build is asked for: by a refresh, a schedule, or another definition.
    pub(super) fn is_time_to_ask(&self, record: Option<&Record>) -> Result<bool, Error> {
        let Some(record) = record else { return Ok(true) };
        let due = triggers(self.spec(), record, self.context.now()).due;
        Ok(due || self.asked() != record.answered || self.meaning()? != record.meaning)
    }
}
