//! Export of a model's rows to a table of another database, once its own table is up to date.
//!
//! The table there bears a tag: the model, and what its rows are made of. It is written in the transaction that swaps it with
//! the one of before; so the table says what really happened, and the catalog only which one to ask.

use uuid::Uuid;
use watershed_compilers::{Scope, render_text};
use watershed_core::Error;
use watershed_drivers::olap::{
    Attached, DropTable, Failure, Rights, System, TableError, TableName, Tag, WriteTable,
};
use watershed_outputs::{
    database::Connection,
    refs::{self, CONNECTOR},
    sessions,
};
use watershed_proto::{ConnectorSpec, ExportState, ExportedFiles, FileExport, MapValue};

use super::{databases::check_servers, export::Exporter, stores};
use crate::model::{export, failure, record::Record};

impl Exporter<'_> {
    /// Updates the exported table to the rows of the model. Returns true if anything was written or dropped.
    pub(super) async fn write_table(
        &self,
        export: &FileExport,
        record: &Record,
        known: ExportState,
    ) -> Result<bool, Error> {
        let subject = self.subject;
        if subject.outputs().sandbox().is_some() {
            return Err(failure::confined_database());
        }
        let opened = subject.opened_spec()?;
        let scope = subject.scope(&opened);
        let path = render_text(&export.path, &scope).map_err(|error| failure::from_render(&error))?;
        let files = ExportedFiles {
            path: path.trim().to_owned(),
            made_of: export::made_of(record, export),
            connector: export.connector.clone(),
            database: export.database.clone(),
            ..ExportedFiles::default()
        };
        if let Some(standing) = known.now.clone()
            && export::stands(&known, &files.path, &export.connector, &files.made_of)
        {
            return self.settle_files(standing, known).await;
        }
        let found = refs::find(subject.context.refs(), CONNECTOR, &export.connector);
        let spec = found.and_then(refs::spec::<ConnectorSpec>).unwrap_or_default();
        let database = self.output_database(&files, &spec)?;
        check_servers(subject, &database).await?;
        let job = WriteTable {
            output: subject.table().to_owned(),
            database,
            name: name(&files)?,
            tag: Tag {
                uid: subject.uid(),
                build: build_of(&files),
            },
        };
        subject
            .context
            .progress(format!("writing {} of {}", files.path, files.connector));
        self.state
            .tell_files(Some(ExportState {
                now: known.now.clone(),
                next: Some(files.clone()),
            }))
            .await?;
        let committed = subject.context.committed().await;
        committed.map_err(|error| Error::transient("state", error.to_string()))?;
        let written = self.send_table(&job).await;
        let rows = written.map_err(|error| self.not_written(&files, &error))?;
        let standing = ExportedFiles { rows, ..files };
        Ok(self.settle_files(standing, known).await? | rows.is_some())
    }

    /// Drops a table that was exported for the model, unless somebody else owns it now.
    pub(super) async fn remove_table(&self, files: &ExportedFiles) -> Result<(), Error> {
        let subject = self.subject;
        let (path, connector) = (&files.path, &files.connector);
        if subject.outputs().sandbox().is_some() {
            tracing::warn!(%path, "outside the sandbox: the table that was written stays");
            return Ok(());
        }
        let Some(spec) = stores::connector_in_catalog(subject, connector) else {
            tracing::warn!(%path, %connector, "there is no such connector any more: the table that was written stays");
            return Ok(());
        };
        let database = self.output_database(files, &spec)?;
        check_servers(self.subject, &database).await?;
        if database.file().is_some_and(|file| !file.is_file()) {
            return Ok(());
        }
        let job = DropTable {
            database,
            name: name(files)?,
            owner: subject.uid(),
        };
        let dropped = async {
            let elsewhere = subject.outputs().olap().elsewhere()?;
            elsewhere.drop_table(&job, subject.cancel()).await
        };
        match dropped.await {
            Ok(_) | Err(TableError::NoSchema(_)) => Ok(()),
            Err(TableError::Taken { .. }) => {
                tracing::warn!(%path, %connector, "somebody else's by now: the table stays");
                Ok(())
            }
            Err(error) => Err(self.not_written(files, &error)),
        }
    }

    /// Returns the database to attach for writing.
    fn output_database(&self, files: &ExportedFiles, spec: &ConnectorSpec) -> Result<Attached, Error> {
        let subject = self.subject;
        let system = System::from_driver(&files.database)
            .ok_or_else(|| Error::permanent(export::UNWRITTEN, "rows can't be written to its database"))?;
        let empty = MapValue::default();
        let scope = Scope {
            environment: subject.model.environment.clone(),
            variables: subject.outputs().secrets().open(&spec.variables)?,
            ..Scope::default()
        };
        let properties = spec.properties.as_ref().unwrap_or(&empty);
        let is_told = matches!(system, System::DuckDb | System::DuckLake);
        if is_told && properties.str("mode") != Some("readwrite") {
            let message = format!("connector \"{}\" is only read", files.connector);
            return Err(Error {
                hint: Some("add `mode: readwrite` to it, and its `path` if it has none".into()),
                ..Error::permanent(export::UNWRITTEN, message)
            });
        }
        if system == System::DuckDb && !sessions::has_file(spec) {
            let message = format!(
                "connector \"{}\" is the engine that models are built on",
                files.connector
            );
            return Err(Error {
                hint: Some("an output of another database names a connector with a `path`".into()),
                ..Error::permanent(export::UNWRITTEN, message)
            });
        }
        let connection = Connection {
            system,
            connector: &files.connector,
            settings: vec![(properties, scope)],
            root: &subject.model.root,
        };
        let attached = connection.attached(&format!("out_of_{}", subject.name()));
        let attached = attached.map_err(|error| failure::from_render(&error))?;
        Ok(Attached {
            rights: Rights::Write,
            ..attached
        })
    }

    /// Writes the table within the time limit of a build.
    async fn send_table(&self, job: &WriteTable) -> Result<Option<u64>, TableError> {
        let subject = self.subject;
        let work = |cancel| async move {
            let elsewhere = subject.outputs().olap().elsewhere()?;
            elsewhere.write_table(job, &cancel).await
        };
        subject.within_limit(work).await.0
    }

    fn not_written(&self, files: &ExportedFiles, error: &TableError) -> Error {
        let (path, connector) = (&files.path, &files.connector);
        let failed = |message: String, hint: &str| Error {
            hint: Some(hint.into()),
            ..Error::permanent(export::UNWRITTEN, message)
        };
        match error {
            TableError::Failed(Failure::Interrupted) if !self.subject.context.is_cancelled() => {
                failure::timeout(self.subject.time_limit().as_secs())
            }
            TableError::Failed(Failure::Interrupted) => failure::cancelled(),
            TableError::Failed(failure) => failure::from_failure(failure),
            TableError::Taken { kind } => {
                let message = format!(
                    "\"{path}\" of \"{connector}\" is a {kind} that this model did not write: it stays as it is"
                );
                let hint = "rename or drop it by hand, and the next run writes the rows there; or give the model another `output.table`";
                Error {
                    hint: Some(hint.into()),
                    ..Error::permanent(export::TAKEN, message)
                }
            }
            TableError::NoSchema(schema) => failed(
                format!("\"{connector}\" has no schema \"{schema}\""),
                "make it there, or name another in `output.table`",
            ),
            TableError::Type { .. } => failed(
                format!("can't write \"{path}\" of \"{connector}\": {error}"),
                "give it another type in the query, or make it text: `to_json(column)::VARCHAR`",
            ),
            TableError::Refused(said) => failed(
                format!("\"{connector}\" refuses \"{path}\": {said}"),
                "what depends on the table, and the rights of the connector's user, are that database's own; the table there is as it was",
            ),
        }
    }
}

fn name(files: &ExportedFiles) -> Result<TableName, Error> {
    TableName::parse(&files.path).ok_or_else(|| {
        let message = format!(
            "rows can't be written to \"{}\": name a table, or a schema and a table",
            files.path
        );
        Error::permanent(export::UNWRITTEN, message)
    })
}

/// Returns an id derived from the build and settings behind the exported rows.
fn build_of(files: &ExportedFiles) -> Uuid {
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(&files.made_of)
        .for_each(|(to, from)| *to = *from);
    Uuid::from_bytes(bytes)
}
