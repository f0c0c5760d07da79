//! Statements that check the fields of a view by being bound, without reading rows; built from the same trees as
//! queries.
//!
//! Dimensions stand in a `GROUP BY`, so that an aggregate is refused; measures beside a `count(*)`, so that a plain
//! column is. What uses other measures reads a subquery that computes them.

use watershed_dialect::Dialect;

use crate::query::Limits;
use crate::sql::{self, Expr, JoinKind, Order, Relation, Select};
use crate::view::{Dimension, Measure, MeasureKind, Selector, Source, Uri, View, same};

/// The name of the count of rows among the columns of [`all`].
pub const COUNT: &str = "_watershed rows";

/// The name of the value in probes of one field; no table has such a column, so that a name in an expression can't mean
/// it.
const VALUE: &str = "_watershed value";

/// The largest number of measures nested in one statement, counting repetitions.
const NESTED: usize = 1_000;

/// The error for measures that require one another in a cycle, or are nested too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("measures require one another in a circle, or are nested too deep")]
pub struct NestedTooDeep;

/// A probe statement, with the place of the probed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text of the statement.
    pub sql: String,
    /// The byte offset at which the probed text begins; the end of the statement if there is none.
    pub at: usize,
}

/// Returns one statement that probes all fields. Its columns are named as the dimensions, then the measures, with
/// [`COUNT`] among them.
///
/// # Errors
/// Measures that are nested too deep.
pub fn all(view: &View, dialect: &dyn Dialect) -> Result<String, NestedTooDeep> {
    let mut parts = Vec::new();
    if !view.dimensions.is_empty() {
        parts.push(grouped(view, view.dimensions.iter().collect()));
    }
    let (simple, others): (Vec<_>, Vec<_>) = view.measures.iter().partition(|one| is_simple(one));
    if !simple.is_empty() {
        let mut select = Select::from(table(view));
        for measure in simple {
            select = select.column(Expr::Foreign(measure.expression.clone()), &measure.name);
        }
        parts.push(select.column(Expr::CountAll, COUNT));
    }
    for measure in others {
        parts.push(Nesting::new(view).computed(measure, Limits::DEPTH)?);
    }
    let named = |(place, select)| Relation::Select(Box::new(select), format!("_watershed {place}"));
    let from = (0..).zip(parts).map(named);
    let joined = from.reduce(|all, one| all.join(JoinKind::Cross, one, None));
    let select = Select::all_from(joined.unwrap_or_else(|| table(view)));
    Ok(sql::write(&select, dialect))
}

/// Returns the statement that probes columns of a table, or without columns the table alone.
pub fn columns(table: &[String], columns: &[&str], dialect: &dyn Dialect) -> String {
    let from = Relation::Named(table.to_vec());
    let select = match columns {
        [] => Select::all_from(from),
        columns => columns.iter().fold(Select::from(from), |select, name| {
            select.column(Expr::column(*name), VALUE)
        }),
    };
    sql::write(&select, dialect)
}

/// Returns the statement that probes a dimension, its only column.
pub fn dimension(view: &View, dimension: &Dimension, dialect: &dyn Dialect) -> Statement {
    let value = source(dimension);
    let select = match dimension.unnest {
        true => Select::from(table(view)).column(Expr::Call("unnest", vec![value]), VALUE),
        false => Select {
            group_by: 1,
            ..Select::from(table(view)).column(value, VALUE)
        },
    };
    statement(&select, 0, dialect)
}

/// Returns the statement that probes a measure, its first column.
///
/// # Errors
/// Measures that are nested too deep.
pub fn measure(view: &View, measure: &Measure, dialect: &dyn Dialect) -> Result<Statement, NestedTooDeep> {
    Ok(statement(&alone(view, measure)?, 0, dialect))
}

/// Returns the statement that probes the replacement for a measure's missing values.
///
/// # Errors
/// Measures that are nested too deep.
pub fn replaced_nulls(
    view: &View,
    measure: &Measure,
    dialect: &dyn Dialect,
) -> Result<Option<Statement>, NestedTooDeep> {
    let Some(other) = measure.treat_nulls_as.clone() else {
        return Ok(None);
    };
    let mut select = alone(view, measure)?;
    if let Some((value, _)) = select.columns.first_mut() {
        *value = value.clone().or(Expr::Foreign(other));
    }
    Ok(Some(statement(&select, 1, dialect)))
}

/// Returns the statement that probes the default for values that a dimension's lookup table lacks, if there is one.
pub fn lookup_default(view: &View, dimension: &Dimension, dialect: &dyn Dialect) -> Option<Statement> {
    let lookup = dimension.lookup.as_ref()?;
    let default = Expr::Foreign(lookup.default.clone()?);
    let value = Expr::Call("min", vec![Expr::column(&lookup.value)]);
    let shown = Select::from(Relation::Named(lookup.table.clone())).column(value, VALUE);
    let select = Select::from(table(view)).column(Expr::Scalar(Box::new(shown)).or(default), VALUE);
    Some(statement(&select, 0, dialect))
}

/// Returns the statement that probes the link expression of a dimension, if there is one.
pub fn uri(view: &View, dimension: &Dimension, dialect: &dyn Dialect) -> Option<Statement> {
    let Some(Uri::Expression(text)) = &dimension.uri else {
        return None;
    };
    let link = Expr::Call("min", vec![Expr::Foreign(text.clone())]);
    let select = Select::from(table(view)).column(link, VALUE);
    Some(statement(&select, 0, dialect))
}

/// Returns the statement that probes the watermark expression of a view, if there is one.
pub fn watermark(view: &View, dialect: &dyn Dialect) -> Option<Statement> {
    let value = Expr::Foreign(view.watermark.clone()?);
    let select = Select::from(table(view)).column(value, VALUE);
    Some(statement(&select, 0, dialect))
}

/// Returns the statement that probes a row filter of a view.
pub fn row_filter(view: &View, filter: &str, dialect: &dyn Dialect) -> Statement {
    let select = Select::from(table(view)).only(Expr::Foreign(filter.to_owned()));
    statement(&select.with_a_column(), 0, dialect)
}

/// Writes a statement as a probe of the author's text at index `tried`.
fn statement(select: &Select, tried: usize, dialect: &dyn Dialect) -> Statement {
    let (sql, places) = sql::write_with_places(select, dialect);
    let at = places.get(tried).copied().unwrap_or(sql.len());
    Statement { sql, at }
}

fn table(view: &View) -> Relation {
    Relation::Named(view.table.clone())
}

fn is_simple(measure: &Measure) -> bool {
    measure.kind == MeasureKind::Simple
}

fn source(dimension: &Dimension) -> Expr {
    match &dimension.source {
        Source::Column(name) => Expr::column(name),
        Source::Expression(text) => Expr::Foreign(text.clone()),
    }
}

/// Returns a statement for one measure, over the table or over the measures that it requires.
fn alone(view: &View, measure: &Measure) -> Result<Select, NestedTooDeep> {
    match is_simple(measure) {
        true => Ok(Select::from(table(view))
            .column(Expr::Foreign(measure.expression.clone()), VALUE)
            .column(Expr::CountAll, COUNT)),
        false => Nesting::new(view).computed(measure, Limits::DEPTH),
    }
}

/// A builder of nested measures, with a limit on their number.
struct Nesting<'v> {
    view: &'v View,
    left: usize,
}

impl<'v> Nesting<'v> {
    fn new(view: &'v View) -> Self {
        Self { view, left: NESTED }
    }

    /// Returns a statement that computes a measure over the groups it needs.
    fn computed(&mut self, measure: &Measure, depth: usize) -> Result<Select, NestedTooDeep> {
        let depth = depth.checked_sub(1).ok_or(NestedTooDeep)?;
        self.left = self.left.checked_sub(1).ok_or(NestedTooDeep)?;
        let mut side = |name: &str| {
            let groups = self.groups(measure, depth)?;
            Ok(Relation::Select(Box::new(groups), name.to_owned()))
        };
        let base = side("base")?;
        let from = match measure.kind {
            MeasureKind::TimeComparison => base.join(JoinKind::Cross, side("comparison")?, None),
            _ => base,
        };
        let ordered = |by: &Selector| Order::ascending(Expr::column(&by.name));
        let value = match &measure.window {
            None => Expr::Foreign(measure.expression.clone()),
            Some(window) => Expr::Over {
                function: measure.expression.clone(),
                partition: Vec::new(),
                order: measure.order.iter().map(ordered).collect(),
                frame: window.frame.clone(),
            },
        };
        Ok(Select::from(from).column(value, &measure.name))
    }

    /// Returns the groups that a measure is computed over, with the measures it requires.
    fn groups(&mut self, measure: &Measure, depth: usize) -> Result<Select, NestedTooDeep> {
        let view = self.view;
        let is_by = |one: &&Dimension| {
            let mut by = measure.per.iter().chain(&measure.order);
            by.any(|by| same(&by.name, &one.name))
        };
        let mut select = grouped(view, view.dimensions.iter().filter(is_by).collect());
        for other in &view.measures {
            let is_required = match measure.requires.is_empty() {
                true => is_simple(other) && other.name != measure.name,
                false => measure.requires.iter().any(|name| same(name, &other.name)),
            };
            if !is_required {
                continue;
            }
            let value = match is_simple(other) {
                true => Expr::Foreign(other.expression.clone()),
                false => Expr::Scalar(Box::new(self.computed(other, depth)?)),
            };
            select = select.column(value, &other.name);
        }
        Ok(select.column(Expr::CountAll, COUNT))
    }
}

/// Returns the SELECT that groups the view's rows by the given dimensions.
fn grouped(view: &View, dimensions: Vec<&Dimension>) -> Select {
    let unnested = |one: &Dimension| format!("_watershed {}", one.name);
    let mut rows = Select::all_from(table(view));
    for one in view.dimensions.iter().filter(|one| one.unnest) {
        rows = rows.column(Expr::Call("unnest", vec![source(one)]), unnested(one));
    }
    let from = match rows.columns.is_empty() {
        true => table(view),
        false => Relation::Select(Box::new(rows), "_watershed rows".to_owned()),
    };
    let count = dimensions.len();
    let columns = dimensions.into_iter().fold(Select::from(from), |select, one| {
        let value = match one.unnest {
            true => Expr::column(unnested(one)),
            false => source(one),
        };
        select.column(value, &one.name)
    });
    Select {
        group_by: count,
        ..columns
    }
}
