//! The state of the DuckLake that a source reads.

use watershed_core::Error;
use watershed_dialect::ENGINE;
use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{Attached, Statements as _, System, TableName};

use super::Run;
use crate::model::{failure, lake::Part, objects, record::Record, source, statement};

impl Run<'_> {
    /// Asks the lake that a source reads for its state, if this is a time to ask; none if it reads no lake, or that of the
    /// last build stands.
    pub(super) async fn lake(&self, record: Option<&Record>) -> Result<Option<Vec<FileNow>>, Error> {
        if source::database(self.spec()) != Some(System::DuckLake) || !self.is_time_to_ask(record)? {
            return Ok(None);
        }
        let spec = self.opened_spec()?;
        let databases = self.databases(&spec)?;
        let Some(
            lake @ Attached {
                lake: Some(parts), ..
            },
        ) = databases.first()
        else {
            return Ok(None);
        };
        let table = match spec.sql {
            Some(_) => None,
            None => {
                let scope = statement::scope(spec.variables.clone(), self.name(), &self.model.environment);
                source::table(&spec, &scope).map_err(|error| failure::from_source(&error))?
            }
        };
        let part = Part {
            connector: &spec.input_connector,
            attached: &lake.name,
            table: table.as_deref().and_then(TableName::parse),
            snapshot: parts.snapshot.as_ref(),
        };
        let address = part.address();
        let then = objects::remembered(record);
        let then = then.into_iter().find(|file| file.path == address);
        self.context.progress("asking the lake whether anything changed");
        let question = ENGINE.write(&part.question(then.as_ref()));
        let olap = self.model.outputs.olap();
        let row = olap.first_row(lake, &question, self.cancel()).await;
        let row = row.map_err(|failure| failure::from_failure(&failure))?;
        let now = row.and_then(|row| part.now(then.as_ref(), &row));
        Ok(now.map(|now| vec![now]))
    }
}
