//! Resolvers: ways to fetch rows, shared by dashboards, alerts, reports and APIs (Q23).
//!
//! | module | holds |
//! |---|---|
//! | [`metrics`] | queries of metrics views: planned for a viewer, and answered |
//! | [`metrics_sql`] | the same in SQL |
//! | [`view_table`] | metrics views as tables in statements of SQL clients |
//! | [`api`] | calls of APIs |
//! | [`board`] | canvases as their viewers may see them |
//! | [`legacy`] | questions of the old interface by name |
//! | `front` | explores and canvases through which a view is asked |
//! | [`files`], [`status`] | files that match a pattern, resources by their status |
//! | [`view`] | a metrics view in the form that queries are planned with |
//! | [`directory`] | users as an embedder knows them |
//! | [`viewer`] | who asks, and rules of security evaluated for them |
//! | [`condition`] | conditions in SQL as filters |
//! | [`cache`] | answers that are kept while what they were made of is the same |
//! | [`answer`] | columns with their meaning, and rows |
//! | [`resources`] | the project's resources, of a running controller or at rest |
//!
//! Each way ends in one statement, which is run, or exported into a file. What a caller or a user gives is a value in it
//! and never SQL. Who asks needs no reconciler: the server comes here directly, and alerts and reports come from above.

#![allow(
    clippy::result_large_err,
    reason = "an error of a run is made once and stored on its resource"
)]

pub mod answer;
pub mod api;
pub mod board;
pub mod cache;
pub mod condition;
pub mod directory;
pub mod metrics;
pub mod metrics_sql;
pub mod resources;
pub mod view;
pub mod view_table;
pub mod viewer;

pub mod error;
pub mod files;
mod front;
pub mod legacy;
mod names;
pub mod status;
mod until;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use watershed_compilers::{RenderError, Scope, render_rule, render_text};
use watershed_core::{Key, Timestamp as At};
use watershed_drivers::olap::Query as Statement;
use watershed_metrics::Query;
use watershed_metrics::jiff::Timestamp;
use watershed_proto::value::Kind;
use watershed_proto::{DataResolver, MapValue, Value};

pub use answer::{Answer, Heading};
pub use cache::Cache;
pub use error::ResolveError;
pub use metrics::Views;
pub use names::check_names;
pub use resources::Resources;
pub use until::Until;
pub use viewer::Viewer;

use crate::directory::Directory;
use cache::{Keeping, Reading};
use metrics::{Planned, Question};

/// The future type of resolvers' methods.
type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Context of resolvers: a project's engine and resources.
#[derive(Clone)]
pub struct Resolvers<'a> {
    /// Metrics views of the project, with the engine.
    pub views: Views<'a>,
    /// The project's folder.
    pub root: &'a Path,
    /// Folders to which the project is confined; none if it is not.
    pub sandbox: Option<&'a watershed_drivers::sandbox::Sandbox>,
    /// The embedder's directory of users; none without one.
    pub directory: Option<&'a dyn Directory>,
}

/// A request for rows, with all its inputs.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// Data block that says how rows are fetched.
    pub data: &'a DataResolver,
    /// The resource that asks.
    pub own: &'a Key,
    /// Variables that the templates read, with values as stored in the catalog.
    pub variables: &'a BTreeMap<String, String>,
    /// Person or owner on whose behalf the query runs.
    pub viewer: &'a Viewer,
    /// True if policies of metrics views do not apply.
    pub skips_policies: bool,
    /// Arguments of the call.
    pub args: BTreeMap<String, Value>,
    /// Time of the request.
    pub now: Timestamp,
    /// Time that replaces the latest time and the watermark of metrics views; none to use theirs.
    pub execution_time: Option<Until>,
    /// True if the rows are exported to a file.
    pub is_export: bool,
}

impl Views<'_> {
    /// Reads the JSON form of a query from SQL over one view (Q24).
    ///
    /// # Errors
    /// A text that is not one `SELECT` of fields of one view, and a part that queries don't have.
    pub fn json_of_sql(&self, sql: &str) -> Result<serde_json::Value, ResolveError> {
        metrics_sql::read_json(sql, |view, name| self.is_measure(view, name))
    }
}

/// A request compiled to one statement.
pub enum Prepared {
    /// A statement whose rows are the answer.
    Plain(String),
    /// A planned metrics query, whose answer is computed from the rows of its statement.
    Planned(Box<Planned>),
}

impl Prepared {
    /// Returns the statement as SQL.
    pub fn statement(&self) -> String {
        match self {
            Self::Plain(sql) => sql.clone(),
            Self::Planned(planned) => planned.statement(),
        }
    }

    /// Returns the session values of the statement, by name.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        match self {
            Self::Plain(_) => BTreeMap::new(),
            Self::Planned(planned) => planned.attributes().clone(),
        }
    }

    /// Returns the query of all rows of the statement, without a time limit.
    pub fn query(&self) -> Statement {
        Statement {
            attributes: self.attributes(),
            ..Statement::new(self.statement())
        }
    }

    /// Returns the headings of the columns; none before the rows are read.
    pub fn headings(&self) -> Option<Vec<Heading>> {
        match self {
            Self::Plain(_) => None,
            Self::Planned(planned) => Some(planned.headings()),
        }
    }

    /// Returns true if the answer's rows differ from the statement's: totals are separated, or values pivoted into
    /// columns.
    pub fn is_made_over(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Planned(planned) => planned.is_made_over(),
        }
    }
}

impl Resolvers<'_> {
    /// Answers a request with at most `limit` rows. Dropping the future interrupts the engine.
    ///
    /// # Errors
    /// A question that can't be understood, that the viewer may not ask, or that the engine can't answer.
    pub async fn answer(&self, ask: &Ask<'_>, limit: u64, within: Duration) -> Result<Answer, ResolveError> {
        let prepared = self.prepare(ask).await?;
        self.rows(&prepared, ask.viewer, limit, within).await
    }

    /// Answers a prepared request with at most `limit` rows.
    ///
    /// # Errors
    /// Those of the engine, and too many rows where all are needed for the first.
    pub async fn rows(
        &self,
        prepared: &Prepared,
        viewer: &Viewer,
        limit: u64,
        within: Duration,
    ) -> Result<Answer, ResolveError> {
        let totals = matches!(prepared, Prepared::Planned(planned) if planned.plan.totals);
        let most = match prepared.is_made_over() {
            // Rows of a pivot become fewer, and the row of totals is the last.
            true => metrics::MOST_ROWS + u64::from(totals),
            false => limit,
        };
        let keeping = match prepared {
            Prepared::Plain(_) => Keeping::Builds,
            Prepared::Planned(planned) => planned.keeping(),
        };
        let reading = Reading {
            sql: prepared.statement(),
            most,
            within,
            attributes: prepared.attributes(),
        };
        let read = self.views.read(reading, keeping).await;
        let (read, cached) = read.map_err(|error| viewer.unspoken(error))?;
        if prepared.is_made_over() && read.truncated {
            return Err(metrics::MetricsError::TooManyRows.into());
        }
        let mut answer = match prepared {
            Prepared::Plain(_) => Answer::plain(&read.columns, read.rows.clone(), read.truncated),
            Prepared::Planned(planned) => planned.answer(&read.columns, read.rows.clone())?,
        };
        answer.truncated |= read.truncated;
        answer.cached = cached;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if answer.rows.len() > limit {
            answer.rows.truncate(limit);
            answer.truncated = true;
        }
        Ok(answer)
    }

    /// Compiles a request to one statement. Queries the metrics views' time bounds if a range needs them.
    ///
    /// # Errors
    /// A question that can't be understood, or that the viewer may not ask.
    pub async fn prepare(&self, ask: &Ask<'_>) -> Result<Prepared, ResolveError> {
        self.prepare_at(ask, &[]).await
    }

    /// Compiles a request that is made through the APIs of `path`.
    async fn prepare_at(&self, ask: &Ask<'_>, path: &[String]) -> Result<Prepared, ResolveError> {
        if ask.data.resolver == api::KIND {
            return self.prepare_call(ask, path).await;
        }
        let nothing = MapValue::default();
        let properties = ask.data.properties.as_ref().unwrap_or(&nothing);
        let scope = self.scope(ask)?;
        match ask.data.resolver.as_str() {
            "sql" => {
                let sql = properties.str("sql").unwrap_or_default();
                Ok(Prepared::Plain(render_rule(sql, &scope)?))
            }
            "metrics" => {
                let query = query_json(properties, &scope)?;
                let query = Query::from_json(&query).map_err(metrics::refused)?;
                self.planned(ask, &query).await
            }
            "metrics_sql" => {
                let sql = render_rule(properties.str("sql").unwrap_or_default(), &scope)?;
                let query = metrics_sql::read(&sql, |view, name| self.views.is_measure(view, name))?;
                self.planned(ask, &query).await
            }
            status::RESOLVER => {
                let only_errors = status::only_errors(ask.data);
                let sql = status::statement(&self.views, ask.own, only_errors, At(ask.now.as_millisecond()));
                Ok(Prepared::Plain(sql))
            }
            "glob" => Ok(Prepared::Plain(files::statement(self, properties, &scope)?)),
            other => Err(ResolveError::Unsupported(other.to_owned())),
        }
    }

    async fn planned(&self, ask: &Ask<'_>, query: &Query) -> Result<Prepared, ResolveError> {
        let viewer = match ask.skips_policies {
            true => &Viewer::Owner,
            false => ask.viewer,
        };
        let question = Question {
            query,
            viewer,
            through: None,
            now: ask.now,
            execution_time: ask.execution_time,
        };
        let planned = self.views.planned(question).await?;
        Ok(Prepared::Planned(Box::new(planned)))
    }

    /// Returns variables with their values unsealed. Values of the files apply if no controller has learned any.
    fn variables(&self, stored: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ResolveError> {
        let secrets = self.views.secrets;
        secrets.open(stored).or_else(|unknown| {
            let given = secrets.open_given(stored);
            match stored.keys().all(|name| given.contains_key(name)) {
                true => Ok(given),
                false => Err(unknown.into()),
            }
        })
    }

    /// Returns the variables, user and arguments that templates of the request can read.
    fn scope(&self, ask: &Ask<'_>) -> Result<Scope, ResolveError> {
        Ok(Scope {
            environment: self.views.environment.to_owned(),
            variables: self.variables(ask.variables)?,
            name: ask.own.name.to_string(),
            user: ask.viewer.attributes(),
            args: ask.args.clone(),
            export: ask.is_export,
            ..Scope::default()
        })
    }
}

/// Returns a metrics query as JSON, with the templates in its texts executed.
fn query_json(properties: &MapValue, scope: &Scope) -> Result<serde_json::Value, RenderError> {
    let mut fields = serde_json::Map::new();
    for (name, value) in &properties.fields {
        let mut value = rendered(value, scope)?;
        if matches!(name.as_str(), "limit" | "offset") && value.is_null() {
            continue;
        }
        // A count that a template makes is a text.
        let count = value.as_str().and_then(|text| text.trim().parse::<u64>().ok());
        if let Some(count) = count.filter(|_| matches!(name.as_str(), "limit" | "offset")) {
            value = count.into();
        }
        fields.insert(name.clone(), value);
    }
    Ok(fields.into())
}

/// Executes the templates in a value's texts; results stay texts whatever they contain.
fn rendered(value: &Value, scope: &Scope) -> Result<serde_json::Value, RenderError> {
    match &value.kind {
        Some(Kind::String(text)) => {
            sole_value(text, scope).map_or_else(|| render_text(text, scope).map(serde_json::Value::from), Ok)
        }
        Some(Kind::List(list)) => list.values.iter().map(|item| rendered(item, scope)).collect(),
        Some(Kind::Map(map)) => {
            let entries = map.fields.iter();
            let entry = |(key, value): (&String, &Value)| Ok((key.clone(), rendered(value, scope)?));
            entries
                .map(entry)
                .collect::<Result<serde_json::Map<_, _>, _>>()
                .map(Into::into)
        }
        _ => Ok(serde_json::Value::from(value)),
    }
}

/// Returns the value of a template that consists of a single argument or attribute, with its type kept; null if it is
/// missing. None for other texts.
fn sole_value(text: &str, scope: &Scope) -> Option<serde_json::Value> {
    let path = text
        .trim()
        .strip_prefix("{{")?
        .strip_suffix("}}")?
        .trim()
        .strip_prefix('.')?;
    let (of, name) = path.split_once('.')?;
    if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return None;
    }
    let values = match of {
        "args" => &scope.args,
        "user" => &scope.user,
        _ => return None,
    };
    Some(
        values
            .get(name)
            .map_or(serde_json::Value::Null, serde_json::Value::from),
    )
}
