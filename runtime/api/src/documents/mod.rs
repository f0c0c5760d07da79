//! JSON documents and events, for other programs.
//!
//! These types are the contract of `docs/cli.md`. Each document has a JSON Schema in `docs/schemas`, written from
//! the types here and compared with them in the tests. Readers ignore keys that they don't know, so a key may be
//! added; none is renamed or removed.

mod action;
mod alert_test;
mod backup;
mod call;
mod care;
mod check;
mod compile;
mod conform;
mod data_test;
mod diagnostic;
mod engine;
mod error;
mod event;
mod explain;
mod export;
mod failure;
mod graph;
mod history;
mod instances;
mod logs;
mod metrics;
mod name;
mod operate;
mod partitions;
mod plan;
mod query;
mod reason;
mod resource;
mod run;
mod show;
mod stats;
mod time;
mod trash;

pub use action::{Action, ActionCall};
pub use alert_test::{AlertTestDocument, TestedReceiver};
pub use backup::{BackupAction, BackupDocument};
pub use call::CallDocument;
pub use care::{Checked, DoctorCheck, DoctorDocument, GcDocument, SetAside};
pub use check::{CheckDocument, CheckFinding, Compared};
pub use compile::CompileDocument;
pub use conform::{ConformCase, ConformDocument, ConformEnd, ConformGuarantee};
pub use data_test::{TestCounts, TestDocument, TestOutcome, TestedModel, TestsDocument};
pub use diagnostic::{Diagnostic, RelatedPlace, Severity};
pub use engine::{EngineDocument, EnginePart, EnginePromise};
pub use error::{CommandError, ErrorDocument};
pub use event::{Ended, Event};
pub use explain::{Blocker, ExplainDocument, Explained, Retry, RootCause};
pub use export::ExportDocument;
pub use failure::{At, ResourceError};
pub use graph::{Edge, GraphDocument, Node};
pub use history::{EndedEarly, HistoryDocument, HistoryRun, HistoryTransition, Moment, Repeats};
pub use instances::{InstanceEntry, InstanceState, InstancesDocument, Trust};
pub use logs::{LogLevel, LogLine, LogsDocument, OutputLine};
pub use metrics::{MetricsBoundsDocument, MetricsColumn, MetricsDocument, MetricsRange, MetricsRole};
pub use name::ResourceName;
pub use operate::{OperateDocument, Operated, Operation};
pub use partitions::{PartitionEntry, PartitionState, PartitionTotals, PartitionsDocument};
pub use plan::{PlanDocument, PlanEdit, PlanStep, PlanSummary, PlanWork, SqlChange};
pub use query::{Column, QueryDocument};
pub use reason::{Link, Reason};
pub use resource::{GuessedDocument, Health, LastRun, Outcome, Phase, ResourceDocument, Warning, Work};
pub use run::{Changes, Command, Outcomes, Removed, RunDocument, Summary};
pub use show::ShowDocument;
pub use stats::{ProcessStats, StatsDocument};
pub use time::Time;
pub use trash::{TrashAction, TrashDocument, TrashedTable, WhyTrashed};

use schemars::Schema;
use serde::Serialize;

/// A line of output that holds part of a document, with the schema of the whole document.
#[derive(Debug, Serialize)]
pub struct Line<'a, T> {
    /// Name and version of the whole document's form.
    pub schema: &'static str,
    /// Part of the document in this line.
    #[serde(flatten)]
    pub part: &'a T,
}

/// Returns the JSON Schema of every document, with the name of its file, in the order of `docs/cli.md`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("run", schemars::schema_for!(RunDocument)),
        ("event", schemars::schema_for!(Event)),
        ("query", schemars::schema_for!(QueryDocument)),
        ("metrics", schemars::schema_for!(MetricsDocument)),
        ("metrics-bounds", schemars::schema_for!(MetricsBoundsDocument)),
        ("call", schemars::schema_for!(CallDocument)),
        ("alert-test", schemars::schema_for!(AlertTestDocument)),
        ("export", schemars::schema_for!(ExportDocument)),
        ("show", schemars::schema_for!(ShowDocument)),
        ("compile", schemars::schema_for!(CompileDocument)),
        ("graph", schemars::schema_for!(GraphDocument)),
        ("plan", schemars::schema_for!(PlanDocument)),
        ("history", schemars::schema_for!(HistoryDocument)),
        ("partitions", schemars::schema_for!(PartitionsDocument)),
        ("check", schemars::schema_for!(CheckDocument)),
        ("conform", schemars::schema_for!(ConformDocument)),
        ("doctor", schemars::schema_for!(DoctorDocument)),
        ("backup", schemars::schema_for!(BackupDocument)),
        ("trash", schemars::schema_for!(TrashDocument)),
        ("gc", schemars::schema_for!(GcDocument)),
        ("explain", schemars::schema_for!(ExplainDocument)),
        ("operate", schemars::schema_for!(OperateDocument)),
        ("logs", schemars::schema_for!(LogsDocument)),
        ("error", schemars::schema_for!(ErrorDocument)),
        ("stats", schemars::schema_for!(StatsDocument)),
        ("engine", schemars::schema_for!(EngineDocument)),
        ("instances", schemars::schema_for!(InstancesDocument)),
        ("test", schemars::schema_for!(TestsDocument)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Compares the schemas with the files in the repository, or writes the files if `WATERSHED_BLESS` is set.
    #[test]
    fn the_schemas_in_the_repository_are_those_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        for (name, schema) in schemas() {
            let file = folder.join(format!("{name}.json"));
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("WATERSHED_BLESS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, text).unwrap();
                continue;
            }
            let kept = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                text == kept,
                "{} differs; WATERSHED_BLESS=1 accepts it",
                file.display()
            );
        }
    }
}
