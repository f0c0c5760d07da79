//! Opening of a lake: attached to the engine, and set up by the first project that builds in it.

use super::epoch::roll_back;
use super::keeping::Keeping;
use super::{ALIAS, Lake, Stop, name, quoted, run, text};
use crate::duckdb::attach_error;
use crate::duckdb::attachment;
use crate::duckdb::failure::{classify, classify_open};
use crate::duckdb::options::Options;
use crate::duckdb::sys::{Connection, RawError};
use crate::olap::{Access, DatabaseCause, DatabaseError, Failure, OpenError, Rights, System, Value};

/// Version of our tables in a lake.
const FORMAT: &str = "1";

/// Table with the project that builds in the lake. Made last, so that a lake that has it has all.
const PROJECT: &str = "project";

/// Rows of our own tables that the catalog holds itself, without a file for each.
const INLINED_ROWS: u32 = 10_000;

/// Our tables that only lakes have, or have in another form.
const OWN: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS _watershed.records \
     (uid UUID NOT NULL, build UUID NOT NULL, row_count BIGINT, record BLOB, number BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _watershed.epochs (epoch BIGINT NOT NULL, owner UUID NOT NULL, number BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _watershed.project (name VARCHAR NOT NULL, format VARCHAR NOT NULL)",
];

/// Connections to the catalog's server beside those of work that was let in: for what opens and closes the lake.
const BESIDE_WORK: usize = 2;

/// Phrases in messages about a catalog that may not be written.
const READ_ONLY: [&str; 4] = [
    "readonly database",
    "read-only",
    "permission denied",
    "must be owner",
];

impl Lake {
    /// Attaches the lake to an engine in memory, and puts it to use.
    ///
    /// # Errors
    /// [`OpenError::Missing`] for a reader where there is no lake; [`OpenError::Locked`] for a catalog in a file of the engine
    /// that another process has open.
    pub(in crate::duckdb) fn attach(
        &self,
        connection: &Connection,
        options: &Options,
    ) -> Result<(), Failure> {
        let access = options.access;
        let mut database = self.home.database.clone();
        let missing = || {
            let path = self
                .file()
                .map_or_else(|| database.connector.clone().into(), Into::into);
            Failure::Open(OpenError::Missing { path })
        };
        match (access, self.file()) {
            (Access::ReadOnly, Some(file)) if !file.exists() => return Err(missing()),
            (Access::ReadWrite, Some(file)) => {
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder).map_err(|error| {
                        let (path, message) = (folder.to_owned(), error.to_string());
                        Failure::Open(OpenError::Io { path, message })
                    })?;
                }
            }
            _ => {}
        }
        if access == Access::ReadOnly {
            database.rights = Rights::Read;
        }
        let journal: &[&str] = match database.keeper() {
            System::Sqlite => &["META_JOURNAL_MODE 'WAL'"],
            _ => &[],
        };
        for sql in attachment::begin_with(&database, journal) {
            let Err(raw) = run(connection, &sql) else { continue };
            let failure = self.unattached(&raw);
            return Err(match &failure {
                Failure::Database(error)
                    if access == Access::ReadOnly && error.cause == DatabaseCause::NoLake =>
                {
                    missing()
                }
                _ => failure,
            });
        }
        self.bound_connections(connection, options)
            .map_err(|raw| self.unattached(&raw))?;
        self.put_to_use(connection)
    }

    /// Has work wait for a connection to the catalog's server, of which there are as many as the engine has: one that is open
    /// holds one of the server's, and no more are opened beside them.
    fn bound_connections(&self, connection: &Connection, options: &Options) -> Result<(), RawError> {
        if self.home.database.keeper() != System::Postgres {
            return Ok(());
        }
        let most = options.connections.get() + BESIDE_WORK;
        let wait = format!(
            "FROM postgres_configure_pool(catalog_name => '__ducklake_metadata_{ALIAS}', \
             acquire_mode => 'wait', max_connections => {most})"
        );
        run(connection, &wait).map(drop)
    }

    /// Has a connection look up names in the lake first.
    pub(in crate::duckdb) fn put_to_use(&self, connection: &Connection) -> Result<(), Failure> {
        run(connection, &format!("USE {ALIAS}"))
            .map(drop)
            .map_err(|raw| classify(&raw, None).0)
    }

    fn unattached(&self, raw: &RawError) -> Failure {
        if let Some(file) = self.file()
            && let locked @ OpenError::Locked { .. } = classify_open(raw, file)
        {
            return Failure::Open(locked);
        }
        match classify(raw, None).0 {
            Failure::Sql(error) => Failure::Database(attach_error::read(&self.home.database, &error.message)),
            failure => failure,
        }
    }

    /// Makes our schema and tables, unless they are there.
    ///
    /// # Errors
    /// [`DatabaseCause::Taken`] in the lake of another project, which is left as it is.
    pub(in crate::duckdb) fn set_up(&self, connection: &Connection, tables: &[&str]) -> Result<(), Failure> {
        self.try_to_set_up(connection, tables).map_err(|stop| {
            stop.into_failure(|raw| match READ_ONLY.iter().any(|words| raw.0.contains(words)) {
                true => self.read_only(),
                false => match classify(raw, None).0 {
                    Failure::Sql(error) => {
                        Failure::Database(attach_error::read(&self.home.database, &error.message))
                    }
                    failure => failure,
                },
            })
        })
    }

    /// Returns true if our schema and tables are there.
    pub(in crate::duckdb) fn is_set_up(&self, connection: &Connection) -> Result<bool, RawError> {
        let tables = self.own_tables(connection)?;
        Ok(tables.iter().any(|table| table == PROJECT))
    }

    fn try_to_set_up(&self, connection: &Connection, tables: &[&str]) -> Result<(), Stop> {
        if self.is_set_up(connection)? {
            self.refuse_other_projects(connection)?;
            self.refuse_read_only(connection)?;
            return Ok(self.note_newest_epoch(connection)?);
        }
        let inline =
            |rows: u32, of: &str| format!("CALL {ALIAS}.set_option('data_inlining_row_limit', {rows}{of})");
        run(connection, "CREATE SCHEMA IF NOT EXISTS _watershed")?;
        run(connection, &inline(0, ""))?;
        run(connection, &inline(INLINED_ROWS, ", schema => '_watershed'"))?;
        run(connection, "BEGIN TRANSACTION")?;
        let made = OWN
            .iter()
            .chain(tables)
            .try_for_each(|sql| run(connection, sql).map(drop))
            .and_then(|()| {
                let name = quoted(&self.home.project);
                let row = format!("INSERT INTO _watershed.project VALUES ({name}, '{FORMAT}')");
                run(connection, &row).map(drop)
            })
            .and_then(|()| run(connection, "COMMIT").map(drop));
        made.inspect_err(|_| roll_back(connection))?;
        if let Err(raw) = (Keeping {
            lake: self,
            connection,
        })
        .claim_place()
        {
            // Files of nobody stay then.
            tracing::warn!(error = %raw.0, "the place of a lake's files can't be claimed");
        }
        Ok(())
    }

    /// Refuses a login to a server that may not write to the catalog. A file that may not be written is not attached.
    fn refuse_read_only(&self, connection: &Connection) -> Result<(), Stop> {
        if self.home.database.keeper() != System::Postgres {
            return Ok(());
        }
        let schema = self.schema();
        let table = format!("{}.ducklake_snapshot", name(schema));
        let may = quoted(&format!(
            "SELECT has_table_privilege({}, 'INSERT')",
            quoted(&table)
        ));
        let rows = run(
            connection,
            &format!("SELECT * FROM postgres_query('__ducklake_metadata_{ALIAS}', {may})"),
        )?;
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Boolean(false)) => Err(Stop::Failed(self.read_only())),
            _ => Ok(()),
        }
    }

    fn read_only(&self) -> Failure {
        self.refused(DatabaseCause::ReadOnly, "the lake's catalog may only be read")
    }

    fn refuse_other_projects(&self, connection: &Connection) -> Result<(), Stop> {
        let rows = run(connection, "SELECT name, format FROM _watershed.project LIMIT 1")?;
        let mut row = rows.into_iter().next().unwrap_or_default().into_iter();
        let (name, format) = (row.next().and_then(text), row.next().and_then(text));
        if format.as_deref() != Some(FORMAT) {
            let message = "another version of Watershed keeps its records there";
            return Err(Stop::Failed(self.refused(DatabaseCause::LakeVersion, message)));
        }
        match name {
            Some(name) if name != self.home.project => {
                let message = format!("the lake is that of another project: {name}");
                Err(Stop::Failed(self.refused(DatabaseCause::Taken, &message)))
            }
            _ => Ok(()),
        }
    }

    fn refused(&self, cause: DatabaseCause, message: &str) -> Failure {
        Failure::Database(DatabaseError {
            connector: self.home.database.connector.clone(),
            cause,
            message: message.to_owned(),
        })
    }
}
