//! Plans: from a query and its viewer to one statement.
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
    /// The range of time, if one bounds the answer.
    pub time_range: Option<Range>,
    /// The range that it is compared with.
    pub comparison_time_range: Option<Range>,
    /// The statement has one more column at its end, which is true in the row of totals and false in all others.
    pub totals: bool,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its part in the answer.
    pub role: Role,
    /// The view's field that it shows or is computed from; empty for the number of rows, and for columns that are no
    /// fields.
    pub field: String,
    /// The grain that its times are cut to.
    pub grain: Option<Grain>,
}

/// Adds the name to a name for people that an earlier column has: a time that is cut in two ways is one field.
fn tell_apart<'c>(columns: impl Iterator<Item = &'c mut Column>) {
    let mut seen = BTreeSet::new();
    for column in columns {
        if !seen.insert(column.display_name.to_lowercase()) {
            column.display_name = format!("{} ({})", column.display_name, column.name);
            seen.insert(column.display_name.to_lowercase());
        }
    }
}

/// The parts that columns have in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Rows are grouped by it.
    Dimension,
    /// A measure of the view.
    Measure,
    /// Computed by the query.
    Computed,
    /// A column of the table.
    Column,
}

impl Plan {
    /// Returns the statement's text in an engine's dialect.
    pub fn statement(&self, dialect: &dyn Dialect) -> String {
        sql::write(&self.select, dialect)
    }

    /// Returns the columns of the statement's answer, before a pivot.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// Plans a query.
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
    if !policy.has_access() {
        return Err(PlanError::closed(&view.name));
    }
    let view = policy.visible(view.clone());
    check(query, &view)?;
    let scene = Scene::new(&view, policy, query, bounds)?;
    let planner = Planner::new(&scene, 0);
    if query.rows {
        planner.raw_rows()
    } else {
        planner.answer()
    }
}

/// A plan in the making.
struct Planner<'a> {
    scene: &'a Scene<'a>,
    /// Named statements, each of which reads those before it.
    with: Vec<(String, Select)>,
    /// The name of the base among them.
    base: Option<String>,
    /// Names that were made.
    made: usize,
    /// The depth of smaller groups and subqueries.
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

    /// Returns a name that nothing else has.
    fn fresh(&mut self, word: &str) -> String {
        self.made += 1;
        self.scene.names.relation(word, self.made)
    }

    /// Names a statement, so that later ones may read it.
    fn with(&mut self, word: &str, select: Select) -> String {
        let name = self.fresh(word);
        self.with.push((name.clone(), select.with_a_column()));
        name
    }

    /// Has the engine make groups before a condition leaves some of them out, where the viewer sees a part of the rows.
    /// Its statistics are of all rows: where they say that no group is left it evaluates nothing, and whether an expression
    /// fails on a visible row would tell of hidden ones (Q18).
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

    /// Goes a level deeper, up to a bound.
    fn deeper(&mut self) -> Result<(), PlanError> {
        self.depth += 1;
        if self.depth > Limits::DEPTH {
            return Err(PlanError::too_deep());
        }
        Ok(())
    }

    /// Names the values of a subquery: of the groups of one dimension that meet its conditions, in the query's ranges.
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

/// Reads columns in a way that the engine moves no condition and no limit through.
fn opaque(relation: Relation, columns: &[String]) -> Select {
    let all = Select::from(relation);
    columns.iter().fold(all, |select, column| {
        select.column(Expr::Opaque(Box::new(Expr::column(column))), column)
    })
}
