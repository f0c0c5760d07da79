//! Queries and bodies of the HTTP API, and their conversion to the inputs of operations.
//!
//! A form has what may be said of an operation over HTTP: its names come from the path, files of the machine and variables
//! are no part of it. Unknown keys are refused, for a typo must not mean "everything".

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::at::At;
use super::limit::Limit;
use crate::documents::{
    CallDocument, CompileDocument, DoctorDocument, EngineDocument, ExplainDocument, GcDocument,
    GraphDocument, HistoryDocument, LogsDocument, MetricsBoundsDocument, MetricsDocument, OperateDocument,
    Outcome, PartitionState, PartitionsDocument, PlanDocument, RunDocument, StatsDocument, TestsDocument,
    Time, TrashDocument,
};
use crate::operations::{Operation, ops};
use crate::request::{
    AnswerOptions, CallRequest, CompileRequest, EventRequest, ExplainRequest, GraphRequest, HistoryRequest,
    LogsRequest, MetricsBoundsRequest, MetricsRequest, NamedRun, NamesRequest, NoInput, PartitionChoice,
    PartitionsRequest, PlanRequest, ProgramOutput, RefreshRequest, ReportRequest, RestartRequest,
    RollbackRequest, RunRequest, ScaleRequest, Selection, SetRequest, SnoozeRequest, TestRequest,
    TrashEmptyRequest, TrashRestoreRequest,
};

/// Maximum number of entries of a list: 100 by default, at most 1,000.
pub type Entries = Limit<100, 1_000>;
/// Maximum number of lines written before the request: 100 by default, at most 1,000.
type Lines = Limit<100, 1_000, 0>;
/// Maximum number of rows in a JSON answer: 10,000 by default, and at most.
type MostRows = Limit<10_000, 10_000>;

/// The query or body of a path, which becomes the input of an operation.
pub trait Form: DeserializeOwned + JsonSchema {
    /// The operation that receives the input.
    type Operation: Operation;
    /// The document that answers the operation.
    type Document: JsonSchema;

    /// Converts the form to the operation's input, for the resources that the path names.
    fn into_input(self, at: &At) -> <Self::Operation as Operation>::Input;
}

/// An empty query or body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

macro_rules! form {
    ($form:ident, $op:ident, $document:ident, |$self:ident, $at:ident| $input:expr) => {
        impl Form for $form {
            type Operation = ops::$op;
            type Document = $document;

            fn into_input($self, $at: &At) -> <ops::$op as Operation>::Input {
                $input
            }
        }
    };
}

macro_rules! without_keys {
    ($($(#[$doc:meta])* $form:ident, $op:ident, $document:ident, |$at:ident| $input:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub struct $form {}

            form!($form, $op, $document, |self, $at| $input);
        )*
    };
}

without_keys! {
    /// Body of a request to reconcile resources again.
    Reconcile, Reconcile, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// Body of a request to evaluate an alert, also if nothing that the alert reads has changed.
    Evaluate, Refresh, RunDocument, |at| RefreshRequest {
        names: at.names(),
        full: false,
        downstream: false,
        partitions: None,
        run: RunRequest::default(),
    };
    /// Body of a request to retry failed work.
    Retry, Retry, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// Body of a request to approve held edits.
    Approve, Approve, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// Body of a request to pause resources.
    Pause, Pause, OperateDocument, |at| NamesRequest { names: at.names() };
    /// Body of a request to resume paused resources.
    Resume, Resume, OperateDocument, |at| NamesRequest { names: at.names() };
    /// Body of a request to cancel running work.
    Cancel, Cancel, OperateDocument, |at| NamesRequest { names: at.names() };
    /// Query of a request to explain why resources are not running.
    Explain, Explain, ExplainDocument, |at| ExplainRequest { name: at.name() };
    /// Query of a request for the engine's guarantees and capabilities.
    Engine, Engine, EngineDocument, |_at| NoInput {};
    /// Query of a request for the compiled SQL of a model.
    Compile, Compile, CompileDocument, |at| CompileRequest { name: at.one() };
    /// Query of a request for the controller's statistics.
    Stats, Stats, StatsDocument, |_at| NoInput {};
    /// Query of a request to list the trash.
    Trash, TrashList, TrashDocument, |_at| NoInput {};
    /// Body of a request to check the stored data for damage.
    Doctor, Doctor, DoctorDocument, |_at| NoInput {};
    /// Body of a request to free unused space.
    Gc, Gc, GcDocument, |_at| NoInput {};
    /// Body of a request to run a single model's tests.
    TestOne, Test, TestsDocument, |at| TestRequest { names: at.names(), ..TestRequest::default() };
}

/// Body of a request to run the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RunForm")]
pub struct Run {
    /// Terms of the selection, as after `--select`; empty for all resources.
    pub select: Vec<String>,
    /// Terms of resources to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
    /// True to stop at the first failure.
    pub fail_fast: bool,
    /// True to count warnings as errors.
    pub warn_error: bool,
}

form!(Run, Run, RunDocument, |self, _at| RunRequest {
    fail_fast: self.fail_fast,
    warn_error: self.warn_error,
    selection: selection(self.select, self.exclude),
    ..RunRequest::default()
});

/// Body of a request to refresh resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RefreshForm")]
pub struct Refresh {
    /// True to discard incremental state and rebuild all rows.
    pub full: bool,
    /// True to refresh transitive dependents too, except reports, which are sent only by name or schedule.
    pub downstream: bool,
    /// Partitions to rebuild besides the due ones, each given by its key, a prefix of the key, or a value in its data.
    pub partitions: Vec<String>,
    /// True to rebuild all failed partitions, instead of those in `partitions`.
    pub errored: bool,
}

form!(Refresh, Refresh, RunDocument, |self, at| RefreshRequest {
    names: at.names(),
    full: self.full,
    downstream: self.downstream,
    partitions: match (self.errored, self.partitions.is_empty()) {
        (true, _) => Some(PartitionChoice::Errored),
        (false, false) => Some(PartitionChoice::Keys(self.partitions)),
        (false, true) => None,
    },
    run: RunRequest::default(),
});

/// Query of a request for the graph of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "GraphForm")]
pub struct Graph {
    /// Resource whose ancestors and descendants are drawn; absent for the whole graph.
    pub around: Option<String>,
    /// Terms of the selection, as after `--select`; empty for all resources.
    pub select: Vec<String>,
    /// Terms of resources to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
    /// True to draw hidden resources too.
    pub all: bool,
}

form!(Graph, Graph, GraphDocument, |self, _at| GraphRequest {
    name: self.around,
    selection: selection(self.select, self.exclude),
    all: self.all,
});

/// Query of a request for a resource's past runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "HistoryForm")]
pub struct History {
    /// Maximum number of runs: 100 by default, at most 1,000.
    pub limit: Entries,
    /// Earliest start of the listed runs; absent for no such bound.
    pub from: Option<Time>,
    /// End of the period, exclusive: runs that began at or after this time are left out; absent for no such bound.
    pub until: Option<Time>,
    /// Outcomes of the listed runs; empty for all.
    pub outcome: Vec<Outcome>,
    /// Token of the page, from the previous page's answer; absent for the newest runs.
    pub page: Option<String>,
}

form!(History, History, HistoryDocument, |self, at| HistoryRequest {
    name: at.name(),
    limit: self.limit.get(),
    from: self.from,
    until: self.until,
    outcomes: self.outcome,
    page: self.page,
    ..HistoryRequest::default()
});

/// Query of a request for the past runs of all resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PastForm")]
pub struct Past {
    /// Terms of the selection, as after `--select`; empty for all resources.
    pub select: Vec<String>,
    /// Terms of resources to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
    /// Maximum number of runs: 100 by default, at most 1,000.
    pub limit: Entries,
    /// Earliest start of the listed runs; absent for no such bound.
    pub from: Option<Time>,
    /// End of the period, exclusive: runs that began at or after this time are left out; absent for no such bound.
    pub until: Option<Time>,
    /// Outcomes of the listed runs; empty for all.
    pub outcome: Vec<Outcome>,
    /// Token of the page, from the previous page's answer; absent for the newest runs.
    pub page: Option<String>,
}

form!(Past, History, HistoryDocument, |self, _at| HistoryRequest {
    name: None,
    limit: self.limit.get(),
    from: self.from,
    until: self.until,
    outcomes: self.outcome,
    page: self.page,
    selection: selection(self.select, self.exclude),
});

/// Query of a request for a model's partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PartitionsForm")]
pub struct Partitions {
    /// True to list only partitions that failed.
    pub errored: bool,
    /// States of the listed partitions; empty for all.
    pub phase: Vec<PartitionState>,
    /// First partition key of a range, inclusive; absent for no lower bound.
    pub from: Option<String>,
    /// End of a range of partition keys, exclusive; absent for no upper bound.
    pub to: Option<String>,
    /// Maximum number of partitions: 100 by default, at most 1,000.
    pub limit: Entries,
    /// Token of the page, from the previous page's answer; absent for the latest runs.
    pub page: Option<String>,
}

form!(Partitions, Partitions, PartitionsDocument, |self, at| {
    PartitionsRequest {
        name: at.one(),
        errored: self.errored,
        limit: self.limit.get(),
        phases: self.phase,
        from: self.from,
        to: self.to,
        page: self.page,
    }
});

/// Query of a request for the log lines of a resource's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "LogsForm")]
pub struct Logs {
    /// Maximum number of lines written before the request: 100 by default, at most 1,000.
    pub limit: Lines,
    /// Earliest time of the returned lines; absent for no such bound.
    pub since: Option<Time>,
    /// True for a stream of events that continues with new lines.
    pub follow: bool,
}

form!(Logs, Logs, LogsDocument, |self, at| LogsRequest {
    name: at.one(),
    limit: self.limit.get(),
    follow: self.follow,
    since: self.since,
    program: None,
});

/// Query of a request for a program's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "OutputForm")]
pub struct Output {
    /// Maximum number of lines written before the request: 100 by default, at most 1,000.
    pub limit: Lines,
    /// Earliest time of the returned lines; absent for no such bound.
    pub since: Option<Time>,
    /// True for a stream of events that continues with new lines.
    pub follow: bool,
    /// Number of the replica; absent for all replicas.
    pub replica: Option<u64>,
    /// True for the output of the start before the last start.
    pub previous: bool,
}

form!(Output, Logs, LogsDocument, |self, at| LogsRequest {
    name: at.one(),
    limit: self.limit.get(),
    follow: self.follow,
    since: self.since,
    program: Some(ProgramOutput {
        replica: self.replica,
        previous: self.previous,
    }),
});

/// Body of a request for a forecast of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PlanForm")]
pub struct Plan {
    /// Terms of the selection, as after `--select`; empty for all resources.
    pub select: Vec<String>,
    /// Terms of resources to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
}

form!(Plan, Plan, PlanDocument, |self, _at| PlanRequest {
    exit_code: false,
    selection: selection(self.select, self.exclude),
});

/// Body of a request to run the tests of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TestForm")]
pub struct Test {
    /// Terms of the selection of models, as after `--select`; empty for all models.
    pub select: Vec<String>,
    /// Terms of models to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
    /// True to count warnings as errors.
    pub warn_error: bool,
}

form!(Test, Test, TestsDocument, |self, _at| TestRequest {
    names: Vec::new(),
    selection: selection(self.select, self.exclude),
    warn_error: self.warn_error,
});

/// Body of a request to restart services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RestartForm")]
pub struct Restart {
    /// True to restart all replicas at once; false to restart only as many at a time as the service allows to be
    /// missing.
    pub now: bool,
}

form!(Restart, Restart, OperateDocument, |self, at| RestartRequest {
    names: at.names(),
    now: self.now,
});

/// Body of a request to change a service's number of replicas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ScaleForm")]
pub struct Scale {
    /// New number of replicas; null for the number in the service's file.
    pub replicas: Option<u32>,
}

form!(Scale, Scale, OperateDocument, |self, at| ScaleRequest {
    names: at.names(),
    replicas: self.replicas,
});

/// Body of a request to return a service to an earlier release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RollbackForm")]
pub struct Rollback {
    /// Number of the release to return to; null for the release before the active one.
    pub to: Option<u64>,
}

form!(Rollback, Rollback, OperateDocument, |self, at| RollbackRequest {
    names: at.names(),
    to: self.to,
});

/// Body of a request to set the desired stage of a managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetForm")]
pub struct Set {
    /// Name of the desired stage.
    pub desired: String,
}

form!(Set, Set, OperateDocument, |self, at| SetRequest {
    name: at.one(),
    desired: self.desired,
});

/// Body of a request to snooze an alert, or to end its snooze.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SnoozeForm")]
pub struct Snooze {
    /// End of the snooze; null to end a snooze now.
    pub until: Option<Time>,
}

form!(Snooze, Snooze, OperateDocument, |self, at| SnoozeRequest {
    name: at.one(),
    until_ms: self.until.map(Time::millis),
});

/// Body of a request to restore a table from the trash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RestoreTableForm")]
pub struct RestoreTable {
    /// New name of the table; null to keep its former name.
    pub to: Option<String>,
    /// True to report the effect without a change.
    pub dry_run: bool,
}

form!(RestoreTable, TrashRestore, TrashDocument, |self, at| {
    TrashRestoreRequest {
        name: at.one(),
        to: self.to,
        dry_run: self.dry_run,
    }
});

/// Body of a request to delete tables in the trash for good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "EmptyTrashForm")]
pub struct EmptyTrash {
    /// Names of tables, or prefixes of their ids; empty for all tables in the trash.
    pub names: Vec<String>,
    /// True to report the effect without a change.
    #[serde(default)]
    pub dry_run: bool,
}

form!(EmptyTrash, TrashEmpty, TrashDocument, |self, _at| {
    TrashEmptyRequest {
        names: self.names,
        dry_run: self.dry_run,
    }
});

/// Body of a query of a metrics view.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MetricsQueryForm")]
pub struct MetricsQuery {
    /// Query in its JSON form, without the name of the metrics view. Its keys are `dimensions`, `measures`, `time_range` and `comparison_time_range` (each an object with `expression`, as `2024-07`, `P7D` for the last days up to the latest row or `P1M as of 2024-07-01`, or with `start` and `end`), `time_zone` (UTC unless set: days, months and years are those of this zone), `sort`, `limit`, `offset`, `pivot_on`, `spine` and `totals`.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Query as SQL over the metrics view, in the place of `query`; null for none.
    #[serde(default)]
    pub sql: Option<String>,
    /// SQL condition on the rows before aggregation; null for all rows.
    #[serde(default, rename = "where")]
    pub condition: Option<String>,
    /// SQL condition on the groups after aggregation; null for all groups.
    #[serde(default)]
    pub having: Option<String>,
    /// True to add, for each measure, its value in the query's `comparison_time_range` and the relative change.
    #[serde(default)]
    pub shows_change: bool,
    /// Explore or canvas whose rules apply too, as `kind/name`; null for the view alone.
    #[serde(default)]
    pub through: Option<String>,
    /// Time for which the query is evaluated, as text; null for now.
    #[serde(default)]
    pub at: Option<String>,
    /// Maximum number of rows: 10,000 by default, and at most.
    #[serde(default)]
    pub limit: MostRows,
}

form!(MetricsQuery, Metrics, MetricsDocument, |self, at| {
    let mut query = self.query;
    query.insert("metrics_view".to_owned(), Value::String(at.plain_name()));
    MetricsRequest {
        query: Value::Object(query),
        sql: self.sql,
        condition: self.condition,
        having: self.having,
        shows_change: self.shows_change,
        user: None,
        through: self.through,
        options: shown(self.limit, self.at),
    }
});

/// Query of a request for the first and last time in a metrics view's time dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "MetricsBoundsForm")]
pub struct MetricsBounds {
    /// Explore or canvas whose rules apply too, as `kind/name`; absent for the view alone.
    pub through: Option<String>,
}

form!(MetricsBounds, MetricsBounds, MetricsBoundsDocument, |self, at| {
    MetricsBoundsRequest {
        view: at.plain_name(),
        user: None,
        through: self.through,
    }
});

/// Arguments of a call of an API, as the API's own OpenAPI document describes them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(pub Map<String, Value>);

form!(Arguments, Call, CallDocument, |self, at| CallRequest {
    api: at.plain_name(),
    args: self.0,
    user: None,
    options: shown(MostRows::default(), None),
});

/// Body of a request for the rows of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RunReportForm")]
pub struct RunReport {
    /// Time for which the report is made, as text; null for now.
    pub at: Option<String>,
    /// Maximum number of rows: 10,000 by default, and at most.
    pub limit: MostRows,
}

form!(RunReport, Report, CallDocument, |self, at| ReportRequest {
    name: at.plain_name(),
    options: shown(self.limit, self.at),
});

/// Events in the JSON form of CloudEvents: a single event, or a list.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Events(pub Value);

form!(Events, Event, OperateDocument, |self, _at| EventRequest {
    body: self.0.to_string(),
});

/// The selection of resources that an operation applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "SelectedForm")]
pub struct Selected {
    /// Terms of the selection, as after `--select`; empty for all resources.
    pub select: Vec<String>,
    /// Terms of resources to leave out, as after `--exclude`; empty to leave out nothing.
    pub exclude: Vec<String>,
    /// Number of resources that the operation would change, to confirm it; null to ask for this number first.
    pub confirm: Option<u64>,
}

impl Selected {
    /// Names of the selection's keys, which a body may hold beside the operation's own keys.
    pub const KEYS: [&str; 3] = ["select", "exclude", "confirm"];
}

fn selection(select: Vec<String>, exclude: Vec<String>) -> Selection {
    Selection { select, exclude }
}

fn shown(limit: MostRows, at: Option<String>) -> AnswerOptions {
    AnswerOptions {
        at,
        shown: Some(limit.get()),
        ..AnswerOptions::default()
    }
}
