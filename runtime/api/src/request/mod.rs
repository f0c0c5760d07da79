//! Requests: the inputs of operations.

mod change;
mod look;
mod rows;
mod run;

pub use change::{
    BackupRequest, EventRequest, NamesRequest, RestartRequest, RestoreRequest, RollbackRequest, ScaleRequest,
    SetRequest, SnoozeRequest, TrashEmptyRequest, TrashRestoreRequest,
};
pub use look::{
    ExplainRequest, GraphRequest, HistoryRequest, LogsRequest, NoInput, PartitionsRequest, PlanRequest,
    ProgramOutput, StatusRequest, TestRequest, ValidateRequest,
};
pub use rows::{
    AlertTestRequest, AnswerOptions, CallRequest, CompileRequest, ExportRequest, MetricsBoundsRequest,
    MetricsRequest, Parameters, QueryRequest, ReportRequest, Rows, ShowRequest,
};
pub use run::{Activity, Events, NamedRun, PartitionChoice, RefreshRequest, RunRequest, Selection};
