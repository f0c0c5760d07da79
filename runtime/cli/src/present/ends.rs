//! Final answers, each shown in the formats that it has.

use watershed_api::answers::{
    AlertTestDocument, BackupDocument, CallAnswer, CheckDocument, CompileDocument, DoctorDocument,
    EngineDocument, ExplainDocument, ExportDocument, GcDocument, GraphDocument, HistoryDocument,
    InstancesDocument, LogsDocument, MetricsAnswer, MetricsBoundsDocument, OperateDocument,
    PartitionsDocument, PlanDocument, PrometheusPage, RowsEnd, RunDocument, Shown, StatsDocument,
    TestsDocument, TrashDocument,
};
use watershed_api::documents::Time;
use watershed_api::{Answer, Exit, Problem};

use super::Presenter;
use crate::args::Format;
use crate::failure::Failure;
use crate::render::{
    alert_test, backup, calls, care, check, engine, explain, graph, metrics, operate, partitions, plan, rows,
    status, trash,
};

/// An output that a presenter can show, each type in its own form.
pub(crate) trait Present {
    /// Shows the output and returns the exit code.
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure>;
}

macro_rules! present {
    ($($op:ident, $handler:ident, $name:literal, $role:ident, $manner:ident, $input:ident, $output:ident;)*) => {
        pub(super) fn present(answer: Answer, presenter: Presenter<'_>) -> Result<Exit, Failure> {
            match answer {
                $(Answer::$op(output) => output.present(presenter),)*
            }
        }
    };
}

watershed_api::for_each_operation!(present);

impl Present for AlertTestDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document_with_code(self.exit_code, &self, |_| alert_test::alert_test(&self))
    }
}

impl Present for BackupDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| backup::backup(&self, Time::now()))
    }
}

impl Present for CallAnswer {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        match self {
            Self::File(written) => written.present(presenter),
            Self::Document(document) if presenter.format() == Format::Json => presenter.written(&*document),
            Self::Document(document) => {
                presenter.advice.extend(calls::advice(&document));
                presenter.metrics(&document.as_metrics())
            }
        }
    }
}

impl Present for DoctorDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document_with_code(self.exit_code, &self, |_| care::doctor(&self))
    }
}

impl Present for GcDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| care::gc(&self))
    }
}

impl Present for CheckDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document_with_code(self.exit_code, &self, |_| check::check(&self))
    }
}

impl Present for TestsDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.tests(&self)
    }
}

impl Present for ExplainDocument {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        let sources = std::mem::take(&mut presenter.sources);
        presenter.document(&self, |width| {
            explain::explain(&sources.in_explanation(self.clone()), Time::now(), width)
        })
    }
}

impl Present for Shown {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        let document = match self {
            Self::Rows(end) => return end.present(presenter),
            Self::Resource(document) => document,
        };
        match presenter.format() {
            Format::Table | Format::Vertical => presenter.fields(&document),
            Format::Csv | Format::Jsonl | Format::Chart => {
                Err(Problem::without_rows(&document.resource.name).into())
            }
            _ => presenter.written(&*document),
        }
    }
}

impl Present for LogsDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.end_logs(self)
    }
}

impl Present for MetricsAnswer {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        match self {
            Self::File(written) => written.present(presenter),
            Self::Document(document) if presenter.format() == Format::Json => presenter.written(&*document),
            Self::Document(document) => presenter.metrics(&document),
        }
    }
}

impl Present for OperateDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| operate::operated(&self))
    }
}

impl Present for EngineDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |width| engine::engine(&self, width))
    }
}

impl Present for StatsDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| operate::stats(&self))
    }
}

impl Present for PrometheusPage {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.text(&self.0)
    }
}

impl Present for MetricsBoundsDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| metrics::bounds(&self))
    }
}

impl Present for PartitionsDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |width| partitions::partitions(&self, Time::now(), width))
    }
}

impl Present for PlanDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document_with_code(self.exit_code, &self, |width| plan::plan(&self, width))
    }
}

impl Present for RowsEnd {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.end_rows(self.more)
    }
}

impl Present for ExportDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| rows::exported(&self))
    }
}

impl Present for CompileDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |_| format!("{}\n", self.sql.trim_end()))
    }
}

impl Present for GraphDocument {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        let sources = std::mem::take(&mut presenter.sources);
        match presenter.format() {
            Format::Dot => presenter.text(&graph::dot(&self)),
            _ => presenter.document(&self, |width| {
                graph::graph(&sources.in_graph(self.clone()), width)
            }),
        }
    }
}

impl Present for HistoryDocument {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        let sources = std::mem::take(&mut presenter.sources);
        match presenter.format() {
            Format::Jsonl => presenter.parts(HistoryDocument::SCHEMA, &self.moments()),
            _ => presenter.document(&self, |width| {
                status::history(&sources.in_history(self.clone()), Time::now(), width)
            }),
        }
    }
}

impl Present for InstancesDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.written(&self)
    }
}

impl Present for RunDocument {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        match presenter.has_told() {
            true => Ok(Exit::from_code(self.exit_code)),
            false => presenter.run(&self),
        }
    }
}

impl Present for TrashDocument {
    fn present(self, presenter: Presenter<'_>) -> Result<Exit, Failure> {
        presenter.document(&self, |width| trash::trash(&self, Time::now(), width))
    }
}
