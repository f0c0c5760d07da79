//! Answers written into files, for a viewer.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use watershed_core::Key;
use watershed_drivers::olap::{self, Existing, Export, Exported, FileFormat, Layout, Olap as _};
use watershed_metrics::Query;
use watershed_reconcilers::resolvers::metrics::{MetricsError, Question};
use watershed_reconcilers::resolvers::{Ask, Prepared, ResolveError, Viewer, api};

use super::{Instance, questions};

/// The longest that a file may take.
const LONGEST: Duration = Duration::from_secs(300);

/// The question whose answer is written.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A query of a metrics view, without totals and pivots.
    Metrics(&'a Query),
    /// A call of an API.
    Call {
        /// The API.
        api: &'a str,
        /// Its arguments.
        args: &'a serde_json::Map<String, serde_json::Value>,
    },
}

/// The file that an answer is written into.
#[derive(Debug, Clone, Default)]
pub struct AnswerFile {
    /// The path. Its ending says the form: `.csv`, `.xlsx` or `.parquet`.
    pub file: PathBuf,
    /// A file that is there is replaced, when the new one is whole.
    pub replace: bool,
    /// Rows at most. Without it the file has all, or is not there: a sheet ends at 1,048,576 lines.
    pub limit: Option<u64>,
    /// In CSV text stays as it is that a spreadsheet would run as a formula; without this it gets an apostrophe.
    pub raw: bool,
}

/// The reasons for which no file is written. One that was there is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The question has no answer.
    #[error(transparent)]
    Question(#[from] ResolveError),
    /// Totals stand among the rows, or values are columns.
    #[error("a file has neither totals nor a pivot")]
    MadeOver,
    /// The path has another ending.
    #[error("`{}` is no .csv, .xlsx or .parquet file", .0.display())]
    NoForm(PathBuf),
    /// The file can't be written.
    #[error(transparent)]
    File(olap::ExportError),
}

impl Instance {
    /// Writes the answer to a question into a file: whole, or not at all. `now` is the time at which it is put.
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
    ) -> Result<Exported, ExportError> {
        let Some(format) = FileFormat::from_path(&to.file) else {
            return Err(ExportError::NoForm(to.file.clone()));
        };
        let prepared = self.prepared(source, viewer, now).await?;
        if prepared.is_made_over() {
            return Err(ExportError::MadeOver);
        }
        let export = Export {
            sql: prepared.statement(),
            limit: to.limit,
            timeout: Some(LONGEST),
            attributes: prepared.attributes(),
            file: to.file.clone(),
            format,
            existing: match to.replace {
                true => Existing::Replace,
                false => Existing::Keep,
            },
            layout: Layout {
                guards_formulas: !to.raw,
                ..questions::layout(&prepared)
            },
        };
        let cancel = CancellationToken::new();
        let _interrupts = cancel.clone().drop_guard();
        let written = self.engine.export(&export, &cancel).await;
        written.map_err(|error| match error {
            olap::ExportError::Query(error) => {
                ResolveError::from(viewer.unspoken(MetricsError::Engine(error))).into()
            }
            error => ExportError::File(error),
        })
    }

    async fn prepared(
        &self,
        source: Source<'_>,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<Prepared, ResolveError> {
        let handle = self.controller.handle();
        let resolvers = self.resolvers(&handle);
        match source {
            Source::Metrics(query) => {
                let question = Question {
                    query,
                    viewer,
                    through: None,
                    now,
                    execution_time: None,
                };
                let planned = resolvers.views.planned(question).await?;
                Ok(Prepared::Planned(Box::new(planned)))
            }
            Source::Call { api, args } => {
                let (data, own) = (api::call(api), Key::new(api::KIND, api));
                let ask = Ask {
                    data: &data,
                    own: &own,
                    variables: &Default::default(),
                    viewer,
                    skips_policies: false,
                    args: questions::values(args.clone()),
                    now,
                    execution_time: None,
                    is_export: true,
                };
                resolvers.prepare(&ask).await
            }
        }
    }
}
