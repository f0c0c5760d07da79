//! The operations of an instance as methods, each of which calls the program's handler and returns its document.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use watershed_api::documents::{
    AlertTestDocument, BackupDocument, CallDocument, CheckDocument, CompileDocument, DoctorDocument,
    ExplainDocument, GcDocument, GraphDocument, HistoryDocument, LogLine, MetricsDocument, OperateDocument,
    PartitionsDocument, PlanDocument, QueryDocument, RunDocument, StatsDocument, TestsDocument,
    TrashDocument,
};
use watershed_api::request::{
    AlertTestRequest, BackupRequest, CompileRequest, EventRequest, ExplainRequest, GraphRequest,
    HistoryRequest, NamedRun, NamesRequest, NoInput, PartitionsRequest, PlanRequest, QueryRequest,
    RefreshRequest, RestartRequest, RollbackRequest, RunRequest, ScaleRequest, SetRequest, SnoozeRequest,
    StatusRequest, TestRequest, TrashEmptyRequest, TrashRestoreRequest, ValidateRequest,
};
use watershed_api::{Answer, Code, Operation, Problem, Reply};
use watershed_controller::{Refresh, Request};
use watershed_core::Key;
use watershed_drivers::olap::{self, Export, Exported, Layout};
use watershed_metrics::Query;
use watershed_reconcilers::{alert, explore, report};
use watershed_resolvers::{
    Prepared, Viewer,
    metrics::{MetricsError, Question},
};

use super::problems::{made_over, of_metrics};
use super::{AnswerFile, Live, Principal, Source, answer};
use crate::instance::{Instance, refused};
use crate::logs::LogFollower;
use crate::out::{Out, redacted, without_secrets};
use crate::report::names;
use crate::service::ops::{self, logs as log_lines, metrics_answer as answers};
use crate::service::questions::{Asking, existing, form_of, layout};

/// The longest time that writing a file may take.
const LONGEST: Duration = Duration::from_secs(300);

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident, $op:ident, $input:ty, $output:ty;)*) => {
        impl Instance {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The problem for which there is no answer.
                pub async fn $method(&self, input: $input) -> Result<$output, Problem> {
                    self.ask::<watershed_api::operations::ops::$op>(input).await
                }
            )*
        }
    };
}

methods! {
    /// Runs everything that is out of date, or what is selected, and waits until all has settled.
    ///
    /// Dropping the future ends the wait alone.
    run, Run, RunRequest, RunDocument;
    /// Refreshes resources, even if they are up to date, and waits until all has settled.
    ///
    /// Dropping the future ends the wait alone.
    refresh, Refresh, RefreshRequest, RunDocument;
    /// Approves the held edits of resources, rebuilds them, and waits until all has settled.
    ///
    /// Dropping the future ends the wait alone.
    approve, Approve, NamedRun, RunDocument;
    /// Retries failed resources now, and waits until all has settled.
    ///
    /// Dropping the future ends the wait alone.
    retry, Retry, NamedRun, RunDocument;
    /// Returns the state of resources.
    status, Status, StatusRequest, RunDocument;
    /// Compiles the project's files and returns the findings.
    validate, Validate, ValidateRequest, RunDocument;
    /// Forecasts the work of a run without running it.
    plan, Plan, PlanRequest, PlanDocument;
    /// Returns the graph of resources and their refs.
    graph, Graph, GraphRequest, GraphDocument;
    /// Returns past runs and transitions.
    history, History, HistoryRequest, HistoryDocument;
    /// Lists the partitions of a model.
    partitions, Partitions, PartitionsRequest, PartitionsDocument;
    /// Explains why a resource is not running.
    explain, Explain, ExplainRequest, ExplainDocument;
    /// Runs the tests of models on the tables as they stand.
    test, Test, TestRequest, TestsDocument;
    /// Compiles the SQL of one model.
    compile, Compile, CompileRequest, CompileDocument;
    /// Evaluates an alert and stores nothing.
    test_alert, AlertTest, AlertTestRequest, AlertTestDocument;
    /// Pauses resources, so that they are not run.
    pause, Pause, NamesRequest, OperateDocument;
    /// Resumes paused resources.
    resume, Resume, NamesRequest, OperateDocument;
    /// Cancels the runs of resources.
    cancel, Cancel, NamesRequest, OperateDocument;
    /// Changes the number of replicas of services.
    scale, Scale, ScaleRequest, OperateDocument;
    /// Restarts services.
    restart, Restart, RestartRequest, OperateDocument;
    /// Rolls services back to an earlier release.
    rollback, Rollback, RollbackRequest, OperateDocument;
    /// Sets the desired stage of a managed resource.
    set, Set, SetRequest, OperateDocument;
    /// Sends events to managed resources.
    event, Event, EventRequest, OperateDocument;
    /// Snoozes an alert: nobody is notified for a while.
    snooze, Snooze, SnoozeRequest, OperateDocument;
    /// Restores a table from the trash.
    restore_trash, TrashRestore, TrashRestoreRequest, TrashDocument;
    /// Deletes tables in the trash for good.
    empty_trash, TrashEmpty, TrashEmptyRequest, TrashDocument;
    /// Writes a backup of all state to a file, while the project runs on.
    backup, Backup, BackupRequest, BackupDocument;
}

impl Instance {
    /// Returns counts of resources and of the work done.
    ///
    /// # Errors
    /// The problem for which there is no answer.
    pub async fn stats(&self) -> Result<StatsDocument, Problem> {
        self.ask::<watershed_api::operations::ops::Stats>(NoInput {})
            .await
    }

    /// Lists the tables in the trash.
    ///
    /// # Errors
    /// When the engine can't be asked.
    pub async fn trash(&self) -> Result<TrashDocument, Problem> {
        self.ask::<watershed_api::operations::ops::TrashList>(NoInput {})
            .await
    }

    /// Checks the consistency of the controller and its catalog.
    ///
    /// # Errors
    /// When the catalog can't be read.
    pub async fn check(&self) -> Result<CheckDocument, Problem> {
        self.ask::<watershed_api::operations::ops::Check>(NoInput {})
            .await
    }

    /// Looks for damage in the stored files, while the project runs on.
    ///
    /// # Errors
    /// When something can't be looked at.
    pub async fn doctor(&self) -> Result<DoctorDocument, Problem> {
        self.ask::<watershed_api::operations::ops::Doctor>(NoInput {})
            .await
    }

    /// Frees disk space that nothing uses.
    ///
    /// # Errors
    /// When the engine's file can't be used, or there is no room for a copy of it.
    pub async fn gc(&self) -> Result<GcDocument, Problem> {
        self.ask::<watershed_api::operations::ops::Gc>(NoInput {}).await
    }

    /// Runs one read-only statement and returns its rows. Dropping the future interrupts the engine.
    ///
    /// # Errors
    /// A statement that is wrong, does not only read, or takes longer than it may.
    pub async fn query(&self, input: QueryRequest) -> Result<QueryDocument, Problem> {
        let mut document = QueryDocument {
            schema: QueryDocument::SCHEMA.to_owned(),
            guessed: None,
            columns: Vec::new(),
            rows: Vec::new(),
            truncated: false,
        };
        let take = |reply| match reply {
            Reply::Columns(columns) => document.columns = columns,
            Reply::Rows(rows) => document.rows.extend(rows),
            _ => {}
        };
        let end = self.ask_with::<watershed_api::operations::ops::Query>(input, take);
        document.truncated = end.await?.more;
        Ok(document)
    }

    /// Carries out any operation, as a protocol of an embedder receives it, and returns its final answer.
    ///
    /// Rows and events before the final answer are dropped.
    ///
    /// # Errors
    /// The problem for which there is no answer.
    pub async fn answer(&self, request: watershed_api::Request) -> Result<Answer, Problem> {
        self.answer_with(request, drop).await
    }

    /// Carries out the operation with this type in [`watershed_api::operations::ops`], and returns its final answer.
    ///
    /// # Errors
    /// The problem for which there is no answer.
    pub async fn ask<O: Operation>(&self, input: O::Input) -> Result<O::Output, Problem> {
        self.ask_with::<O>(input, drop).await
    }

    /// Carries out an operation, and passes on each part of its answer as it comes.
    async fn ask_with<O: Operation>(
        &self,
        input: O::Input,
        take: impl FnMut(Reply),
    ) -> Result<O::Output, Problem> {
        O::output(self.answer_with(O::request(input), take).await?)
            .ok_or_else(|| Problem::new(Code::Defect, "the answer is that of another operation"))
    }

    async fn answer_with(
        &self,
        request: watershed_api::Request,
        mut take: impl FnMut(Reply),
    ) -> Result<Answer, Problem> {
        let (replies, mut parts) = crate::socket::replies();
        let taking = async {
            while let Some(part) = parts.recv().await {
                take(part);
            }
        };
        let asking = async {
            let out = Out::new(replies);
            answer(&Live::of(self), &Principal::Local, request, &out).await
        };
        let (answered, ()) = tokio::join!(asking, taking);
        let secrets = self.outputs.secrets();
        let answered = answered.map_err(|problem| redacted(problem, secrets))?;
        Ok(without_secrets(answered, secrets))
    }

    /// Requests a reconcile of a resource, by `name` or `kind/name`.
    ///
    /// # Errors
    /// `unknown-name` and `ambiguous-name`, with the nearest name or the candidates, and `stopping`.
    pub async fn reconcile(&self, name: &str) -> Result<Request, Problem> {
        let uid = names::resolve(&self.entries(), name)?.row.uid;
        let asked = self.controller().reconcile(uid).await;
        asked.map_err(|error| refused(&error))
    }

    /// Evaluates an alert now, as if it were due: the verdict is stored, and people are notified.
    ///
    /// The request's outcome is that of the evaluation; the verdict is in the alert's state.
    ///
    /// # Errors
    /// When there is no such alert, or the controller is shutting down.
    pub async fn evaluate_alert(&self, name: &str) -> Result<Request, Problem> {
        self.refresh_one(alert::KIND, name).await
    }

    /// Exports and sends a report now, as if it were due.
    ///
    /// # Errors
    /// When there is no such report, or the controller is shutting down.
    pub async fn run_report(&self, name: &str) -> Result<Request, Problem> {
        self.refresh_one(report::KIND, name).await
    }

    async fn refresh_one(&self, kind: &str, name: &str) -> Result<Request, Problem> {
        let uid = names::resolve(&self.entries(), &format!("{kind}/{name}"))?
            .row
            .uid;
        let asked = self.controller().refresh(uid, Refresh::Plain).await;
        asked.map_err(|error| refused(&error))
    }

    /// Returns at most `limit` of the last log lines of a resource, by `name` or `kind/name`, oldest first.
    ///
    /// Kept only in a process that logs through [`logs::layer`](crate::logs::layer).
    ///
    /// # Errors
    /// When there is and was no such resource or there are several, or the files can't be read.
    pub async fn logs(&self, name: &str, limit: usize) -> Result<Vec<LogLine>, Problem> {
        let uid = log_lines::writer(&Live::of(self), &self.entries(), name).await?;
        log_lines::read_lines(&self.state.logs(), uid, limit).await
    }

    /// Follows the log lines of a resource from now on.
    ///
    /// # Errors
    /// As [`logs`](Self::logs).
    pub async fn follow_logs(&self, name: &str) -> Result<LogFollower, Problem> {
        let uid = log_lines::writer(&Live::of(self), &self.entries(), name).await?;
        Ok(LogFollower::begin(self.state.logs(), uid, self.leaving.clone()))
    }

    /// Ends all followers of logs, which never end by themselves.
    #[doc(hidden)]
    pub fn end_followers(&self) {
        self.leaving.cancel();
    }

    /// Answers a query of a metrics view for a viewer. `now` is the time of the query.
    ///
    /// Ends of time dimensions are read beforehand, in a statement of their own, where ranges and zones need them.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a query that names what the view lacks or what the viewer may not see, a
    /// policy that can't be evaluated, and those of the engine.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics(
        &self,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, Problem> {
        self.ask_view(query, None, viewer, now).await
    }

    /// Answers a query as [`metrics`](Self::metrics) does, through an explore or a canvas (`explore/NAME`).
    ///
    /// Its rules count as well, and open nothing that the view's own close.
    ///
    /// # Errors
    /// Those of [`metrics`](Self::metrics), and an explore or a canvas that is not there or does not show the view.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics_through(
        &self,
        front: &str,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, Problem> {
        let unknown = || of_metrics(MetricsError::NoFront(Key::new(explore::KIND, front)));
        let front = ops::front(front).ok_or_else(unknown)?;
        self.ask_view(query, Some(&front), viewer, now).await
    }

    async fn ask_view(
        &self,
        query: &Query,
        through: Option<&Key>,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, Problem> {
        let (asking, handle) = (Asking::of(self), self.controller().clone());
        let question = Question {
            query,
            viewer,
            through,
            now,
            execution_time: None,
        };
        match asking.views(&handle).answer(question).await {
            Ok(answer) => Ok(answers::document(query, &answer)),
            Err(error) => Err(redacted(of_metrics(error), &asking.secrets)),
        }
    }

    /// Calls an API for a viewer, and returns at most `limit` rows. `now` is the time of the call.
    ///
    /// # Errors
    /// An API that is unknown, is not open to the viewer or does not compile, arguments where no value can stand, and those
    /// of the engine.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn call(
        &self,
        api: &str,
        args: Map<String, Value>,
        viewer: &Viewer,
        now: Timestamp,
        limit: u64,
    ) -> Result<CallDocument, Problem> {
        let (asking, handle) = (Asking::of(self), self.controller().clone());
        let called = ops::call_api(&asking.resolvers(&handle), api, args, viewer, now, limit).await;
        called.map_err(|problem| redacted(problem, &asking.secrets))
    }

    /// Writes the answer to a question to a file, whole or not at all. `now` is the time of the question.
    ///
    /// ```no_run
    /// # use watershed::{AnswerFile, Instance, Source, Viewer};
    /// # use watershed::metrics::{Query, jiff::Timestamp};
    /// # async fn ask(instance: Instance) -> Result<(), Box<dyn std::error::Error>> {
    /// let query: Query = r#"{"metrics_view": "departures", "dimensions": ["origin"], "measures": ["flights"]}"#.parse()?;
    /// let mut attributes = serde_json::Map::new();
    /// attributes.insert("airports".into(), serde_json::json!(["JFK"]));
    /// let viewer = Viewer::user(attributes); // `Viewer::Owner` is whom no policy binds.
    /// let now = Timestamp::now();
    ///
    /// let answer = instance.metrics(&query, &viewer, now).await?;
    /// let days = instance.call("worst_days", serde_json::Map::new(), &viewer, now, 10_000).await?;
    /// let to = AnswerFile { file: "flights.xlsx".into(), replace: true, ..AnswerFile::default() };
    /// let written = instance.export(Source::Metrics(&query), &viewer, now, &to).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A question that can't be understood, that the viewer may not ask or that the engine can't answer, and a file that
    /// can't be written. A user is not told the engine's words about an error in the data.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine; nothing is left of the file.
    pub async fn export(
        &self,
        source: Source<'_>,
        viewer: &Viewer,
        now: Timestamp,
        to: &AnswerFile,
    ) -> Result<Exported, Problem> {
        let format = form_of(&to.file)?;
        let prepared = self.prepared(source, viewer, now).await;
        let prepared = prepared.map_err(|error| redacted(error, self.outputs.secrets()))?;
        if prepared.is_made_over() {
            return Err(made_over());
        }
        let export = Export {
            query: olap::Query {
                limit: to.limit,
                timeout: Some(LONGEST),
                ..prepared.query()
            },
            file: to.file.clone(),
            format,
            existing: existing(to.replace),
            layout: Layout {
                guards_formulas: !to.raw,
                ..layout(&prepared)
            },
        };
        let cancel = tokio_util::sync::CancellationToken::new();
        let _interrupts = cancel.clone().drop_guard();
        let written = self.engine.export(&export, &cancel).await;
        let problem = |error| ops::export_problem(error, viewer);
        written.map_err(|error| redacted(problem(error), self.outputs.secrets()))
    }

    async fn prepared(
        &self,
        source: Source<'_>,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Prepared, Problem> {
        let (asking, handle) = (Asking::of(self), self.controller().clone());
        let resolvers = asking.resolvers(&handle);
        match source {
            Source::Metrics(query) => {
                let question = Question {
                    query,
                    viewer,
                    through: None,
                    now,
                    execution_time: None,
                };
                let planned = resolvers.views.planned(question).await.map_err(of_metrics)?;
                Ok(Prepared::Planned(Box::new(planned)))
            }
            Source::Call { api, args } => ops::prepare_api(&resolvers, api, args.clone(), viewer, now).await,
        }
    }
}
