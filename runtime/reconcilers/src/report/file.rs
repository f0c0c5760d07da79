//! The creation of a report's file: its query and its format (N11).

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_controller::Timestamp;
use watershed_core::{Error, Key};
use watershed_delivery::message;
use watershed_drivers::olap::{Existing, Export, ExportError, Exported, FileFormat, Layout, Query};
use watershed_outputs::failure;
use watershed_proto::{ReportExport, ReportSpec};
use watershed_resolvers::{Answer, Ask, Heading, Prepared, Resolvers, Until, Viewer, error::from_query};

use crate::excerpt::{self, POINTS_MAX};
use crate::surroundings::{For, data_or_legacy, instant};

/// The largest number of rows of a file.
pub const ROWS_MAX: u64 = 1_000_000;

/// The inputs for writing a report's file.
pub struct Making<'a> {
    /// The resolvers that answer the report's query.
    pub resolvers: Resolvers<'a>,
    /// The spec of the report to make.
    pub spec: &'a ReportSpec,
    /// The key of the report.
    pub own: Key,
    /// The time at which the file is made.
    pub now: Timestamp,
    /// The time up to which data is read, if it is not `now`.
    pub until: Option<Until>,
}

impl Making<'_> {
    /// Returns the format of the file to make.
    ///
    /// # Errors
    /// A form that no files are written in.
    pub fn format(&self) -> Result<FileFormat, Error> {
        let export = self.spec.export.as_ref();
        match export.map_or("", |export| export.format.as_str()) {
            "xlsx" => Ok(FileFormat::Xlsx),
            "parquet" => Ok(FileFormat::Parquet),
            "csv" | "" => Ok(FileFormat::Csv),
            other => Err(Error {
                hint: Some("`export.format` takes `csv`, `xlsx` or `parquet`".into()),
                ..Error::permanent(
                    "not-supported-yet",
                    format!("reports in the form `{other}` are not supported"),
                )
            }),
        }
    }

    /// Returns the query as a statement, without running it.
    ///
    /// # Errors
    /// A question that can't be asked.
    pub async fn prepare(&self) -> Result<Prepared, Error> {
        let spec = self.spec;
        let data = data_or_legacy(spec.data.as_ref(), &spec.query_name, spec.query_args.as_ref())?;
        let viewer = self.viewer().await?;
        let ask = Ask {
            data: &data,
            own: &self.own,
            variables: &self.spec.variables,
            viewer: &viewer,
            skips_policies: false,
            args: Default::default(),
            now: instant(self.now),
            execution_time: self.until,
            is_export: true,
        };
        let prepared = self.resolvers.prepare(&ask).await;
        let prepared = prepared.map_err(|error| error.to_error())?;
        match prepared.is_made_over() {
            true => Err(Error::permanent(
                "bad-metrics-query",
                "a file has neither totals nor a pivot",
            )),
            false => Ok(prepared),
        }
    }

    /// Returns the first rows, for the message that the file goes with; none if they can't be read now, which holds up no file.
    pub(super) async fn first_rows(&self) -> Option<Answer> {
        let (prepared, viewer) = (self.prepare().await.ok()?, self.viewer().await.ok()?);
        let within = Duration::from_secs(u64::from(self.spec.timeout_seconds));
        let limit = self.limit(&self.spec.export.clone().unwrap_or_default());
        let rows = self
            .resolvers
            .rows(&prepared, &viewer, limit.min(POINTS_MAX), within);
        rows.await.ok()
    }

    async fn viewer(&self) -> Result<Viewer, Error> {
        let said = self.spec.for_attributes.as_ref();
        let run_as = For {
            id: &self.spec.for_user_id,
            email: &self.spec.for_user_email,
            attributes: said.filter(|said| !said.fields.is_empty()),
        };
        run_as.viewer(self.resolvers.directory).await
    }

    /// Returns the export of the report into a file, which replaces an existing one.
    ///
    /// # Errors
    /// A question that can't be asked, and a form that no files are written in.
    pub async fn export(&self, file: &Path, format: FileFormat) -> Result<Export, Error> {
        let prepared = self.prepare().await?;
        let said = self.spec.export.clone().unwrap_or_default();
        let headings = prepared.headings().unwrap_or_default();
        Ok(Export {
            query: Query {
                limit: Some(self.limit(&said)),
                timeout: Some(Duration::from_secs(u64::from(self.spec.timeout_seconds))),
                ..prepared.query()
            },
            file: file.to_owned(),
            format,
            existing: Existing::Replace,
            layout: Layout {
                above: self.above(&said),
                columns: headings.iter().map(Heading::look).collect(),
                guards_formulas: !said.raw,
            },
        })
    }

    /// Returns the largest number of rows of the file.
    fn limit(&self, said: &ReportExport) -> u64 {
        match said.limit {
            0 => ROWS_MAX,
            limit => u64::from(limit).min(ROWS_MAX),
        }
    }

    fn above(&self, said: &ReportExport) -> Vec<String> {
        if !said.include_header {
            return Vec::new();
        }
        let title = match self.spec.display_name.as_str() {
            "" => self.own.name.as_str(),
            title => title,
        };
        let moment = self.until.map_or_else(|| instant(self.now), |until| until.at);
        let zone = excerpt::zone(self.spec.refresh_schedule.as_ref(), self.spec.data.as_ref());
        let moment = Timestamp(moment.as_millisecond());
        vec![title.to_owned(), message::in_words(moment, zone)]
    }

    /// Runs the report's query in the engine and exports the rows to a file.
    ///
    /// # Errors
    /// A question that can't be asked or answered, and a file that can't be written. Nothing is left of it then.
    pub async fn write(&self, export: &Export, cancel: &CancellationToken) -> Result<Exported, Error> {
        let written = self.resolvers.views.olap.export(export, cancel).await;
        if cancel.is_cancelled() && written.is_err() {
            return Err(failure::cancelled());
        }
        let said = written.map_err(|error| match &error {
            ExportError::Query(error) => from_query(error),
            ExportError::Io { .. } => Error::transient("export-failed", error.to_string()),
            _ => Error::permanent("export-failed", error.to_string()),
        });
        said.map_err(|error| self.resolvers.views.secrets.redact_error(error))
    }
}

/// Returns the file name extension for a format.
#[must_use]
pub fn extension(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Csv => "csv",
        FileFormat::Parquet => "parquet",
        FileFormat::Xlsx => "xlsx",
        FileFormat::Json => "json",
    }
}

/// Returns the media type for a format, as in HTTP.
pub(super) fn media_type(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Csv => "text/csv",
        FileFormat::Parquet => "application/vnd.apache.parquet",
        FileFormat::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        FileFormat::Json => "application/x-ndjson",
    }
}
