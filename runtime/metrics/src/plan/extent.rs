//! Plans of the extents of time dimensions over visible rows.

use std::collections::BTreeSet;

use watershed_dialect::SqlType;
use watershed_schedule::Zone;

use super::bounds::Bounds;
use super::scene::Scene;
use super::{Plan, PlanError, Planner, Role};
use crate::policy::Policy;
use crate::query::{Comparison, Query};
use crate::sql::{Expr, Select};
use crate::view::{View, same};

/// Returns the time dimensions whose extents the plan of a query needs: those of its ranges, and those cut in a zone
/// with an offset.
pub fn times(view: &View, query: &Query) -> Vec<String> {
    let own = |name: &Option<String>| name.clone().unwrap_or_else(|| view.time_dimension.clone());
    let mut names = Vec::new();
    names.extend(query.time_range.iter().map(|range| own(&range.time_dimension)));
    if let Some(Comparison::Range(range)) = &query.comparison_time_range {
        names.push(own(&range.time_dimension));
    }
    if query.time_zone != Zone::UTC {
        let cut = query
            .dimensions
            .iter()
            .filter(|dimension| dimension.grain.is_some());
        names.extend(cut.map(|dimension| dimension.of.clone()));
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for name in names {
        if let Some(dimension) = view.dimension(&name)
            && seen.insert(dimension.name.to_lowercase())
        {
            found.push(dimension.name.clone());
        }
    }
    found
}

/// Plans the extents of time dimensions, if any are named: the earliest and latest time of each and, last, the
/// watermark of the view's time dimension, if the view has an expression for it. All are UTC times without a zone.
///
/// # Errors
/// A name that is no dimension, and a view that the viewer may not see.
pub fn extents(
    view: &View,
    policy: &Policy,
    names: &[String],
    now: jiff::Timestamp,
) -> Result<Option<Plan>, PlanError> {
    if !policy.has_access() {
        return Err(PlanError::closed(&view.name));
    }
    if names.is_empty() {
        return Ok(None);
    }
    let query = Query::of(&view.name);
    let bounds = Bounds::at(now);
    let scene = Scene::new(view, policy, &query, &bounds)?;
    let mut planner = Planner::new(&scene, 0);
    let mut select = Select::from(planner.base());
    let mut columns = Vec::new();
    let universal = |value: Expr| {
        let micros = Expr::Call("epoch_us", vec![value]);
        Expr::Call("make_timestamp", vec![micros])
    };
    let mut add = |value: Expr, name: &str, field: &str| {
        columns.push(super::Column {
            name: name.to_owned(),
            display_name: name.to_owned(),
            role: Role::Computed,
            field: field.to_owned(),
            grain: None,
        });
        (value, format!("{name}{}", columns.len()))
    };
    for name in names {
        let index = scene.dimension(name)?;
        for (function, column) in [("min", "earliest"), ("max", "latest")] {
            // Infinity is no end.
            let value = planner.value(index, &BTreeSet::new());
            let finite = Expr::Case(vec![(Expr::Call("isfinite", vec![value.clone()]), value)], None);
            let (value, column) = add(universal(Expr::Call(function, vec![finite])), column, name);
            select = select.column(value, column);
        }
    }
    if let Some(watermark) = &view.watermark
        && names.iter().any(|name| same(name, &view.time_dimension))
    {
        let value = Expr::Foreign(watermark.clone()).cast(SqlType::Timestamp);
        let (value, column) = add(value, "watermark", &view.time_dimension);
        select = select.column(value, column);
    }
    select.with = planner.with;
    Ok(Some(Plan {
        select,
        columns,
        pivot: None,
        time_range: None,
        comparison_time_range: None,
        totals: false,
    }))
}
