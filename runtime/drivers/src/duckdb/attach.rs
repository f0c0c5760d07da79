//! Databases of other systems, attached to the engine during some work.

use std::path::Path;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use watershed_dialect::DuckDb;

use super::attach_error;
use super::attachment;
use super::engine::{Engine, Intent};
use super::failure::{Source, classify};
use super::gate::Company;
use super::install::{MOST_EXTENSIONS, install_for};
use super::options::Options;
use super::transaction::Work;
use crate::olap::{
    Access, Attached, BuildError, Databases, Failure, NamedRow, Olap as _, Query, QueryError, Session,
    Statement, Statements as _, Value,
};

impl Databases for Engine {
    /// Attaches and detaches the database as a test of its connection. The client's time limit applies.
    fn try_out<'a>(
        &'a self,
        database: &'a Attached,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            let mut tried = try_to_attach(self, database, cancel).await;
            for _ in 0..MOST_EXTENSIONS {
                let Err(failure) = &mut tried else { break };
                if !install_for(self, failure, cancel).await {
                    break;
                }
                tried = try_to_attach(self, database, cancel).await;
            }
            tried
        }
        .boxed()
    }

    fn first_row<'a>(
        &'a self,
        database: &'a Attached,
        sql: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<NamedRow>, Failure>> {
        let (databases, sql) = (vec![database.clone()], sql.to_owned());
        let asked = self.work_to(Intent::Read, cancel, Company::Others, move |work| {
            let source = Source {
                prefix: "",
                sql: &sql,
            };
            attached(work, &databases, || work.first_row(source))
        });
        let hidden = |failure| match failure {
            Failure::Sql(mut error) => {
                error.message = database.hide(&error.message);
                Failure::Sql(error)
            }
            failure => failure,
        };
        asked.map(move |asked| asked.map_err(hidden)).boxed()
    }

    fn try_file<'a>(
        &'a self,
        file: &'a Path,
        session: Option<Session>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Value>, QueryError>> {
        let own = self.options();
        let engine = Engine::new(Options {
            access: Access::ReadOnly,
            sandbox: own.sandbox.clone(),
            working_folder: own.working_folder.clone(),
            ..Options::new(file, own.root.clone())
        });
        engine.begin_with(session.into_iter().collect());
        async move {
            let query = Query::new(DuckDb.write(&Statement::Version));
            let asked = async { engine.query(query, cancel).await?.collect().await };
            let rows = asked.await;
            let closed = engine.close().await;
            let version = rows?.into_iter().flatten().next();
            closed?;
            Ok(version)
        }
        .boxed()
    }
}

async fn try_to_attach(
    engine: &Engine,
    database: &Attached,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let databases = vec![database.clone()];
    engine
        .work_to(Intent::Read, cancel, Company::Others, move |work| {
            attached(work, &databases, || Ok::<_, Failure>(()))
        })
        .await
}

/// Runs `body` while databases are attached.
pub(super) fn attached<T, E: From<Failure>>(
    work: &Work<'_>,
    databases: &[Attached],
    body: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let mut letting_go = LettingGo {
        work,
        attached: Vec::new(),
    };
    for database in databases {
        work.check_cancelled()?;
        letting_go.attached.push(database);
        for sql in attachment::begin(database) {
            attach(work, database, &sql)?;
        }
    }
    body()
}

fn attach(work: &Work<'_>, database: &Attached, sql: &str) -> Result<(), Failure> {
    let run = work.connection().run(sql, &[]);
    let Err(raw) = run else { return Ok(()) };
    match classify(&raw, None).0 {
        Failure::Sql(error) => Err(Failure::Database(attach_error::read(database, &error.message))),
        _ => Err(work.fail(&raw, None)),
    }
}

/// Removes settings of database connections from an error that may quote them.
pub(super) fn hidden(databases: &[Attached], error: BuildError) -> BuildError {
    match error {
        BuildError::Failed(Failure::Sql(mut error)) => {
            for database in databases {
                error.message = database.hide(&error.message);
            }
            BuildError::Failed(Failure::Sql(error))
        }
        other => other,
    }
}

/// A guard that detaches the databases when dropped.
struct LettingGo<'a> {
    work: &'a Work<'a>,
    attached: Vec<&'a Attached>,
}

impl Drop for LettingGo<'_> {
    fn drop(&mut self) {
        if self.attached.is_empty() {
            return;
        }
        self.work.hold_interrupts();
        for sql in self
            .attached
            .iter()
            .flat_map(|database| attachment::end(database))
        {
            if let Err(raw) = self.work.connection().run(&sql, &[]) {
                tracing::warn!(error = %raw.0, "a database could not be detached");
            }
        }
    }
}
