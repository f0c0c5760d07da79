//! Queries of metrics views: planning for a viewer, and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use watershed_compilers::{Kind, Scope, render_text};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Column, Conditions, Olap, Value};
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{self, Bounds, Extent, Plan, PlanError};
use watershed_metrics::{Measure, MeasureKind, Policy, Query, View};
use watershed_proto::{Message as _, MetricsViewSpec, MetricsViewState, SqlSource};

use super::answer::{self, Answer, Heading};
use super::cache::{self, Cache, Keeping, Read, Reading};
pub use super::error::{MOST_ROWS, MetricsError};
use super::front::Front;
use super::resources::{Resources, Staleness};
use super::until::Until;
use super::viewer::{Rules, Viewer};
use watershed_core::Key;
use watershed_outputs::secrets::Secrets;

use crate::view;

/// Time limit of an answer.
pub const LONGEST: Duration = Duration::from_secs(180);

/// A metrics view with the spec from which it was made.
struct ValidView {
    view: View,
    spec: MetricsViewSpec,
    table: String,
    scope: Scope,
    /// Session values of each statement, by name.
    attributes: BTreeMap<String, String>,
}

/// The metrics views of a project, running or at rest.
#[derive(Clone)]
pub struct Views<'a> {
    /// The engine that runs the queries.
    pub olap: &'a Arc<dyn Olap>,
    /// Answer cache; none where queries do not repeat.
    pub cache: Option<&'a Cache>,
    /// The project's secrets, by which variables are unsealed.
    pub secrets: &'a Secrets,
    /// Environment's name, which templates can read.
    pub environment: &'a str,
    /// Resources of the project.
    pub resources: &'a dyn Resources,
    /// Evaluator of conditions in security rules.
    pub conditions: Arc<dyn Conditions>,
    /// Test of a resource's rows for their age.
    pub stale: Staleness,
}

/// A query of a metrics view, with the viewer and time.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The metrics query.
    pub query: &'a Query,
    /// Person or owner on whose behalf the query runs.
    pub viewer: &'a Viewer,
    /// Explore or canvas through which the view is queried, whose rules apply too; none for a direct query.
    pub through: Option<&'a Key>,
    /// Time of the request.
    pub now: Timestamp,
    /// Time that replaces the latest time and the watermark of the view's data (Q7); none to use theirs.
    pub execution_time: Option<Until>,
}

/// The fields of a metrics view that a viewer may see.
pub struct Offered {
    /// The view's spec that is in force. It names hidden fields too.
    pub spec: MetricsViewSpec,
    /// Names of the visible fields, in lower case.
    names: BTreeSet<String>,
}

impl Offered {
    /// Returns true if the viewer may see the field of a name.
    pub fn shows(&self, name: &str) -> bool {
        self.names.contains(&name.to_lowercase())
    }
}

/// A metrics view, with what its viewer may see of it.
pub(super) struct Seen {
    pub(super) view: View,
    pub(super) policy: Policy,
    pub(super) offered: Offered,
}

/// A metrics query planned for a viewer.
pub struct Planned {
    /// The plan, with statement and columns.
    pub plan: Plan,
    query: Query,
    spec: MetricsViewSpec,
    attributes: BTreeMap<String, String>,
}

impl Planned {
    /// Returns the statement as SQL.
    pub fn statement(&self) -> String {
        self.plan.statement(&ENGINE)
    }

    /// Creates the answer from the engine's rows: separates the row of totals, and pivots values into columns.
    ///
    /// # Errors
    /// A pivot with too many columns.
    pub fn answer(&self, types: &[Column], rows: Vec<Vec<Value>>) -> Result<Answer, MetricsError> {
        Answer::of_plan(&self.query, &self.plan, &self.spec, types, rows)
    }

    /// Returns true if the answer's rows differ from the statement's: totals are separated, or values pivoted into
    /// columns.
    pub fn is_made_over(&self) -> bool {
        self.plan.totals || !self.query.pivot_on.is_empty()
    }

    /// Returns the session values of the statement, by name (Q17).
    pub fn attributes(&self) -> &BTreeMap<String, String> {
        &self.attributes
    }

    /// Returns the rule for caching the answer.
    pub(super) fn keeping(&self) -> Keeping<'_> {
        keeping(&self.spec)
    }

    /// Returns the headings of the statement's columns.
    pub fn headings(&self) -> Vec<Heading> {
        answer::headings(&self.query, self.plan.columns(), &self.spec)
    }
}

impl Views<'_> {
    /// Answers a metrics query. Dropping the future interrupts the engine.
    ///
    /// Ends of time dimensions are read beforehand, in a statement of their own, where ranges and zones need them.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a query that names what the view lacks or what the viewer may not see, a
    /// policy that can't be evaluated, too many rows, and those of the engine.
    pub async fn answer(&self, question: Question<'_>) -> Result<Answer, MetricsError> {
        let planned = self.planned(question).await?;
        // The row of totals is not one of the answer's.
        let most = MOST_ROWS + u64::from(planned.plan.totals);
        let reading = reading(planned.statement(), most, planned.attributes());
        let read = self.read(reading, planned.keeping()).await;
        let (read, cached) = read.map_err(|error| question.viewer.unspoken(error))?;
        if read.truncated {
            return Err(MetricsError::TooManyRows);
        }
        let mut answer = planned.answer(&read.columns, read.rows.clone())?;
        answer.cached = cached;
        Ok(answer)
    }

    /// Returns the fields of a view that a viewer may see, through an explore or canvas if the question names one.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a policy that gives no access, and one that can't be evaluated.
    pub async fn offered(&self, question: Question<'_>) -> Result<Offered, MetricsError> {
        Ok(self.seen(question).await?.offered)
    }

    /// Returns a view with what its viewer may see of it, for the planning of several queries.
    ///
    /// # Errors
    /// As [`offered`](Self::offered).
    pub(super) async fn seen(&self, question: Question<'_>) -> Result<Seen, MetricsError> {
        let found = self.metrics_view(&question.query.metrics_view)?;
        let policy = self.policy(&found, question).await?;
        let view = plan::visible(&found.view, &policy)?;
        let dimensions = view
            .dimensions
            .iter()
            .filter(|one| !one.hidden)
            .map(|one| &one.name);
        let measures = view
            .measures
            .iter()
            .filter(|one| !one.hidden)
            .map(|one| &one.name);
        let offered = Offered {
            names: dimensions
                .chain(measures)
                .map(|name| name.to_lowercase())
                .collect(),
            spec: found.spec,
        };
        Ok(Seen {
            view: found.view,
            policy,
            offered,
        })
    }

    /// Plans a metrics query for a viewer, after reading the bounds of its time dimensions.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn planned(&self, question: Question<'_>) -> Result<Planned, MetricsError> {
        let Question { query, viewer, .. } = question;
        let mut found = self.metrics_view(&query.metrics_view)?;
        found.attributes = attributes(&found, viewer);
        let policy = self.policy(&found, question).await?;
        if query.rows {
            let sql = format!("FROM {}", found.table);
            let reading = reading(sql, 0, &found.attributes);
            let read = self.read(reading, keeping(&found.spec)).await;
            let (read, _) = read.map_err(|error| viewer.unspoken(error))?;
            found.view.columns = read.columns.iter().map(|column| column.name.clone()).collect();
        }
        let bounds = self.bounds(&found, &policy, question).await;
        let bounds = bounds.map_err(|error| viewer.unspoken(error))?;
        let plan = plan::plan(&found.view, &policy, query, &bounds)?;
        Ok(Planned {
            plan,
            query: query.clone(),
            spec: found.spec,
            attributes: found.attributes,
        })
    }

    /// Evaluates the security rules of a view, its parents and its explore or canvas for a viewer (Q15).
    async fn policy(&self, found: &ValidView, question: Question<'_>) -> Result<Policy, MetricsError> {
        let refused = |view: String| move |message: String| MetricsError::Policy { view, message };
        let name = found.view.name.as_str();
        let rules = view::layers(&found.spec);
        let evaluated = Rules::evaluated(&rules, question.viewer, &found.scope, &self.conditions).await;
        let mut layers = evaluated.map_err(refused(name.to_owned()))?;
        if let Some(key) = question.through {
            let front = Front::find(key, name, self.resources)?;
            let scope = Scope {
                environment: self.environment.to_owned(),
                variables: self.secrets.open_given(&front.variables),
                ..Scope::default()
            };
            let rules = [front.rules.as_slice()];
            let evaluated = Rules::evaluated(&rules, question.viewer, &scope, &self.conditions).await;
            layers.extend(evaluated.map_err(refused(key.to_string()))?);
        }
        Ok(Policy::of(&layers))
    }

    fn metrics_view(&self, name: &str) -> Result<ValidView, MetricsError> {
        let found = self.resources.find(&Key::new(Kind::MetricsView.as_str(), name));
        let row = found.ok_or_else(|| MetricsError::Unknown(name.to_owned()))?;
        let name = row.name.as_str();
        let invalid = || MetricsError::NotValid(name.to_owned());
        let state = row.state.as_ref();
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
            attributes: BTreeMap::new(),
        })
    }

    /// Reads the bounds of the time dimensions that a query needs.
    async fn bounds(
        &self,
        found: &ValidView,
        policy: &Policy,
        question: Question<'_>,
    ) -> Result<Bounds, MetricsError> {
        let now = question.execution_time.map_or(question.now, |until| until.at);
        let mut bounds = Bounds::at(now);
        let names = plan::times(&found.view, question.query);
        let mut times = self.extents(found, policy, &names, now).await?;
        if let Some(until) = question.execution_time {
            for extent in times.values_mut() {
                extent.latest = until.bounded(extent.latest);
                extent.watermark = until.bounded(extent.watermark);
            }
        }
        bounds.times = times;
        Ok(bounds)
    }

    async fn extents(
        &self,
        found: &ValidView,
        policy: &Policy,
        names: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<String, Extent>, MetricsError> {
        let mut times: BTreeMap<String, Extent> = BTreeMap::new();
        let Some(ends) = plan::extents(&found.view, policy, names, now)? else {
            return Ok(times);
        };
        let sql = ends.statement(&ENGINE);
        let reading = reading(sql, 1, &found.attributes);
        let (read, _) = self.read(reading, keeping(&found.spec)).await?;
        let row = read.rows.first().into_iter().flatten();
        for (column, value) in ends.columns().iter().zip(row) {
            let extent = times.entry(column.field.to_lowercase()).or_default();
            match column.name.as_str() {
                "earliest" => extent.earliest = value.instant(),
                "latest" => extent.latest = value.instant(),
                _ => extent.watermark = value.instant(),
            }
        }
        Ok(times)
    }

    /// Returns the rows of a statement, and true if they were cached.
    pub(super) async fn read(
        &self,
        reading: Reading,
        keeping: Keeping<'_>,
    ) -> Result<(Arc<Read>, bool), MetricsError> {
        let read = match self.cache {
            Some(cache) => cache.read(reading, keeping, self.resources).await,
            None => cache::run(Arc::clone(self.olap), reading)
                .await
                .map(|read| (read, false)),
        };
        read.map_err(MetricsError::Engine)
    }

    /// Returns the time up to which the data of a view is complete; none without a time dimension, or data.
    ///
    /// # Errors
    /// A view that is unknown or not valid, and those of the engine.
    pub async fn watermark(&self, view: &str, now: Timestamp) -> Result<Option<Timestamp>, MetricsError> {
        let found = self.metrics_view(view)?;
        let time = found.view.time_dimension.clone();
        if time.is_empty() {
            return Ok(None);
        }
        let times = self
            .extents(&found, &Policy::open(), std::slice::from_ref(&time), now)
            .await?;
        let extent = times.get(&time.to_lowercase());
        Ok(extent.and_then(|extent| extent.watermark.or(extent.latest)))
    }

    /// Returns the time dimension of a view with its ends over the rows that the viewer may see (Q17); none without a time
    /// dimension.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn ends(&self, question: Question<'_>) -> Result<Option<(String, Extent)>, MetricsError> {
        let viewer = question.viewer;
        let mut found = self.metrics_view(&question.query.metrics_view)?;
        found.attributes = attributes(&found, viewer);
        let policy = self.policy(&found, question).await?;
        let time = found.view.time_dimension.clone();
        let names: Vec<String> = Some(time.clone())
            .into_iter()
            .filter(|time| !time.is_empty())
            .collect();
        let times = self.extents(&found, &policy, &names, question.now).await;
        let times = times.map_err(|error| viewer.unspoken(error))?;
        let extent = times.get(&time.to_lowercase()).copied().unwrap_or_default();
        Ok(names.into_iter().next().map(|time| (time, extent)))
    }

    /// Returns the first day of the week and the first month of the year in a view's calendar; 0 if not set.
    pub fn first_of_calendar(&self, view: &str) -> (u32, u32) {
        let found = self.metrics_view(view);
        found.map_or((0, 0), |found| {
            (found.view.first_day_of_week, found.view.first_month_of_year)
        })
    }

    /// Returns true if a field of a view is one of its measures.
    pub(super) fn is_measure(&self, view: &str, name: &str) -> bool {
        self.measure(view, name).is_some()
    }

    /// Returns true if a field of a view is a measure with a built-in comparison of two time ranges.
    pub fn compares(&self, view: &str, name: &str) -> bool {
        let measure = self.measure(view, name);
        measure.is_some_and(|measure| measure.kind == MeasureKind::TimeComparison)
    }

    fn measure(&self, view: &str, name: &str) -> Option<Measure> {
        self.metrics_view(view).ok()?.view.measure(name).cloned()
    }
}

/// Creates the request to run a statement.
fn reading(sql: String, most: u64, attributes: &BTreeMap<String, String>) -> Reading {
    Reading {
        sql,
        most,
        within: LONGEST,
        attributes: attributes.clone(),
    }
}

/// Returns the session values of a view's queries for a viewer. Omits values that need an attribute which the viewer
/// lacks; `getvariable` yields NULL for them.
fn attributes(found: &ValidView, viewer: &Viewer) -> BTreeMap<String, String> {
    let scope = Scope {
        user: viewer.attributes(),
        ..found.scope.clone()
    };
    let said = found.spec.query_attributes.iter();
    let text = |(name, text): (&String, &String)| Some((name.clone(), render_text(text, &scope).ok()?));
    said.filter_map(text).collect()
}

/// Returns the rule for caching answers of a view.
fn keeping(spec: &MetricsViewSpec) -> Keeping<'_> {
    let Some(said) = &spec.cache else {
        return Keeping::Builds;
    };
    match (said.enabled, said.key_sql.as_str()) {
        (Some(false), _) => Keeping::Never,
        (_, "") => Keeping::Builds,
        (_, sql) => Keeping::Key {
            sql,
            holds: Duration::from_secs(u64::from(said.key_ttl_seconds)),
        },
    }
}

/// Converts the error of a query that can't be decoded to a refusal.
pub(super) fn refused(error: watershed_metrics::QueryError) -> MetricsError {
    MetricsError::Refused(PlanError::Refused(error))
}
