//! Plans, which turn a query and its viewer into one SQL statement.
//!
//! | module | holds |
//! |---|---|
//! | `scene` | the ranges, resolved, and the fields, found |
//! | `rows` | the base, lookups, unnested lists, conditions on rows |
//! | `groups` | simple measures, and those over smaller groups |
//! | `comparison` | the two sides as one, groups without rows |
//! | `measures` | measures over measures |
//! | `totals`, `computed` | measures over all rows, columns that the query computes |
//! | `answer`, `having` | conditions on groups, order, columns |
//! | `clock`, `literal`, `filter` | times, values and conditions in SQL |
//!
//! Only `rows` names the table, once, under the policy's row filters: nothing in an answer can depend on another row.

mod answer;
mod bounds;
mod clock;
mod comparison;
mod computed;
mod error;
mod extent;
mod filter;
mod groups;
mod having;
mod literal;
mod measures;
mod names;
mod pivot;
mod raw;
mod rows;
mod scene;
mod side;
mod totals;

use std::collections::BTreeSet;

use watershed_dialect::Dialect;
use watershed_schedule::Grain;

use crate::calendar::Range;
use crate::policy::Policy;
use crate::query::{Limits, Query, Subquery, check};
use crate::sql::{self, Expr, Relation, Select};
use crate::view::View;

pub use bounds::{Bounds, Extent};
pub use error::PlanError;
pub use extent::{extents, times};
pub use pivot::Pivoted;

use groups::Groups;
use scene::Scene;

/// A query's statement and the columns of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    select: Select,
    columns: Vec<Column>,
    pivot: Option<pivot::Pivot>,
    /// The time range of the answer, if one bounds it.
    pub time_range: Option<Range>,
    /// The time range of the comparison, if there is one.
    pub comparison_time_range: Option<Range>,
    /// True if the statement has an additional last column, which is true in the row of totals and false in others.
    pub totals: bool,
}

/// A column in the answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column in the answer.
    pub name: String,
    /// The name of the column for people.
    pub display_name: String,
    /// The role of the column in the answer.
    pub role: Role,
    /// The view's field that the column shows or is computed from; empty for counts of rows and for columns of the
    /// table.
    pub field: String,
    /// The grain that the column's times are cut to; none for other values.
    pub grain: Option<Grain>,
}

/// Adds the name of a column to its display name if an earlier column has the same, as with one time cut to two grains.
fn tell_apart<'c>(columns: impl Iterator<Item = &'c mut Column>) {
    let mut seen = BTreeSet::new();
    for column in columns {
        if !seen.insert(column.display_name.to_lowercase()) {
            column.display_name = format!("{} ({})", column.display_name, column.name);
            seen.insert(column.display_name.to_lowercase());
        }
    }
}

/// The role of a column in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A dimension by which rows are grouped.
    Dimension,
    /// A measure that the view defines.
    Measure,
    /// A measure computed by the query itself.
    Computed,
    /// A column of the table that is no field.
    Column,
}

impl Plan {
    /// Returns the text of the statement in a dialect.
    pub fn statement(&self, dialect: &dyn Dialect) -> String {
        sql::write(&self.select, dialect)
    }

    /// Returns the columns of the statement's result, before a pivot.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// Returns a view as a policy shows it, with hidden fields marked.
///
/// # Errors
/// When the policy gives no access to the view.
pub fn visible(view: &View, policy: &Policy) -> Result<View, PlanError> {
    match policy.has_access() {
        true => Ok(policy.visible(view.clone())),
        false => Err(PlanError::closed(&view.name)),
    }
}

/// Plans a query of a view for its viewer, at given moments.
///
/// ```
/// use watershed_metrics::plan::{Bounds, plan};
/// use watershed_dialect::DuckDb;
/// use watershed_metrics::{DataType, Dimension, Measure, Policy, Query, View};
/// use watershed_metrics::view::Source;
///
/// let view = View {
///     table: vec!["departures".to_owned()],
///     dimensions: vec![Dimension {
///         name: "origin".to_owned(),
///         data_type: DataType::Text,
///         engine_type: "VARCHAR".to_owned(),
///         source: Source::Column("from".to_owned()),
///         ..Dimension::default()
///     }],
///     measures: vec![Measure {
///         name: "flights".to_owned(),
///         data_type: DataType::Number,
///         engine_type: "BIGINT".to_owned(),
///         expression: "count(*)".to_owned(),
///         ..Measure::default()
///     }],
///     ..View::default()
/// };
/// let query: Query = r#"{"metrics_view": "departures", "dimensions": ["origin"], "measures": ["flights"]}"#.parse()?;
/// let plan = plan(&view, &Policy::open(), &query, &Bounds::at("2024-03-12T15:00:00Z".parse()?))?;
/// assert!(plan.statement(&DuckDb).contains(r#""departures""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first reason for which the query can't be answered, with its place in the query.
pub fn plan(view: &View, policy: &Policy, query: &Query, bounds: &Bounds) -> Result<Plan, PlanError> {
    let view = visible(view, policy)?;
    check(query, &view)?;
    let scene = Scene::new(&view, policy, query, bounds)?;
    let planner = Planner::new(&scene, 0);
    if query.rows {
        planner.raw_rows()
    } else {
        planner.answer()
    }
}

/// The state of a plan under construction.
struct Planner<'a> {
    scene: &'a Scene<'a>,
    /// Named subqueries of the statement (CTEs), each of which can read the earlier ones.
    with: Vec<(String, Select)>,
    /// The name of the subquery with the base, once it exists.
    base: Option<String>,
    /// The number of inner names generated so far.
    made: usize,
    /// The current nesting depth of smaller groups and subqueries.
    depth: usize,
}

impl<'a> Planner<'a> {
    fn new(scene: &'a Scene<'a>, depth: usize) -> Self {
        Self {
            scene,
            with: Vec::new(),
            base: None,
            made: 0,
            depth,
        }
    }

    /// Returns a new unique inner name.
    fn fresh(&mut self, word: &str) -> String {
        self.made += 1;
        self.scene.names.relation(word, self.made)
    }

    /// Adds a named subquery, which later ones can read; returns its name.
    fn with(&mut self, word: &str, select: Select) -> String {
        let name = self.fresh(word);
        self.with.push((name.clone(), select.with_a_column()));
        name
    }

    /// Makes the engine compute groups before a condition removes some, if the viewer sees only part of the rows.
    /// Otherwise the engine's statistics about hidden rows could decide whether an expression is evaluated and fails
    /// (Q18).
    fn settled(&mut self, groups: Groups) -> Groups {
        if self.scene.policy.row_filters().is_empty() {
            return groups;
        }
        let select = opaque(Relation::named(&groups.name), &groups.columns);
        Groups {
            name: self.with("settled", select),
            columns: groups.columns,
        }
    }

    /// Increases the nesting depth; returns an error beyond the limit.
    fn deeper(&mut self) -> Result<(), PlanError> {
        self.depth += 1;
        if self.depth > Limits::DEPTH {
            return Err(PlanError::too_deep());
        }
        Ok(())
    }

    /// Adds a named subquery with the values of a dimension in groups that meet the subquery's conditions, in the
    /// query's time ranges. Returns its name and the name of its column.
    fn set(&mut self, subquery: &Subquery) -> Result<(String, String), PlanError> {
        self.deeper()?;
        let query = Query {
            dimensions: vec![crate::query::Dimension::named(&subquery.dimension)],
            measures: subquery
                .measures
                .iter()
                .map(|name| crate::query::Measure::named(name))
                .collect(),
            r#where: subquery.r#where.clone(),
            having: subquery.having.clone(),
            time_range: self.scene.query.time_range.clone(),
            comparison_time_range: self.scene.query.comparison_time_range.clone(),
            time_zone: self.scene.query.time_zone.clone(),
            ..Query::of(&self.scene.view.name)
        };
        let scene = Scene::new(self.scene.view, self.scene.policy, &query, self.scene.bounds)?;
        let mut inner = Planner::new(&scene, self.depth);
        let mut select = inner.values()?;
        select.with = inner.with;
        self.depth -= 1;
        let name = self.with("subquery", select);
        Ok((name, self.scene.names.dimension(0)))
    }
}

/// Returns a statement that reads columns as values through which the engine moves no condition or limit.
fn opaque(relation: Relation, columns: &[String]) -> Select {
    let all = Select::from(relation);
    columns.iter().fold(all, |select, column| {
        select.column(Expr::Opaque(Box::new(Expr::column(column))), column)
    })
}
