//! Queries and bodies of paths, and the inputs of operations that become of them.
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
    CallDocument, DoctorDocument, EngineDocument, ExplainDocument, GcDocument, GraphDocument,
    HistoryDocument, LogsDocument, MetricsBoundsDocument, MetricsDocument, OperateDocument, Outcome,
    PartitionState, PartitionsDocument, PlanDocument, RunDocument, StatsDocument, TestsDocument, Time,
    TrashDocument,
};
use crate::operations::{Operation, ops};
use crate::request::{
    AnswerOptions, CallRequest, EventRequest, ExplainRequest, GraphRequest, HistoryRequest, LogsRequest,
    MetricsBoundsRequest, MetricsRequest, NamedRun, NamesRequest, NoInput, PartitionChoice,
    PartitionsRequest, PlanRequest, ProgramOutput, RefreshRequest, ReportRequest, RestartRequest,
    RollbackRequest, RunRequest, ScaleRequest, Selection, SetRequest, SnoozeRequest, TestRequest,
    TrashEmptyRequest, TrashRestoreRequest,
};

/// The entries of a list: a screenful, unless more are wanted.
pub type Entries = Limit<100, 1_000>;
/// The lines of those that were written before.
type Lines = Limit<100, 1_000, 0>;
/// The rows of an answer in JSON.
type MostRows = Limit<10_000, 10_000>;

/// A query or body, of which the input of an operation is made.
pub trait Form: DeserializeOwned + JsonSchema {
    /// The operation.
    type Operation: Operation;
    /// The document with which the operation is answered.
    type Document: JsonSchema;

    /// Returns the input of the operation at a path.
    fn into_input(self, at: &At) -> <Self::Operation as Operation>::Input;
}

/// A form without keys.
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
    /// The form of a look at resources once more.
    Reconcile, Reconcile, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// The form of another try of what has failed.
    Retry, Retry, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// The form of leave for edits that are held.
    Approve, Approve, RunDocument, |at| NamedRun { names: at.names(), run: RunRequest::default() };
    /// The form of a pause.
    Pause, Pause, OperateDocument, |at| NamesRequest { names: at.names() };
    /// The form of the end of a pause.
    Resume, Resume, OperateDocument, |at| NamesRequest { names: at.names() };
    /// The form of the end of runs.
    Cancel, Cancel, OperateDocument, |at| NamesRequest { names: at.names() };
    /// The query of an explanation.
    Explain, Explain, ExplainDocument, |at| ExplainRequest { name: at.name() };
    /// The query of what the engine promises.
    Engine, Engine, EngineDocument, |_at| NoInput {};
    /// The query of numbers.
    Stats, Stats, StatsDocument, |_at| NoInput {};
    /// The query of the trash.
    Trash, TrashList, TrashDocument, |_at| NoInput {};
    /// The form of a search for damage.
    Doctor, Doctor, DoctorDocument, |_at| NoInput {};
    /// The form of the removal of what nothing needs.
    Gc, Gc, GcDocument, |_at| NoInput {};
    /// The form of tests of one model.
    TestOne, Test, TestsDocument, |at| TestRequest { names: at.names(), ..TestRequest::default() };
}

/// The form of a run of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RunForm")]
pub struct Run {
    /// The resources that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
    /// True to end the run at the first failure.
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

/// The form of work that is done once more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RefreshForm")]
pub struct Refresh {
    /// True to forget incremental state.
    pub full: bool,
    /// True to refresh dependents too.
    pub downstream: bool,
    /// The partitions that are built again, by key, by the beginning of one, or by a value of their data.
    pub partitions: Vec<String>,
    /// True to build the partitions again that failed.
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

/// The query of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "GraphForm")]
pub struct Graph {
    /// The resource in the middle; without one all are drawn.
    pub around: Option<String>,
    /// The resources that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
    /// True to draw hidden resources too.
    pub all: bool,
}

form!(Graph, Graph, GraphDocument, |self, _at| GraphRequest {
    name: self.around,
    selection: selection(self.select, self.exclude),
    all: self.all,
});

/// The query of past runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "HistoryForm")]
pub struct History {
    /// The most runs, at most 1,000; 100 unless said.
    pub limit: Entries,
    /// The time before which runs are left out that began then.
    pub from: Option<Time>,
    /// The time from which on runs are left out that began then.
    pub until: Option<Time>,
    /// The outcomes that are meant; all if there is none.
    pub outcome: Vec<Outcome>,
    /// The token of the page, as the page before gave it.
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

/// The query of past runs of all resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PastForm")]
pub struct Past {
    /// The resources that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
    /// The most runs, at most 1,000; 100 unless said.
    pub limit: Entries,
    /// The time before which runs are left out that began then.
    pub from: Option<Time>,
    /// The time from which on runs are left out that began then.
    pub until: Option<Time>,
    /// The outcomes that are meant; all if there is none.
    pub outcome: Vec<Outcome>,
    /// The token of the page, as the page before gave it.
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

/// The query of partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PartitionsForm")]
pub struct Partitions {
    /// True for those that failed alone.
    pub errored: bool,
    /// The phases that are meant; all if there is none.
    pub phase: Vec<PartitionState>,
    /// The first key of a range.
    pub from: Option<String>,
    /// The key behind the last one of a range.
    pub to: Option<String>,
    /// The most partitions, at most 1,000; 100 unless said.
    pub limit: Entries,
    /// The token of the page, as the page before gave it.
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

/// The query of logs of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "LogsForm")]
pub struct Logs {
    /// The most lines of those that were written before, at most 1,000; 100 unless said.
    pub limit: Lines,
    /// The time before which lines are left out.
    pub since: Option<Time>,
    /// True for a stream of events that goes on with what is written from now on.
    pub follow: bool,
}

form!(Logs, Logs, LogsDocument, |self, at| LogsRequest {
    name: at.one(),
    limit: self.limit.get(),
    follow: self.follow,
    since: self.since,
    program: None,
});

/// The query of a program's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "OutputForm")]
pub struct Output {
    /// The most lines of those that were written before, at most 1,000; 100 unless said.
    pub limit: Lines,
    /// The time before which lines are left out.
    pub since: Option<Time>,
    /// True for a stream of events that goes on with what is written from now on.
    pub follow: bool,
    /// The number of the replica; without one those of all are told.
    pub replica: Option<u64>,
    /// True for the start before the last one.
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

/// The form of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PlanForm")]
pub struct Plan {
    /// The resources that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
}

form!(Plan, Plan, PlanDocument, |self, _at| PlanRequest {
    exit_code: false,
    selection: selection(self.select, self.exclude),
});

/// The form of tests of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TestForm")]
pub struct Test {
    /// The models that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
    /// True to count warnings as errors.
    pub warn_error: bool,
}

form!(Test, Test, TestsDocument, |self, _at| TestRequest {
    names: Vec::new(),
    selection: selection(self.select, self.exclude),
    warn_error: self.warn_error,
});

/// The form of another start of services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RestartForm")]
pub struct Restart {
    /// True for all replicas at once, false for as many as may be missing.
    pub now: bool,
}

form!(Restart, Restart, OperateDocument, |self, at| RestartRequest {
    names: at.names(),
    now: self.now,
});

/// The form of another number of replicas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ScaleForm")]
pub struct Scale {
    /// The number of replicas; null for that of the file.
    pub replicas: Option<u32>,
}

form!(Scale, Scale, OperateDocument, |self, at| ScaleRequest {
    names: at.names(),
    replicas: self.replicas,
});

/// The form of a return to an earlier release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RollbackForm")]
pub struct Rollback {
    /// The number of the release; null for the one before the active one.
    pub to: Option<u64>,
}

form!(Rollback, Rollback, OperateDocument, |self, at| RollbackRequest {
    names: at.names(),
    to: self.to,
});

/// The form of another stage of a managed resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SetForm")]
pub struct Set {
    /// The stage that is desired.
    pub desired: String,
}

form!(Set, Set, OperateDocument, |self, at| SetRequest {
    name: at.one(),
    desired: self.desired,
});

/// The form of a time during which nobody is told of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SnoozeForm")]
pub struct Snooze {
    /// The end; null ends a snooze that there is.
    pub until: Option<Time>,
}

form!(Snooze, Snooze, OperateDocument, |self, at| SnoozeRequest {
    name: at.one(),
    until_ms: self.until.map(Time::millis),
});

/// The form of a table that is given back from the trash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RestoreTableForm")]
pub struct RestoreTable {
    /// The name that the table is to have; null for its own.
    pub to: Option<String>,
    /// True to say only what would be done.
    pub dry_run: bool,
}

form!(RestoreTable, TrashRestore, TrashDocument, |self, at| {
    TrashRestoreRequest {
        name: at.one(),
        to: self.to,
        dry_run: self.dry_run,
    }
});

/// The form of tables that are thrown away for good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "EmptyTrashForm")]
pub struct EmptyTrash {
    /// Names of tables, or beginnings of ids; empty for all.
    pub names: Vec<String>,
    /// True to say only what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

form!(EmptyTrash, TrashEmpty, TrashDocument, |self, _at| {
    TrashEmptyRequest {
        names: self.names,
        dry_run: self.dry_run,
    }
});

/// The form of a question to a metrics view.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MetricsQueryForm")]
pub struct MetricsQuery {
    /// The query, without the name of the view.
    pub query: Map<String, Value>,
    /// A condition in SQL on the rows that count.
    #[serde(default, rename = "where")]
    pub condition: Option<String>,
    /// A condition in SQL on the groups that are shown.
    #[serde(default)]
    pub having: Option<String>,
    /// True to add to each measure its value in the range that is compared with, and the change since then.
    #[serde(default)]
    pub shows_change: bool,
    /// The explore or canvas through which the question is asked, as `kind/name`.
    #[serde(default)]
    pub through: Option<String>,
    /// The time that the question is put at; null for now.
    #[serde(default)]
    pub at: Option<String>,
    /// The most rows, at most 10,000, which is also what a question without a number gets.
    #[serde(default)]
    pub limit: MostRows,
}

form!(MetricsQuery, Metrics, MetricsDocument, |self, at| {
    let mut query = self.query;
    query.insert("metrics_view".to_owned(), Value::String(at.plain_name()));
    MetricsRequest {
        query: Value::Object(query),
        condition: self.condition,
        having: self.having,
        shows_change: self.shows_change,
        user: None,
        through: self.through,
        options: shown(self.limit, self.at),
    }
});

/// The query of the ends of a metrics view's time dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "MetricsBoundsForm")]
pub struct MetricsBounds {
    /// The explore or canvas through which the question is asked, as `kind/name`.
    pub through: Option<String>,
}

form!(MetricsBounds, MetricsBounds, MetricsBoundsDocument, |self, at| {
    MetricsBoundsRequest {
        view: at.plain_name(),
        user: None,
        through: self.through,
    }
});

/// The arguments of an API, as its own OpenAPI document says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Arguments(pub Map<String, Value>);

form!(Arguments, Call, CallDocument, |self, at| CallRequest {
    api: at.plain_name(),
    args: self.0,
    user: None,
    options: shown(MostRows::default(), None),
});

/// The form of a report that is made now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RunReportForm")]
pub struct RunReport {
    /// The time that the report is made for; null for now.
    pub at: Option<String>,
    /// The most rows, at most 10,000, which is also what a question without a number gets.
    pub limit: MostRows,
}

form!(RunReport, Report, CallDocument, |self, at| ReportRequest {
    name: at.plain_name(),
    options: shown(self.limit, self.at),
});

/// Events in the JSON form of CloudEvents: one, or a list of them.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Events(pub Value);

form!(Events, Event, OperateDocument, |self, _at| EventRequest {
    body: self.0.to_string(),
});

/// The resources that an operation over a selection is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "SelectedForm")]
pub struct Selected {
    /// The resources that are meant; all if there is none.
    pub select: Vec<String>,
    /// The ones that are left out of those.
    pub exclude: Vec<String>,
    /// The number of resources that the operation would touch, as it answered without this key.
    pub confirm: Option<u64>,
}

impl Selected {
    /// The keys of the selection, which stand beside those of the operation.
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
