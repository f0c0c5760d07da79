//! The objects that a source reads as they are now.

use watershed_core::Error;
use watershed_proto::ConnectorSpec;

use super::Run;
use crate::{
    connector,
    model::{
        failure, objects::Objects, plan::FileNow, record::Record, source, statement, triggers::triggers,
    },
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
        let is_time = match record {
            None => true,
            Some(record) => {
                self.asked() != record.answered
                    || triggers(spec, record, self.context.now()).due
                    || self.meaning()? != record.meaning
            }
        };
        if !is_time {
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
        let addresses = source::addresses(spec, &scope).map_err(|error| failure::from_source(&error))?;
        let connector = refs::find(self.context.refs(), connector::KIND, &spec.input_connector);
        let access = match connector.and_then(refs::spec::<ConnectorSpec>) {
            None => None,
            Some(connector) => {
                let variables = secrets.open(&connector.variables)?;
                let access = connector::access::access(&connector, &variables, &self.model.environment);
                access.map_err(|error| failure::from_render(&error))?
            }
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
}
