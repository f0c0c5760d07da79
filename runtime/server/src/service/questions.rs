//! Questions about rows: the engine and the settings for metrics views, APIs, reports and alerts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use watershed_api::request::AnswerOptions;
use watershed_api::{Code, Problem, hint};
use watershed_core::{Key, Row};
use watershed_drivers::olap::{Conditions, Existing, Export, FileFormat, Layout, Olap, Query};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::secrets::Secrets;
use watershed_reconcilers::model::freshness;
use watershed_resolvers::{
    Cache, Heading, Prepared, Resolvers, Resources, Until, Viewer, Views, directory::Directory,
    metrics::LONGEST,
};

use super::opened::Opened;
use crate::instance::{Instance, Options, open, sandbox};
use crate::report::{Entry, names};
use crate::state_folder::StateFolder;

/// The engine, and everything else that questions about rows need.
pub(crate) struct Asking {
    pub(crate) opened: Opened,
    pub(crate) secrets: Secrets,
    olap: Arc<dyn Olap>,
    cache: Option<Arc<Cache>>,
    directory: Option<Arc<dyn Directory>>,
    conditions: Arc<dyn Conditions>,
    sandbox: Option<Sandbox>,
    environment: String,
    pub(crate) root: PathBuf,
}

impl Asking {
    /// Returns the engine of a project at rest, without kept answers and without an embedder's users.
    pub(crate) fn at_rest(options: &Options, state: &StateFolder, opened: Opened, secrets: Secrets) -> Self {
        Self {
            olap: Arc::clone(&opened.engine),
            opened,
            secrets,
            cache: None,
            directory: None,
            conditions: open::conditions(),
            sandbox: sandbox(options, state),
            environment: options.environment.clone(),
            root: options.root.clone(),
        }
    }

    /// Returns the engine of a running instance.
    pub(crate) fn of(instance: &Instance) -> Self {
        Self {
            opened: Opened {
                engine: Arc::clone(&instance.engine),
                is_own: false,
            },
            secrets: instance.outputs.secrets().clone(),
            olap: Arc::clone(instance.outputs.olap()),
            cache: Some(Arc::clone(&instance.cache)),
            directory: instance.directory.clone(),
            conditions: Arc::clone(&instance.conditions),
            sandbox: instance.outputs.sandbox().cloned(),
            environment: instance.project.environment.clone(),
            root: instance.options.root.clone(),
        }
    }

    pub(crate) fn views<'a>(&'a self, resources: &'a dyn Resources) -> Views<'a> {
        Views {
            olap: &self.olap,
            cache: self.cache.as_deref(),
            secrets: &self.secrets,
            environment: &self.environment,
            resources,
            conditions: Arc::clone(&self.conditions),
            stale: freshness::stale,
        }
    }

    pub(crate) fn resolvers<'a>(&'a self, resources: &'a dyn Resources) -> Resolvers<'a> {
        Resolvers {
            views: self.views(resources),
            root: &self.root,
            sandbox: self.sandbox.as_ref(),
            directory: self.directory.as_deref(),
        }
    }
}

/// The listed resources of a project.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a>(pub(crate) &'a [Entry]);

impl Entries<'_> {
    fn live(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.row.intents.is_deleted())
    }

    /// Finds the resource of a kind by its typed name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn of_kind(&self, kind: &str, typed: &str) -> Result<&Row, Problem> {
        let plain = typed.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
        let name = format!("{kind}/{}", plain.unwrap_or(typed));
        let found = names::resolve(self.0, &name)?;
        match found.row.key() == Key::new(kind, plain.unwrap_or(typed)) {
            true => Ok(&found.row),
            false => Err(Problem::new(
                Code::UnknownName,
                format!("there is no {kind} `{typed}`"),
            )),
        }
    }
}

impl Resources for Entries<'_> {
    fn find(&self, key: &Key) -> Option<Arc<Row>> {
        let found = self.live().find(|entry| entry.row.key() == *key);
        found.map(|entry| Arc::clone(&entry.row))
    }

    fn rows(&self) -> Vec<Arc<Row>> {
        let seen = self.live().filter(|entry| !entry.row.hidden);
        seen.map(|entry| Arc::clone(&entry.row)).collect()
    }
}

/// The time at which a question is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The time of the question.
    pub(crate) now: Timestamp,
    /// The upper bound of time in the query, even if there are later rows; none for a question of now.
    pub(crate) until: Option<Until>,
}

impl Moment {
    /// Reads the typed time of a question.
    ///
    /// # Errors
    /// A text that is no time.
    pub(crate) fn read(typed: Option<&str>) -> Result<Self, Problem> {
        let now = time(typed)?;
        Ok(Self {
            now,
            until: typed.is_some().then(|| Until::as_of(now)),
        })
    }
}

/// Returns the typed time, or now.
///
/// # Errors
/// A text that is no time.
pub(crate) fn time(typed: Option<&str>) -> Result<Timestamp, Problem> {
    let Some(typed) = typed else {
        return Ok(Timestamp::now());
    };
    let day = || format!("{typed}T00:00:00Z").parse().ok();
    typed.parse().ok().or_else(day).ok_or_else(|| {
        Problem::new(Code::BadArgument, format!("`{typed}` is no time"))
            .hint("write a time such as `2024-02-29T12:00:00Z`, or a day")
    })
}

/// Returns the viewer with these attributes; the owner without any.
pub(crate) fn viewer(attributes: Option<serde_json::Map<String, serde_json::Value>>) -> Viewer {
    attributes.map_or(Viewer::Owner, Viewer::user)
}

/// The form in which a statement is shown: with or without the values of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementForm {
    /// With names of variables in place of their values.
    Masked,
    /// As the engine receives the statement.
    Whole,
}

impl StatementForm {
    /// Returns the form that a viewer asks for and may see.
    ///
    /// # Errors
    /// Values that are wanted in somebody else's name.
    pub(crate) fn of(options: &AnswerOptions, viewer: &Viewer) -> Result<Self, Problem> {
        match (options.show_values, viewer) {
            (false, _) => Ok(Self::Masked),
            (true, Viewer::Owner) => Ok(Self::Whole),
            (true, Viewer::User(_)) => {
                let message = "values of variables are shown to the project's owner alone";
                Err(Problem::new(Code::NotAllowed, message).hint(format!(
                    "leave out {} or {}",
                    hint::option("as", ""),
                    hint::option("show-values", "")
                )))
            }
        }
    }

    /// Writes a statement in this form.
    pub(crate) fn write(self, sql: String, secrets: &Secrets) -> String {
        match self {
            Self::Masked => secrets.redact(&sql).into_owned(),
            Self::Whole => sql,
        }
    }
}

/// Returns the export of a question's rows to a file, without its statement; none if the rows are shown.
///
/// A file has all rows, or is not there: they pass through, and the time is bounded.
///
/// # Errors
/// When the file's name says no form.
pub(crate) fn file_of(
    options: &AnswerOptions,
    limit: Option<u64>,
    layout: Layout,
) -> Result<Option<Export>, Problem> {
    let Some(file) = &options.file else {
        return Ok(None);
    };
    Ok(Some(Export {
        query: Query {
            limit,
            timeout: Some(LONGEST),
            ..Query::default()
        },
        format: form_of(file)?,
        existing: existing(options.force),
        file: file.clone(),
        layout,
    }))
}

/// Returns the treatment of an existing file: replace it if `force`, otherwise keep it.
pub(crate) fn existing(force: bool) -> Existing {
    match force {
        true => Existing::Replace,
        false => Existing::Keep,
    }
}

/// Returns the format that a file's extension determines.
///
/// # Errors
/// When the name says none.
pub(crate) fn form_of(file: &Path) -> Result<FileFormat, Problem> {
    FileFormat::from_path(file).ok_or_else(|| {
        let message = format!("`{}` is no .csv, .xlsx or .parquet file", file.display());
        Problem::new(Code::BadArgument, message)
    })
}

/// Returns the layout of a question's columns in a file.
pub(crate) fn layout(prepared: &Prepared) -> Layout {
    let headings = prepared.headings().unwrap_or_default();
    Layout {
        columns: headings.iter().map(Heading::look).collect(),
        ..Layout::default()
    }
}
