//! Looks at a state folder that no process owns.

use std::time::Duration;

use watershed_controller::HistoryRow;
use watershed_controller::store::StoreError;
use watershed_drivers::duckdb::{Access, Engine};

use super::catalog::Catalog;
use super::compiled::{self, Built};
use super::read::{Reading, Shown};
use super::{Options, engine_options, stream_query};
use crate::exit::Exit;
use crate::report::{Entry, Hidden, names};
use crate::socket::{Answer, Refusal, Replies, Reply, Request, Service};
use crate::state_folder::{Lock, Patience, StateFolder};

/// Most runs that are read of one resource.
const MOST_RUNS: u32 = 100;
/// Another look holds the catalog for a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A state folder that nobody owns; or none at all, where nothing was run yet.
pub(crate) struct Folder {
    options: Options,
    state: StateFolder,
    lock: Option<Lock>,
}

impl Folder {
    /// Looks at a folder while `lock` keeps owners out; without one nothing was ever run there.
    pub(crate) fn new(options: Options, state: StateFolder, lock: Option<Lock>) -> Self {
        Self { options, state, lock }
    }

    async fn answer(&self, request: Request, replies: &Replies) -> Result<(), Refusal> {
        let answer = match request {
            Request::Query {
                sql,
                limit,
                timeout_ms,
            } => {
                return self
                    .query(sql, limit, timeout_ms.map(Duration::from_millis), replies)
                    .await;
            }
            Request::Show { name, limit } => {
                let entries = self.entries().await?;
                match self.reading(&entries, |reading| reading.show(&name))? {
                    Shown::Rows(sql) => return self.query(sql, Some(limit), None, replies).await,
                    Shown::Document(answer) => *answer,
                }
            }
            Request::Status { names, all } => {
                let entries = self.entries().await?;
                let document = self.reading(&entries, |r| r.status(&names, Hidden::unless(all)));
                Answer::Run(Box::new(document?))
            }
            Request::Graph { name, all } => {
                let entries = self.entries().await?;
                self.reading(&entries, |r| r.graph(name.as_deref(), Hidden::unless(all)))?
            }
            Request::History { name, limit } => {
                let (entries, runs) = self.history(name.as_deref()).await?;
                self.reading(&entries, |reading| reading.history(runs, limit))
            }
            Request::Run(_) | Request::Reconcile { .. } | Request::Refresh { .. } => {
                return Err(Refusal::new(
                    Exit::NotNow,
                    "a folder without an owner is only looked at",
                ));
            }
        };
        let _ = replies.send(Reply::Done(Box::new(answer))).await;
        Ok(())
    }

    fn reading<T>(&self, entries: &[Entry], look: impl FnOnce(&Reading<'_>) -> T) -> T {
        let project = self.options.project();
        look(&Reading {
            project: &project,
            entries,
        })
    }

    /// The catalog's resources; where there is no catalog, what the files declare.
    async fn entries(&self) -> Result<Vec<Entry>, Refusal> {
        match self.catalog().await? {
            Some(catalog) => {
                let entries = catalog.entries().to_vec();
                catalog.close().await;
                Ok(entries)
            }
            None => {
                let compilation = compiled::compile(&self.options, &self.state).await?;
                Ok(compiled::entries(compilation.project(), Built::Never))
            }
        }
    }

    async fn history(&self, name: Option<&str>) -> Result<(Vec<Entry>, Vec<HistoryRow>), Refusal> {
        let Some(catalog) = self.catalog().await? else {
            return Ok((self.entries().await?, Vec::new()));
        };
        let entries = catalog.entries().to_vec();
        let wanted: Vec<&Entry> = match name {
            Some(name) => vec![names::resolve(&entries, name)?],
            None => entries.iter().collect(),
        };
        let mut runs = Vec::new();
        for entry in wanted {
            runs.extend(
                catalog
                    .history(entry.row.uid, MOST_RUNS)
                    .await
                    .map_err(unreadable)?,
            );
        }
        catalog.close().await;
        Ok((entries, runs))
    }

    async fn catalog(&self) -> Result<Option<Catalog>, Refusal> {
        if self.lock.is_none() {
            return Ok(None);
        }
        let patience = Patience::new(PATIENCE);
        loop {
            match Catalog::open(&self.state).await {
                Ok(catalog) => return Ok(Some(catalog)),
                Err(StoreError::Locked { .. }) if patience.another_try().await => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    async fn query(
        &self,
        sql: String,
        limit: Option<u64>,
        timeout: Option<Duration>,
        replies: &Replies,
    ) -> Result<(), Refusal> {
        if self.lock.is_none() || !self.state.engine().exists() {
            let refusal = Refusal::new(
                Exit::ProjectError,
                "nothing was built yet, so there is nothing to ask",
            );
            return Err(refusal.hint("`watershed run` builds the project"));
        }
        let engine = Engine::new(engine_options(&self.options, &self.state, Access::ReadOnly));
        stream_query(&engine, sql, limit, timeout, replies).await;
        if let Err(error) = engine.close().await {
            tracing::warn!(%error, "can't close the engine");
        }
        Ok(())
    }
}

impl Service for Folder {
    async fn serve(&self, request: Request, replies: Replies) {
        if let Err(refusal) = self.answer(request, &replies).await {
            let _ = replies.send(Reply::Refused(refusal)).await;
        }
    }
}

/// A catalog that can't be read, as a command ends with it.
fn unreadable(error: StoreError) -> Refusal {
    let exit = match error {
        StoreError::Damaged { .. } | StoreError::Newer { .. } => Exit::StateFolder,
        _ => Exit::NotNow,
    };
    let refusal = Refusal::new(exit, crate::chain(&error));
    match error {
        StoreError::Damaged { .. } => refusal.hint("nothing was touched; move the folder away and run again"),
        StoreError::Newer { .. } => refusal.hint("use the newer version of watershed; nothing was touched"),
        _ => refusal,
    }
}
