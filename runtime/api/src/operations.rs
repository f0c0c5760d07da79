//! The table of operations: one line for each operation on a project.
//!
//! The types of a request and an answer, the handlers and the renderers are made from this table, so that an operation without
//! one of them does not compile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The least role that a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read statuses and ask questions that the project's policies allow.
    Read,
    /// Start and stop work on resources, and read their logs.
    Operate,
    /// Read and change what the project's files declare.
    Edit,
    /// Delete stored data for good, and copy all of it.
    Admin,
    /// Read all rows, also those that a policy hides.
    Query,
}

impl Role {
    /// Returns the role's name, as access is written in configurations and tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Edit => "edit",
            Self::Admin => "admin",
            Self::Query => "+query",
        }
    }
}

/// The manner of an operation: reading, changing, or streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// The operation only reads, and ends when the caller disconnects.
    Reads,
    /// The operation changes something, and continues when the caller disconnects.
    Works,
    /// The operation sends parts of its answer as they become known.
    Streams,
}

/// The description of an operation: one line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Name of the operation.
    pub name: &'static str,
    /// The role that a caller needs.
    pub role: Role,
    /// The manner of the operation: reading, changing, or streaming.
    pub manner: Manner,
}

/// An operation, with the types of its input and output.
///
/// Inputs that several operations share are told apart by a marker type, for which this is implemented: see [`ops`].
pub trait Operation {
    /// The description of the operation, from the table.
    const INFO: Info;
    /// Type of the input that a caller sends.
    type Input;
    /// Type of the final answer that a caller gets.
    type Output;

    /// Wraps an input of this operation in a request.
    fn request(input: Self::Input) -> Request;

    /// Wraps an output of this operation in an answer.
    fn answer(output: Self::Output) -> Answer;

    /// Unwraps the output from an answer; none if the answer is that of another operation.
    fn output(answer: Answer) -> Option<Self::Output>;
}

/// Calls a macro with the table of operations.
///
/// The table has for each operation its type, the module of its handler, its name, role and manner, and the types of
/// input and output.
#[macro_export]
macro_rules! for_each_operation {
    ($then:ident) => {
        $then! {
            Run, run, "run", Operate, Streams, RunRequest, RunDocument;
            Reconcile, reconcile, "reconcile", Operate, Streams, NamedRun, RunDocument;
            Refresh, refresh, "refresh", Operate, Streams, RefreshRequest, RunDocument;
            Approve, approve, "approve", Operate, Streams, NamedRun, RunDocument;
            Retry, retry, "retry", Operate, Streams, NamedRun, RunDocument;
            Status, status, "status", Read, Reads, StatusRequest, RunDocument;
            Engine, engine, "engine", Read, Reads, NoInput, EngineDocument;
            Validate, validate, "validate", Operate, Reads, ValidateRequest, RunDocument;
            Plan, plan, "plan", Operate, Reads, PlanRequest, PlanDocument;
            Graph, graph, "graph", Read, Reads, GraphRequest, GraphDocument;
            History, history, "history", Operate, Reads, HistoryRequest, HistoryDocument;
            Partitions, partitions, "partitions", Operate, Reads, PartitionsRequest, PartitionsDocument;
            Explain, explain, "explain", Operate, Reads, ExplainRequest, ExplainDocument;
            Test, test, "test", Operate, Reads, TestRequest, TestsDocument;
            Logs, logs, "logs", Operate, Streams, LogsRequest, LogsDocument;
            Instances, instances, "instances", Read, Reads, NoInput, InstancesDocument;
            Stats, stats, "stats", Read, Reads, NoInput, StatsDocument;
            Prometheus, prometheus, "prometheus", Read, Reads, NoInput, PrometheusPage;
            Query, query, "query", Query, Streams, QueryRequest, RowsEnd;
            Show, show, "show", Query, Streams, ShowRequest, Shown;
            Compile, compile, "compile", Query, Reads, CompileRequest, CompileDocument;
            Export, export, "export", Query, Reads, ExportRequest, ExportDocument;
            Metrics, metrics, "metrics", Read, Reads, MetricsRequest, MetricsAnswer;
            MetricsBounds, metrics_bounds, "metrics-bounds", Read, Reads, MetricsBoundsRequest, MetricsBoundsDocument;
            Call, call, "call", Read, Reads, CallRequest, CallAnswer;
            Report, report, "report", Operate, Reads, ReportRequest, CallAnswer;
            AlertTest, alert_test, "alert-test", Operate, Reads, AlertTestRequest, AlertTestDocument;
            Pause, pause, "pause", Operate, Works, NamesRequest, OperateDocument;
            Resume, resume, "resume", Operate, Works, NamesRequest, OperateDocument;
            Cancel, cancel, "cancel", Operate, Works, NamesRequest, OperateDocument;
            Scale, scale, "scale", Operate, Works, ScaleRequest, OperateDocument;
            Restart, restart, "restart", Operate, Works, RestartRequest, OperateDocument;
            Rollback, rollback, "rollback", Operate, Works, RollbackRequest, OperateDocument;
            Set, set, "set", Operate, Works, SetRequest, OperateDocument;
            Event, event, "event", Operate, Works, EventRequest, OperateDocument;
            Snooze, snooze, "snooze", Operate, Works, SnoozeRequest, OperateDocument;
            TrashList, trash_list, "trash-list", Operate, Reads, NoInput, TrashDocument;
            TrashRestore, trash_restore, "trash-restore", Edit, Works, TrashRestoreRequest, TrashDocument;
            TrashEmpty, trash_empty, "trash-empty", Admin, Works, TrashEmptyRequest, TrashDocument;
            Check, check, "check", Admin, Reads, NoInput, CheckDocument;
            Doctor, doctor, "doctor", Admin, Reads, NoInput, DoctorDocument;
            Repair, repair, "repair", Admin, Works, NoInput, DoctorDocument;
            Gc, gc, "gc", Admin, Works, NoInput, GcDocument;
            Backup, backup, "backup", Admin, Works, BackupRequest, BackupDocument;
            Restore, restore, "restore", Admin, Works, RestoreRequest, BackupDocument;
        }
    };
}

macro_rules! types {
    ($($op:ident, $module:ident, $name:literal, $role:ident, $manner:ident, $input:ident, $output:ident;)*) => {
        /// A request to carry out an operation on a project.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Request {
            $(#[doc = concat!("The operation `", $name, "`.")] $op(Box<request::$input>),)*
        }

        /// The final answer to a request, by operation.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Answer {
            $(#[doc = concat!("The answer to `", $name, "`.")] $op(Box<answers::$output>),)*
        }

        impl Request {
            /// Returns the description of the requested operation.
            pub fn info(&self) -> Info {
                match self {
                    $(Self::$op(_) => ops::$op::INFO,)*
                }
            }
        }

        /// The descriptions of all operations, in the order of the table.
        pub const TABLE: &[Info] = &[$(ops::$op::INFO,)*];

        /// One marker type for each operation, which implements [`Operation`].
        pub mod ops {
            use super::{Answer, Info, Manner, Operation, Request, Role, answers, request};

            $(
                #[doc = concat!("The operation `", $name, "`.")]
                #[derive(Debug, Clone, Copy)]
                pub enum $op {}

                impl Operation for $op {
                    const INFO: Info = Info { name: $name, role: Role::$role, manner: Manner::$manner };
                    type Input = request::$input;
                    type Output = answers::$output;

                    fn request(input: Self::Input) -> Request {
                        Request::$op(Box::new(input))
                    }

                    fn answer(output: Self::Output) -> Answer {
                        Answer::$op(Box::new(output))
                    }

                    fn output(answer: Answer) -> Option<Self::Output> {
                        match answer {
                            Answer::$op(output) => Some(*output),
                            _ => None,
                        }
                    }
                }
            )*
        }
    };
}

use crate::{answers, request};

for_each_operation!(types);

impl Request {
    /// Returns the options of the requested run; none if the operation runs nothing.
    pub fn run_mut(&mut self) -> Option<&mut request::RunRequest> {
        match self {
            Self::Run(run) => Some(run),
            Self::Reconcile(named) | Self::Approve(named) | Self::Retry(named) => Some(&mut named.run),
            Self::Refresh(refresh) => Some(&mut refresh.run),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_those_that_requests_are_sent_under() {
        let names: BTreeSet<&str> = TABLE.iter().map(|line| line.name).collect();
        assert_eq!(names.len(), TABLE.len());
        let request = ops::TrashList::request(request::NoInput {});
        let json = serde_json::to_value(&request).unwrap();
        assert_eq!(json, serde_json::json!({ request.info().name: {} }));
    }

    #[test]
    fn unknown_operations_and_keys_are_refused() {
        for wrong in [
            r#"{"drop-everything":{}}"#,
            r#"{"gc":{"really":true}}"#,
            r#"{"pause":{"names":[],"nams":["a"]}}"#,
            r#"{"history":{"name":null,"limit":-1}}"#,
            r#""gc""#,
        ] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
    }
}
