//! The state of the DuckLake that a source reads, queried when due.

use watershed_core::Error;
use watershed_dialect::ENGINE;
use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{Attached, Statements as _, System, TableName};

use super::{databases, objects_now, subject::Subject};
use crate::model::{failure, lake::Part, objects, record::Record, source};

/// Returns the current state of the lake that a source reads; none if the source reads no lake, or no query is due.
pub(super) async fn state(
    subject: Subject<'_>,
    record: Option<&Record>,
) -> Result<Option<Vec<FileNow>>, Error> {
    if source::database(subject.spec()) != Some(System::DuckLake)
        || !objects_now::is_time_to_ask(subject, record)?
    {
        return Ok(None);
    }
    let spec = subject.opened_spec()?;
    let databases = databases::databases(subject, &spec).await?;
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
            let scope = subject.scope(&spec);
            source::table(&spec, &scope).map_err(|error| failure::from_source(&error))?
        }
    };
    let part = Part {
        connector: &spec.input_connector,
        attached: &lake.name,
        schema: parts.schema.as_deref(),
        table: table.as_deref().and_then(TableName::parse),
        snapshot: parts.snapshot.as_ref(),
    };
    let address = part.address();
    let then = objects::remembered(record);
    let then = then.into_iter().find(|file| file.path == address);
    subject
        .context
        .progress("asking the lake whether anything changed");
    let question = ENGINE.write(&part.question(then.as_ref()));
    let row = async {
        let databases = subject.outputs().olap().databases()?;
        databases.first_row(lake, &question, subject.cancel()).await
    };
    let row = row.await.map_err(|failure| failure::from_failure(&failure))?;
    let now = row.and_then(|row| part.now(then.as_ref(), &row));
    Ok(now.map(|now| vec![now]))
}
