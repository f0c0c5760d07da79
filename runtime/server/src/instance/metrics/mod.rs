//! Queries of metrics views.

mod answer;
mod condition;
mod request;
mod viewer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use watershed_compilers::{Scope, render_text};
use watershed_drivers::duckdb::{Conditions, Engine};
use watershed_drivers::olap::{Column, Olap as _, Query as Statement, QueryError as EngineError, Value};
use watershed_metrics::plan::{self, Bounds, Extent, Plan, PlanError};
use watershed_metrics::{DuckDb, Policy, Query, View};
use watershed_proto::{Message as _, MetricsViewSpec, MetricsViewState, SqlSource};
use watershed_reconcilers::metrics_view::{KIND, view};
use watershed_reconcilers::secrets::Secrets;

use super::{Instance, query as queries};
use crate::documents::MetricsDocument;
use crate::report::{Entry, names};
use crate::socket::Refusal;

pub(super) use request::answer;
pub use viewer::Viewer;

/// Rows of an answer: what a person or a chart takes in at once, as in the format.
const MOST_ROWS: u64 = 10_000;
/// The longest that an answer may take, as in the format.
const LONGEST: Duration = Duration::from_secs(180);

/// The errors of a query of a metrics view.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MetricsError {
    /// No metrics view has the name.
    #[error(transparent)]
    Unknown(Refusal),
    /// The view was never found valid.
    #[error("metrics view \"{0}\" has not been found to be valid")]
    NotValid(String),
    /// The rules of the view can't be evaluated for the viewer.
    #[error("the policy of \"{view}\" can't be evaluated: {message}")]
    Policy {
        /// The view.
        view: String,
        /// The reason.
        message: String,
    },
    /// An expression of the view can't be written.
    #[error(transparent)]
    Render(#[from] view::RenderError),
    /// The query is refused.
    #[error(transparent)]
    Refused(#[from] PlanError),
    /// The engine did not answer.
    #[error(transparent)]
    Engine(Refusal),
    /// The answer has too many rows.
    #[error("the answer has more than {MOST_ROWS} rows: set a `limit`, or group by less")]
    TooManyRows,
    /// A pivot has too many columns.
    #[error("the pivot has {0} columns, more than {max}", max = watershed_metrics::query::Limits::PIVOT_COLUMNS)]
    TooManyColumns(usize),
}

/// A view with the spec that it was made of.
struct ValidView {
    view: View,
    spec: MetricsViewSpec,
    table: String,
    scope: Scope,
}

impl Instance {
    /// Answers a query of a metrics view for a viewer. `now` is the time at which the question is put.
    ///
    /// Ends of time dimensions are read beforehand, in a statement of their own, where ranges and zones need them.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a query that names what the view lacks or what the viewer may not see, a
    /// policy that can't be evaluated, and those of the engine.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics(
        &self,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, MetricsError> {
        let entries = self.entries();
        self.views(&entries).answer(query, viewer, now).await
    }

    pub(super) fn views<'a>(&'a self, entries: &'a [Entry]) -> Views<'a> {
        Views {
            engine: &self.engine,
            secrets: self.outputs.secrets(),
            environment: &self.project.environment,
            entries,
            conditions: Arc::clone(&self.conditions),
        }
    }
}

/// The metrics views of a project, in a running instance or at rest.
pub(super) struct Views<'a> {
    pub(super) engine: &'a Engine,
    pub(super) secrets: &'a Secrets,
    pub(super) environment: &'a str,
    pub(super) entries: &'a [Entry],
    /// The evaluator of conditions of policies.
    pub(super) conditions: Arc<Conditions>,
}

/// A query that is planned for a viewer.
struct Planned {
    found: ValidView,
    plan: Plan,
}

impl Planned {
    fn statement(&self) -> String {
        self.plan.statement(&DuckDb)
    }
}

impl Views<'_> {
    async fn answer(
        &self,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, MetricsError> {
        let planned = self.planned(query, viewer, now).await?;
        // The row of totals is not one of the answer's.
        let most = MOST_ROWS + u64::from(planned.plan.totals);
        let read = self.read_whole(planned.statement(), most).await;
        let (types, rows) = read.map_err(|error| viewer.unspoken(error))?;
        let rows = rows.ok_or(MetricsError::TooManyRows)?;
        answer::document(query, &planned.plan, &planned.found.spec, &types, rows)
    }

    /// Plans a query for a viewer; reads the ends of its time dimensions.
    async fn planned(&self, query: &Query, viewer: &Viewer, now: Timestamp) -> Result<Planned, MetricsError> {
        let mut found = self.metrics_view(&query.metrics_view)?;
        let policy = self.policy(&found, viewer).await?;
        if query.rows {
            let read = self.read_whole(format!("FROM {}", found.table), 0).await;
            let (columns, _) = read.map_err(|error| viewer.unspoken(error))?;
            found.view.columns = columns.into_iter().map(|column| column.name).collect();
        }
        let bounds = self.bounds(&found.view, &policy, query, now).await;
        let bounds = bounds.map_err(|error| viewer.unspoken(error))?;
        let plan = plan::plan(&found.view, &policy, query, &bounds)?;
        Ok(Planned { found, plan })
    }

    /// Evaluates the rules of a view, and of its parents, for a viewer.
    async fn policy(&self, found: &ValidView, viewer: &Viewer) -> Result<Policy, MetricsError> {
        let refused = |message: String| MetricsError::Policy {
            view: found.view.name.clone(),
            message,
        };
        let Some(rules) = viewer::Rules::rendered(&found.spec, viewer, &found.scope).map_err(refused)? else {
            return Ok(Policy::open());
        };
        let (conditions, texts) = (Arc::clone(&self.conditions), rules.conditions());
        let evaluated = tokio::task::spawn_blocking(move || conditions.evaluate(&texts)).await;
        let values = evaluated
            .map_err(|panic| refused(format!("the evaluation ended by a defect: {panic}")))?
            .map_err(|_| refused("one of its conditions is no condition on the viewer".to_owned()))?;
        Ok(rules.policy(&found.spec, &values))
    }

    fn metrics_view(&self, name: &str) -> Result<ValidView, MetricsError> {
        let entry = names::resolve(self.entries, &format!("{KIND}/{name}")).map_err(MetricsError::Unknown)?;
        let name = entry.row.name.as_str();
        let invalid = || MetricsError::NotValid(name.to_owned());
        let state = entry.row.state.as_ref();
        let state = state.and_then(|state| MetricsViewState::decode(state.as_ref()).ok());
        let state = state.ok_or_else(invalid)?;
        let spec = state.valid_spec.clone().ok_or_else(invalid)?;
        let scope = Scope {
            environment: self.environment.to_owned(),
            variables: self.secrets.open_given(&spec.variables),
            ..Scope::default()
        };
        let render = |source: &SqlSource| match source.templated {
            false => Ok(source.text.clone()),
            true => render_text(&source.text, &scope).map_err(|error| error.message),
        };
        let view = view::view(name, &state, &render)?.ok_or_else(invalid)?;
        Ok(ValidView {
            view,
            spec,
            table: state.table,
            scope,
        })
    }

    /// Reads the ends of the time dimensions that a query needs.
    async fn bounds(
        &self,
        view: &View,
        policy: &Policy,
        query: &Query,
        now: Timestamp,
    ) -> Result<Bounds, MetricsError> {
        let mut bounds = Bounds::at(now);
        let names = plan::times(view, query);
        let Some(ends) = plan::extents(view, policy, &names, now)? else {
            return Ok(bounds);
        };
        let (_, rows) = self.read_whole(ends.statement(&DuckDb), 1).await?;
        let row = rows.and_then(|mut rows| rows.pop()).unwrap_or_default();
        let mut times: BTreeMap<String, Extent> = BTreeMap::new();
        for (column, value) in ends.columns().iter().zip(&row) {
            let extent = times.entry(column.field.to_lowercase()).or_default();
            match column.name.as_str() {
                "earliest" => extent.earliest = instant(value),
                "latest" => extent.latest = instant(value),
                _ => extent.watermark = instant(value),
            }
        }
        bounds.times = times;
        Ok(bounds)
    }

    /// Runs a statement; without rows if there are more than `most`, which is no error if none are wanted.
    async fn read_whole(
        &self,
        sql: String,
        most: u64,
    ) -> Result<(Vec<Column>, Option<Vec<Vec<Value>>>), MetricsError> {
        let statement = Statement {
            sql,
            limit: Some(most),
            timeout: Some(LONGEST),
        };
        let cancel = CancellationToken::new();
        let _interrupt = cancel.clone().drop_guard();
        let refused = |error: EngineError| {
            let refusal = queries::refusal(&error);
            MetricsError::Engine(queries::redacted(refusal, self.secrets))
        };
        let mut rows = self.engine.query(statement, &cancel).await.map_err(refused)?;
        let columns = rows.columns().to_vec();
        let found = rows.collect().await.map_err(refused)?;
        Ok((columns, (!rows.truncated()).then_some(found)))
    }
}

/// Reads a time without a zone as universal time.
fn instant(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Text(text) => format!("{}Z", text.replace(' ', "T")).parse().ok(),
        _ => None,
    }
}
