//! Queries of metrics views.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use watershed_compilers::{Scope, render_text};
use watershed_drivers::olap::{Column, Olap as _, Query as Statement, QueryError as EngineError, Value};
use watershed_metrics::plan::{self, Bounds, Extent, Plan, PlanError, Role};
use watershed_metrics::{DuckDb, Policy, Query, View};
use watershed_proto::{Message as _, MetricsViewSpec, MetricsViewState, SqlSource};
use watershed_reconcilers::metrics_view::{KIND, view};

use super::{Instance, query as queries};
use crate::documents::{MetricsColumn, MetricsDocument, MetricsRange, MetricsRole};
use crate::report::names;
use crate::socket::Refusal;

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
}

impl Instance {
    /// Answers a query of a metrics view, as the project's owner sees it: no policy binds the owner. `now` is the time at
    /// which the question is put.
    ///
    /// Ends of time dimensions are read beforehand, in a statement of their own, where ranges and zones need them.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a query that names what the view lacks, and those of the engine.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics(&self, query: &Query, now: Timestamp) -> Result<MetricsDocument, MetricsError> {
        let ValidView {
            mut view,
            spec,
            table,
        } = self.metrics_view(&query.metrics_view)?;
        if query.rows {
            let (columns, _) = self.read_whole(format!("FROM {table}"), 0).await?;
            view.columns = columns.into_iter().map(|column| column.name).collect();
        }
        let policy = Policy::open();
        let bounds = self.bounds(&view, &policy, query, now).await?;
        let plan = plan::plan(&view, &policy, query, &bounds)?;
        // The row of totals is not one of the answer's.
        let most = MOST_ROWS + u64::from(plan.totals);
        let (types, rows) = self.read_whole(plan.statement(&DuckDb), most).await?;
        let rows = rows.ok_or(MetricsError::TooManyRows)?;
        document(query, &plan, &spec, &types, rows)
    }

    fn metrics_view(&self, name: &str) -> Result<ValidView, MetricsError> {
        let entries = self.entries();
        let entry = names::resolve(&entries, &format!("{KIND}/{name}")).map_err(MetricsError::Unknown)?;
        let name = entry.row.name.as_str();
        let invalid = || MetricsError::NotValid(name.to_owned());
        let state = entry.row.state.as_ref();
        let state = state.and_then(|state| MetricsViewState::decode(state.as_ref()).ok());
        let state = state.ok_or_else(invalid)?;
        let spec = state.valid_spec.clone().ok_or_else(invalid)?;
        let scope = Scope {
            environment: self.project.environment.clone(),
            variables: self.outputs.secrets().open_given(&spec.variables),
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
            MetricsError::Engine(queries::redacted(refusal, self.outputs.secrets()))
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

fn document(
    query: &Query,
    plan: &Plan,
    spec: &MetricsViewSpec,
    types: &[Column],
    mut rows: Vec<Vec<Value>>,
) -> Result<MetricsDocument, MetricsError> {
    let mut totals = None;
    if plan.totals {
        totals = rows.pop();
        for row in rows.iter_mut().chain(&mut totals) {
            row.pop();
        }
    }
    let place = |value: &Value| match value {
        Value::Integer(place) => u64::try_from(*place).unwrap_or_default(),
        _ => 0,
    };
    let pivoted = plan
        .pivot(&rows, &Value::Null, ToString::to_string, place)
        .map_err(MetricsError::TooManyColumns)?;
    let sources = pivoted.sources.iter().map(|place| types.get(*place));
    let column = |(column, found): (plan::Column, Option<&Column>)| {
        let measure = spec.measures.iter().find(|measure| measure.name == column.field);
        let formats = measure.filter(|_| column.role == Role::Measure);
        MetricsColumn {
            data_type: found.map(|found| found.data_type.clone()).unwrap_or_default(),
            role: role(column.role),
            grain: column.grain.map(|grain| format!("{grain:?}").to_lowercase()),
            format_preset: formats
                .map(|measure| measure.format_preset.clone())
                .unwrap_or_default(),
            format_d3: formats
                .map(|measure| measure.format_d3.clone())
                .unwrap_or_default(),
            name: column.name,
            display_name: column.display_name,
            field: column.field,
        }
    };
    let json = |row: Vec<Value>| row.iter().map(Value::to_json).collect();
    Ok(MetricsDocument {
        schema: MetricsDocument::SCHEMA.to_owned(),
        metrics_view: query.metrics_view.clone(),
        columns: pivoted.columns.into_iter().zip(sources).map(column).collect(),
        rows: pivoted.rows.into_iter().map(json).collect(),
        totals: totals.map(json),
        time_range: plan.time_range.map(range),
        comparison_time_range: plan.comparison_time_range.map(range),
    })
}

fn role(role: Role) -> MetricsRole {
    match role {
        Role::Dimension => MetricsRole::Dimension,
        Role::Measure => MetricsRole::Measure,
        Role::Computed => MetricsRole::Computed,
        Role::Column => MetricsRole::Column,
    }
}

fn range(range: watershed_metrics::Range) -> MetricsRange {
    MetricsRange {
        start: range.start.to_string(),
        end: range.end.to_string(),
    }
}
