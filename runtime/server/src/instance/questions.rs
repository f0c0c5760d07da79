//! Questions that resources ask, asked by a person: calls of APIs, rows of reports, trials of alerts.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use watershed_api::documents::{AlertTestDocument, CallDocument, ResourceName, TestedReceiver, Time};
use watershed_api::request::{AlertTestRequest, CallRequest, Callee};
use watershed_api::{Answer, Code, Exit, Problem};
use watershed_controller::{Refresh, Request};
use watershed_core::{Error, Key, Row};
use watershed_delivery::Attempt;
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{Existing, Export, FileFormat, Layout};
use watershed_drivers::sandbox::Sandbox;
use watershed_proto::{DataResolver, Message as _, ReportSpec, Value};
use watershed_reconcilers::alert::{self, policy::Verdict, trial};
use watershed_reconcilers::directory::Directory;
use watershed_reconcilers::notifiers::ProjectNotifiers;
use watershed_reconcilers::report::{self, making::Making};
use watershed_reconcilers::resolvers::metrics::LONGEST;
use watershed_reconcilers::resolvers::{
    Answer as Rows, Ask, Heading, Prepared, ResolveError, Resolvers, Resources, Until, Viewer, Views, api,
};

use super::metrics::{
    Entries, Shown, columns, range, refusal as metrics_refusal, rows, time, unspoken, zone,
};
use super::{Instance, converge, export, query as queries};
use crate::report::{document::Project, names};
use crate::socket::Replies;

impl Instance {
    pub(super) fn questions<'a>(&'a self, entries: &'a Entries<'a>) -> Questions<'a> {
        Questions {
            views: self.views(entries),
            project: &self.project,
            root: &self.options.root,
            sandbox: self.outputs.sandbox(),
            directory: self.directory.as_deref(),
            engine: &self.engine,
            entries,
            is_confined: self.options.sandbox || self.options.sample.is_some(),
        }
    }

    pub(super) fn resolvers<'a>(&'a self, resources: &'a dyn Resources) -> Resolvers<'a> {
        Resolvers {
            views: self.views(resources),
            root: &self.options.root,
            sandbox: self.outputs.sandbox(),
            directory: self.directory.as_deref(),
        }
    }

    /// Calls an API with arguments, for a viewer. `now` is the time at which it is called; at most `limit` rows are returned.
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
        args: serde_json::Map<String, serde_json::Value>,
        viewer: &Viewer,
        now: Timestamp,
        limit: u64,
    ) -> Result<CallDocument, ResolveError> {
        let handle = self.controller.handle();
        let resolvers = self.resolvers(&handle);
        let data = api::call(api);
        let own = Key::new(api::KIND, api);
        let ask = Ask {
            data: &data,
            own: &own,
            variables: &BTreeMap::new(),
            viewer,
            skips_policies: false,
            args: values(args),
            now,
            execution_time: None,
            is_export: false,
        };
        let answer = resolvers.answer(&ask, limit, LONGEST).await?;
        Ok(CallDocument {
            missing_arguments: missing(&resolvers, api, &ask.args),
            ..document(ResourceName::new(api::KIND, api), &answer)
        })
    }

    /// Evaluates an alert now, as if it were due: the verdict is stored, and people are told of it. The request's outcome is
    /// that of the evaluation; its verdict stands in the alert's state.
    ///
    /// # Errors
    /// When there is no such alert, or the controller is shutting down.
    pub async fn evaluate_alert(&self, name: &str) -> Result<Request, Problem> {
        self.refresh_one(alert::KIND, name).await
    }

    /// Makes a report now and sends it, as if it were due.
    ///
    /// # Errors
    /// When there is no such report, or the controller is shutting down.
    pub async fn run_report(&self, name: &str) -> Result<Request, Problem> {
        self.refresh_one(report::KIND, name).await
    }

    async fn refresh_one(&self, kind: &str, name: &str) -> Result<Request, Problem> {
        let entries = self.entries();
        let uid = names::resolve(&entries, &format!("{kind}/{name}"))?.row.uid;
        self.controller
            .refresh(uid, Refresh::Plain)
            .await
            .map_err(|error| converge::refused(&error))
    }
}

/// The surroundings of questions, in a running instance or at rest.
pub(super) struct Questions<'a> {
    pub(super) views: Views<'a>,
    pub(super) project: &'a Project,
    pub(super) root: &'a Path,
    pub(super) sandbox: Option<&'a Sandbox>,
    pub(super) directory: Option<&'a dyn Directory>,
    pub(super) engine: &'a Engine,
    pub(super) entries: &'a Entries<'a>,
    /// Messages of a trial go to files of the project alone.
    pub(super) is_confined: bool,
}

/// A question and what its rows are about.
struct Asked {
    name: ResourceName,
    prepared: Prepared,
    /// The most rows that it has, by its file.
    limit: Option<u64>,
    layout: Layout,
    /// Arguments that it reads and that were not given.
    missing: Vec<String>,
}

impl Questions<'_> {
    fn resolvers(&self) -> Resolvers<'_> {
        Resolvers {
            views: self.views.clone(),
            root: self.root,
            sandbox: self.sandbox,
            directory: self.directory,
        }
    }

    /// Answers a call. Ends early when nobody listens any more.
    ///
    /// # Errors
    /// A question that can't be understood, that the viewer may not ask, or that the engine can't answer; and a file that
    /// can't be written.
    pub(super) async fn call(&self, request: CallRequest, replies: &Replies) -> Result<Answer, Problem> {
        tokio::select! {
            answered = self.called(request, replies) => answered,
            () = replies.closed() => Err(Problem::new(Code::Interrupted, "interrupted")),
        }
    }

    async fn called(&self, request: CallRequest, replies: &Replies) -> Result<Answer, Problem> {
        let now = time(request.at.as_deref())?;
        let until = request.at.is_some().then(|| Until::moment(now));
        let viewer = match request.user {
            Some(attributes) => Viewer::user(attributes),
            None => Viewer::Owner,
        };
        let is_export = request.file.is_some();
        let asked = match request.callee {
            Callee::Api { name, args } => self.api(&name, args, &viewer, (now, until), is_export).await?,
            Callee::Report(name) => self.report(&name, now, until).await?,
        };
        if request.sql {
            let shown = Shown::of(request.show_values, &viewer)?;
            return Ok(Answer::Call(Box::new(CallDocument {
                sql: Some(shown.of_statement(asked.prepared.statement(), self.views.secrets)),
                missing_arguments: asked.missing,
                ..document(asked.name, &Rows::default())
            })));
        }
        let Some(file) = &request.file else {
            let shown = asked
                .limit
                .map_or(request.shown, |limit| limit.min(request.shown));
            let resolvers = self.resolvers();
            let answered = resolvers.rows(&asked.prepared, &viewer, shown, LONGEST).await;
            let mut answer = answered.map_err(|error| self.refusal(error))?;
            // A report that has no more rows by its file has shown them all.
            answer.truncated &= asked.limit.is_none_or(|limit| limit > shown);
            return Ok(Answer::Call(Box::new(CallDocument {
                missing_arguments: asked.missing,
                ..document(asked.name, &answer)
            })));
        };
        if asked.prepared.is_made_over() {
            return Err(Problem::new(
                Code::BadArgument,
                "a file has neither totals nor a pivot",
            ));
        }
        let Some(format) = FileFormat::from_path(file) else {
            let message = format!("`{}` is no .csv, .xlsx or .parquet file", file.display());
            return Err(Problem::new(Code::BadArgument, message));
        };
        let export = Export {
            sql: asked.prepared.statement(),
            limit: asked.limit,
            timeout: Some(LONGEST),
            attributes: asked.prepared.attributes(),
            file: file.clone(),
            format,
            existing: match request.force {
                true => Existing::Replace,
                false => Existing::Keep,
            },
            layout: asked.layout,
        };
        let written = export::write(self.engine, self.views.secrets, &export, replies).await;
        // What the engine says may quote rows that a user may not see.
        written.map_err(|refusal| match viewer {
            Viewer::User(_) if refusal.code == Code::ProjectError => unspoken(),
            _ => refusal,
        })
    }

    async fn api(
        &self,
        typed: &str,
        args: serde_json::Map<String, serde_json::Value>,
        viewer: &Viewer,
        (now, execution_time): (Timestamp, Option<Until>),
        is_export: bool,
    ) -> Result<Asked, Problem> {
        let row = self.row(api::KIND, typed)?;
        let data: DataResolver = api::call(row.name.as_str());
        let ask = Ask {
            data: &data,
            own: &row.key(),
            variables: &Default::default(),
            viewer,
            skips_policies: false,
            args: values(args),
            now,
            execution_time,
            is_export,
        };
        let resolvers = self.resolvers();
        let prepared = resolvers.prepare(&ask).await;
        let prepared = prepared.map_err(|error| self.refusal(error))?;
        Ok(Asked {
            name: name(row),
            layout: layout(&prepared),
            prepared,
            limit: None,
            missing: missing(&resolvers, row.name.as_str(), &ask.args),
        })
    }

    async fn report(&self, typed: &str, now: Timestamp, until: Option<Until>) -> Result<Asked, Problem> {
        let row = self.row(report::KIND, typed)?;
        let spec = ReportSpec::decode(row.spec.as_ref())
            .map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))?;
        let at = watershed_core::Timestamp(now.as_millisecond());
        let making = Making {
            resolvers: self.resolvers(),
            spec: &spec,
            own: row.key(),
            now: at,
            until,
        };
        let export = making.export(Path::new(""), FileFormat::Csv).await;
        let export = export.map_err(|error| self.of_resource(&error))?;
        let prepared = making.prepare().await.map_err(|error| self.of_resource(&error))?;
        Ok(Asked {
            name: name(row),
            prepared,
            limit: export.limit,
            layout: export.layout,
            missing: Vec::new(),
        })
    }

    /// Tries an alert out.
    ///
    /// # Errors
    /// An alert that is unknown, does not compile, or has a question that can't be asked here.
    pub(super) async fn test_alert(&self, request: AlertTestRequest) -> Result<Answer, Problem> {
        let row = self.row(alert::KIND, &request.name)?;
        let moment = time(request.at.as_deref())?;
        let at = watershed_core::Timestamp(moment.as_millisecond());
        let now = match request.at {
            None => at,
            Some(_) => watershed_core::Timestamp(Timestamp::now().as_millisecond()),
        };
        let project = &self.project.name;
        let tried = trial::evaluate(self.resolvers(), row, project, at, now).await;
        let tried = tried.map_err(|error| self.of_resource(&error))?;
        let mut receivers = Vec::new();
        for one in &tried.messages {
            let sent = match request.send {
                true => Some(self.send(one).await),
                false => None,
            };
            receivers.push(TestedReceiver {
                receiver: one.receiver.label(),
                delivered: sent.as_ref().map(Result::is_ok),
                answer: sent.map(|sent| sent.unwrap_or_else(|failure| failure)),
            });
        }
        let is_lost = receivers.iter().any(|receiver| receiver.delivered == Some(false));
        let fails = tried.finding.verdict != Verdict::Pass;
        let exit = match (is_lost, request.exit_code && fails) {
            (true, _) => Exit::ProjectError,
            (false, true) => Exit::WouldChange,
            (false, false) => Exit::Converged,
        };
        let error = Some(tried.finding.reason().to_owned()).filter(|error| !error.is_empty());
        let table = tried.finding.rows.unwrap_or_default();
        Ok(Answer::AlertTest(Box::new(AlertTestDocument {
            schema: AlertTestDocument::SCHEMA.to_owned(),
            resource: name(row),
            moment: Time::from_millis(tried.moment.0),
            verdict: tried.finding.verdict.as_str().to_owned(),
            columns: table.columns,
            rows: table.rows,
            truncated: tried.finding.has_more,
            error,
            receivers,
            exit_code: exit.code(),
        })))
    }

    /// Makes one attempt to hand a message over.
    async fn send(&self, one: &watershed_delivery::Notification) -> Result<String, String> {
        let secrets = self.views.secrets;
        let notifiers = ProjectNotifiers::new(self.root, self.views.environment, secrets.clone())
            .confined(self.is_confined);
        let redacted = |text: String| secrets.redact(&text).into_owned();
        let connected = notifiers.among(self.entries, &one.receiver);
        let (notifier, to) = connected.map_err(|error| redacted(error.message))?;
        let attempt = Attempt {
            number: 1,
            epoch: 0,
            to: &to,
        };
        let delivered = notifier.deliver(&one.message, attempt).await;
        delivered
            .map(|receipt| redacted(receipt.said))
            .map_err(|error| redacted(error.message))
    }

    fn row(&self, kind: &str, typed: &str) -> Result<&Row, Problem> {
        let plain = typed.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
        let name = format!("{kind}/{}", plain.unwrap_or(typed));
        let found = names::resolve(self.entries.0, &name)?;
        match found.row.key() == Key::new(kind, plain.unwrap_or(typed)) {
            true => Ok(&found.row),
            false => Err(Problem::new(
                Code::UnknownName,
                format!("there is no {kind} `{typed}`"),
            )),
        }
    }

    /// The refusal that an error of a resource is.
    fn of_resource(&self, error: &Error) -> Problem {
        let refusal = Problem {
            hint: error.hint.as_deref().map(Into::into),
            ..Problem::new(Code::ProjectError, error.message.to_string()).at(&*error.code, None)
        };
        queries::redacted(refusal, self.views.secrets)
    }

    fn refusal(&self, error: ResolveError) -> Problem {
        match error {
            ResolveError::Metrics(error) => queries::redacted(metrics_refusal(error), self.views.secrets),
            error @ ResolveError::NotAllowed(_) => Problem {
                code: Code::NotAllowed,
                ..self.of_resource(&error.to_error())
            },
            error @ ResolveError::UnknownArgument { .. } => Problem {
                code: Code::BadArgument,
                ..self.of_resource(&error.to_error())
            },
            error => self.of_resource(&error.to_error()),
        }
    }
}

/// Lists the arguments that an API reads, that were not given, and for which nothing stands.
fn missing(resolvers: &Resolvers<'_>, api: &str, given: &BTreeMap<String, Value>) -> Vec<String> {
    let read = resolvers.arguments_of(api);
    let missing = read.needed().filter(|name| !given.contains_key(*name));
    missing.map(str::to_owned).collect()
}

/// Returns arguments as templates see them.
pub(super) fn values(args: serde_json::Map<String, serde_json::Value>) -> BTreeMap<String, Value> {
    args.into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect()
}

fn name(row: &Row) -> ResourceName {
    ResourceName::new(row.kind.as_str(), row.name.as_str())
}

pub(super) fn layout(prepared: &Prepared) -> Layout {
    let headings = prepared.headings().unwrap_or_default();
    Layout {
        columns: headings.iter().map(Heading::look).collect(),
        ..Layout::default()
    }
}

fn document(resource: ResourceName, answer: &Rows) -> CallDocument {
    CallDocument {
        schema: CallDocument::SCHEMA.to_owned(),
        resource,
        columns: columns(answer),
        rows: rows(answer),
        truncated: answer.truncated,
        cached: answer.cached,
        use_display_names: answer.use_display_names,
        sql: None,
        totals: answer.totals.as_ref().map(|totals| {
            totals
                .iter()
                .map(watershed_drivers::olap::Value::to_json)
                .collect()
        }),
        missing_arguments: Vec::new(),
        time_range: answer.time_range.map(range),
        time_zone: answer.time_zone.as_ref().map(zone),
    }
}
