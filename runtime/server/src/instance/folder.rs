//! Looks at a state folder that no process owns.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::request::{ExportRequest, MetricsRequest, ProgramOutput, TestRequest, TrashRequest};
use watershed_api::{Answer, Code, Problem, Reply, Request};
use watershed_controller::history::HistoryRow;
use watershed_controller::resource::Revision;
use watershed_controller::store::SqliteReader;
use watershed_core::Stored;
use watershed_drivers::duckdb::{Access, Engine};
use watershed_drivers::olap::Olap;
use watershed_reconcilers::connector::Surroundings;
use watershed_reconcilers::resolvers::Views;
use watershed_reconcilers::secrets::Secrets;

use super::compiled::{self, Built};
use super::logs::Last;
use super::look::{look, unreadable};
use super::questions::Questions;
use super::read::{Reading, Shown};
use super::{
    INSTANCE, Options, care, catalog, check, data_tests, engine_options, export, logs, metrics, operate,
    output, partitions, plan, read, stream_query, trash,
};
use crate::report::kinds::{checks, programs};
use crate::report::{Entry, Hidden, names};
use crate::socket::{Replies, Service};
use crate::state_folder::{Lock, StateFolder};

/// A state folder that nobody owns; or none at all, where nothing was run yet; or one whose owner says nothing.
pub(crate) struct Folder {
    options: Options,
    state: StateFolder,
    hold: Hold,
}

/// The hold that a look has on a state folder.
#[derive(Debug)]
pub(crate) enum Hold {
    /// Nothing was ever run there.
    Empty,
    /// The lock keeps owners out.
    Locked(#[expect(dead_code, reason = "held until the look is over")] Lock),
    /// An owner holds the folder: what it stored last can be read, and the engine can't be asked.
    Stored,
}

impl Folder {
    /// Looks at a folder by a hold on it.
    pub(crate) fn new(options: Options, state: StateFolder, hold: Hold) -> Self {
        Self { options, state, hold }
    }

    fn is_locked(&self) -> bool {
        matches!(self.hold, Hold::Locked(_))
    }

    async fn answer(&self, request: Request, replies: &Replies) -> Result<(), Problem> {
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
            Request::Export(request) => self.export(request, replies).await?,
            Request::Metrics(request) => self.metrics(*request, replies).await?,
            Request::Call(_) | Request::TestAlert(_) => self.question(request, replies).await?,
            Request::Test(request) => self.test(&request, replies).await?,
            Request::Show { name, limit } => {
                let entries = self.entries().await?;
                match self.reading(&entries, |reading| reading.show(&name))? {
                    Shown::Rows { sql, about } => {
                        let _ = replies.send(Reply::About(about)).await;
                        return self.query(sql, Some(limit), None, replies).await;
                    }
                    Shown::Document(answer) => *answer,
                }
            }
            Request::Status {
                names,
                selection,
                all,
            } => {
                let entries = self.entries().await?;
                let document = self.reading(&entries, |r| r.status(&names, &selection, Hidden::unless(all)));
                let mut document = document?;
                programs::say_last_known(&mut document);
                if !names.is_empty() {
                    checks::show_in(&mut document, &entries, &self.state.programs());
                }
                Answer::Run(Box::new(document))
            }
            Request::Plan { exit_code, selection } => {
                let entries = match self.catalog() {
                    Some(_) => self.entries().await?,
                    None => Vec::new(),
                };
                let secrets = match self.is_locked() {
                    true => super::secrets_of(&self.options, &self.state),
                    false => Secrets::default(),
                };
                let engine = self.engine(Access::ReadOnly).ok();
                let asked = plan::Asked {
                    options: &self.options,
                    state: &self.state,
                    secrets: &secrets,
                    entries: &entries,
                    exit_code,
                    selection: &selection,
                    engine: engine.as_ref(),
                };
                let planned = plan::plan(asked).await;
                if let Some(engine) = &engine {
                    close(engine).await;
                }
                Answer::Plan(Box::new(planned?))
            }
            Request::Graph { name, selection, all } => {
                let entries = self.entries().await?;
                self.reading(&entries, |r| {
                    r.graph(name.as_deref(), &selection, Hidden::unless(all))
                })?
            }
            Request::Partitions(request) => {
                let entries = self.entries().await?;
                let engine = self.engine(Access::ReadOnly)?;
                let listed = partitions::list(&engine, &self.options.project(), &entries, &request).await;
                close(&engine).await;
                listed?
            }
            Request::History { name, limit } => {
                let (entries, runs) = self.history(name.as_deref(), limit).await?;
                self.reading(&entries, |reading| reading.history(runs, name.as_deref(), limit))
            }
            Request::Explain { name } => {
                let entries = self.entries().await?;
                operate::explain_at_rest(&self.options.project(), &entries, name.as_deref())?
            }
            Request::Stats { form } => {
                let (entries, revision) = self.found().await?;
                operate::stats_at_rest(&self.options.project(), &self.state, &entries, revision, form)
            }
            Request::Logs {
                name,
                limit,
                since,
                program,
                ..
            } => self.logs(&name, Last { limit, since }, program).await?,
            Request::Trash(request) => self.trash(&request).await?,
            Request::Check => self.check().await?,
            Request::Doctor => self.doctor().await?,
            Request::Operate { operation, names } => {
                let entries = self.entries().await?;
                operate::nothing_runs(&self.options.project(), &entries, operation, &names)?
            }
            Request::Run(_)
            | Request::Reconcile { .. }
            | Request::Refresh { .. }
            | Request::Approve { .. }
            | Request::OperateServices { .. }
            | Request::ChangeByHand(_)
            | Request::Retry { .. }
            | Request::Backup { .. }
            | Request::Gc => {
                return Err(Problem::new(
                    Code::Unattended,
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
    async fn entries(&self) -> Result<Vec<Entry>, Problem> {
        Ok(self.found().await?.0)
    }

    /// The same with the revision that they were read at.
    async fn found(&self) -> Result<(Vec<Entry>, Revision), Problem> {
        match self.catalog() {
            Some(catalog) => {
                let stored = look(move |runtime| runtime.block_on(catalog.read(INSTANCE))).await?;
                let found = catalog::found(&stored);
                Ok((found.entries, found.revision))
            }
            None => {
                let compilation = compiled::compile(&self.options, &self.state).await?;
                let entries = compiled::entries(compilation.project(), Built::Never);
                Ok((entries, Revision::default()))
            }
        }
    }

    async fn history(
        &self,
        name: Option<&str>,
        limit: u64,
    ) -> Result<(Vec<Entry>, Vec<HistoryRow>), Problem> {
        let entries = self.entries().await?;
        let Some(catalog) = self.catalog() else {
            return Ok((entries, Vec::new()));
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let runs = match name.map(|name| names::resolve(&entries, name)).transpose() {
            Ok(None) => look(move |runtime| runtime.block_on(catalog.recent(INSTANCE, limit))).await?,
            Ok(Some(entry)) => {
                let uid = entry.row.uid;
                look(move |runtime| runtime.block_on(catalog.history(INSTANCE, uid, limit))).await?
            }
            Err(refusal) => {
                let most = read::MOST_SEARCHED;
                let all = look(move |runtime| runtime.block_on(catalog.recent(INSTANCE, most))).await?;
                read::uid_of_removed(all, name, refusal)?
            }
        };
        Ok((entries, runs))
    }

    async fn check(&self) -> Result<Answer, Problem> {
        let project = self.options.project();
        let (Some(file), Some(catalog)) = (self.catalog(), self.catalog()) else {
            return Ok(check::check_at_rest(&project, Stored::default(), Vec::new()));
        };
        let damage = look(move |runtime| runtime.block_on(file.integrity())).await?;
        match look(move |runtime| runtime.block_on(catalog.read(INSTANCE))).await {
            Ok(stored) => Ok(check::check_at_rest(&project, stored, damage)),
            Err(refusal) if damage.is_empty() => Err(refusal),
            Err(refusal) => Ok(check::unreadable(&project, refusal, damage)),
        }
    }

    /// The same, where a file that is no catalog at all is a finding too.
    async fn check_or_damage(&self) -> Result<Answer, Problem> {
        if let Some(file) = self.catalog()
            && let Err(error) = look(move |runtime| Ok(runtime.block_on(file.integrity()))).await?
            && error.is_damage()
        {
            return Ok(check::unreadable(
                &self.options.project(),
                unreadable(error),
                Vec::new(),
            ));
        }
        self.check().await
    }

    async fn doctor(&self) -> Result<Answer, Problem> {
        let catalog = match self.check_or_damage().await? {
            Answer::Check(catalog) if self.is_locked() => Some(catalog),
            _ => None,
        };
        // A damaged catalog is a finding already: what can't be read from it is not looked at.
        let entries = self.entries().await.unwrap_or_default();
        care::doctor_at_rest(&self.options, &self.state, catalog.as_deref(), entries).await
    }

    /// Looks for damage, and sets aside what is damaged. The lock is to keep everybody else out.
    pub(crate) async fn repair(&self) -> Result<Answer, Problem> {
        match self.check_or_damage().await? {
            Answer::Check(catalog) => care::repair(&self.options, &self.state, &catalog).await,
            _ => Err(Problem::new(Code::Defect, "the catalog was not checked")),
        }
    }

    /// Looks at the trash, or does something with it; then the lock is to keep everybody else out.
    pub(crate) async fn trash(&self, request: &TrashRequest) -> Result<Answer, Problem> {
        let engine = match request {
            TrashRequest::List => self.engine(Access::ReadOnly)?,
            TrashRequest::Restore { .. } | TrashRequest::Empty { .. } => self.engine(Access::ReadWrite)?,
        };
        let (entries, limits) = (self.entries().await?, compiled::trash_limits(&self.options).await);
        engine.limit_trash(limits);
        let hands = trash::Hands {
            engine: &engine,
            project: &self.options.project(),
            entries: &entries,
            limits,
        };
        let done = hands.carry_out(request).await;
        close(&engine).await;
        done
    }

    fn catalog(&self) -> Option<SqliteReader> {
        let is_there = !matches!(self.hold, Hold::Empty);
        is_there.then(|| SqliteReader::new(self.state.catalog()))
    }

    async fn logs(&self, name: &str, last: Last, program: Option<ProgramOutput>) -> Result<Answer, Problem> {
        let entries = self.entries().await?;
        let project = self.options.project();
        if let Some(part) = program {
            let state = &self.state;
            let secrets = compiled::secrets_in_files(&self.options, state).await;
            let found = output::at_rest(&project, state, &secrets, &entries, name, part, last);
            if let Some(answer) = found.await? {
                return Ok(answer);
            }
        }
        let recent = async || match self.catalog() {
            Some(catalog) => {
                let most = read::MOST_SEARCHED;
                look(move |runtime| runtime.block_on(catalog.recent(INSTANCE, most))).await
            }
            None => Ok(Vec::new()),
        };
        logs::logs_at_rest(&project, &self.state.logs(), &entries, recent, name, last).await
    }

    async fn test(&self, request: &TestRequest, replies: &Replies) -> Result<Answer, Problem> {
        let entries = self.entries().await?;
        let rows = data_tests::chosen(&entries, request)?;
        let engine = self.engine(Access::ReadOnly)?;
        let compilation = compiled::compile(&self.options, &self.state).await?;
        // Templates of tests need the values, which rows have sealed.
        let secrets = super::secrets_of(&self.options, &self.state);
        secrets.learn(compilation.project().variables());
        let declared = compiled::sealed_entries(compilation.project(), Built::Never, &secrets);
        let rows = data_tests::as_edited(rows, &declared);
        let project = self.options.project();
        let cancel = CancellationToken::new();
        let _interrupt = cancel.clone().drop_guard();
        let answer = tokio::select! {
            answer = data_tests::tested(&engine, &project, &secrets, &rows, request, &cancel) => answer,
            () = replies.closed() => return Err(Problem::new(Code::Interrupted, "interrupted")),
        };
        close(&engine).await;
        Ok(answer)
    }

    /// The engine.
    fn engine(&self, access: Access) -> Result<Engine, Problem> {
        if !self.is_locked() || !self.state.engine().exists() {
            let refusal = Problem::new(
                Code::NotBuilt,
                "nothing was built yet, so there is nothing to ask",
            );
            return Err(refusal.hint("`watershed run` builds the project"));
        }
        Ok(Engine::new(engine_options(&self.options, &self.state, access)))
    }

    async fn query(
        &self,
        sql: String,
        limit: Option<u64>,
        timeout: Option<Duration>,
        replies: &Replies,
    ) -> Result<(), Problem> {
        // The engine answers also where the catalog can't be read.
        let entries = self.entries().await.unwrap_or_default();
        let (engine, secrets) = self.asked_engine(&entries).await?;
        stream_query(&engine, &secrets, sql, limit, timeout, replies).await;
        close(&engine).await;
        Ok(())
    }

    async fn export(&self, request: ExportRequest, replies: &Replies) -> Result<Answer, Problem> {
        let entries = self.entries().await?;
        let export = self.reading(&entries, |reading| reading.export(request))?;
        let (engine, secrets) = self.asked_engine(&entries).await?;
        let written = export::write(&engine, &secrets, &export, replies).await;
        close(&engine).await;
        written
    }

    async fn metrics(&self, request: MetricsRequest, replies: &Replies) -> Result<Answer, Problem> {
        let entries = self.entries().await?;
        let (engine, secrets) = self.asked_engine(&entries).await?;
        let entries = metrics::Entries(&entries);
        let olap: Arc<dyn Olap> = Arc::new(engine.clone());
        let views = Views {
            olap: &olap,
            cache: None,
            secrets: &secrets,
            environment: &self.options.environment,
            resources: &entries,
            conditions: Arc::default(),
        };
        let door = metrics::Door {
            views: &views,
            engine: &engine,
            entries: &entries,
        };
        let answer = metrics::answer(&door, request, replies).await;
        close(&engine).await;
        answer
    }

    async fn question(&self, request: Request, replies: &Replies) -> Result<Answer, Problem> {
        let entries = self.entries().await?;
        let (engine, secrets) = self.asked_engine(&entries).await?;
        let entries = metrics::Entries(&entries);
        let (project, sandbox) = (self.options.project(), super::sandbox(&self.options, &self.state));
        let olap: Arc<dyn Olap> = Arc::new(engine.clone());
        let questions = Questions {
            views: Views {
                olap: &olap,
                cache: None,
                secrets: &secrets,
                environment: &self.options.environment,
                resources: &entries,
                conditions: Arc::default(),
            },
            project: &project,
            root: &self.options.root,
            sandbox: sandbox.as_ref(),
            directory: None,
            engine: &engine,
            entries: &entries,
            is_confined: self.options.sandbox || self.options.sample.is_some(),
        };
        let answer = match request {
            Request::Call(request) => questions.call(*request, replies).await,
            Request::TestAlert(request) => questions.test_alert(request).await,
            _ => Err(Problem::new(Code::Defect, "this is no question")),
        };
        close(&engine).await;
        answer
    }

    /// The engine for a statement of a person's, and the secrets that its errors must not quote.
    async fn asked_engine(&self, entries: &[Entry]) -> Result<(Engine, Secrets), Problem> {
        let engine = self.engine(Access::ReadOnly)?;
        let secrets = compiled::secrets_in_files(&self.options, &self.state).await;
        let sessions = catalog::sessions(
            entries,
            Surroundings {
                environment: &self.options.environment,
                root: &self.options.root,
            },
            &secrets,
        );
        engine.begin_with(sessions.into_iter().map(|(session, _)| session).collect());
        Ok((engine, secrets))
    }
}

async fn close(engine: &Engine) {
    if let Err(error) = engine.close().await {
        tracing::warn!(%error, "can't close the engine");
    }
}

impl Service for Folder {
    async fn serve(&self, request: Request, replies: Replies) {
        if let Err(refusal) = self.answer(request, &replies).await {
            let _ = replies.send(Reply::Refused(refusal)).await;
        }
    }
}
