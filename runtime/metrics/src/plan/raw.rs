//! Queries of ungrouped rows (Q13).

use std::collections::BTreeSet;

use super::rows::Wanted;
use super::side::Side;
use super::{Column, Plan, PlanError, Planner, Role, opaque, tell_apart};
use crate::query::Sort;
use crate::sql::{Expr, Order, Relation, Select};
use crate::view::{Source, same};

impl Planner<'_> {
    /// Plans a query of ungrouped rows: the visible dimensions and, if no field rule applies to the viewer, the table's
    /// other columns.
    pub(super) fn raw_rows(mut self) -> Result<Plan, PlanError> {
        let (view, query) = (self.scene.view, self.scene.query);
        let shown: BTreeSet<usize> = (0..view.dimensions.len())
            .filter(|index| view.dimensions.get(*index).is_some_and(|found| !found.hidden))
            .collect();
        let rows = self.rows(&Wanted {
            cuts: &[],
            side: Side::Base,
            filter: query.r#where.as_ref(),
            others: shown.clone(),
        })?;
        let mut select = Select::from(rows.relation_of());
        select.filter.clone_from(&rows.filter);
        let mut columns = Vec::new();
        for (index, dimension) in view.dimensions.iter().enumerate() {
            if !shown.contains(&index) {
                continue;
            }
            let value = self.value(index, &BTreeSet::new());
            select = select.column(value, self.scene.names.dimension(columns.len()));
            columns.push(Column {
                name: dimension.name.clone(),
                display_name: match dimension.display_name.is_empty() {
                    true => dimension.name.clone(),
                    false => dimension.display_name.clone(),
                },
                role: Role::Dimension,
                field: dimension.name.clone(),
                grain: None,
            });
        }
        for name in self.other_columns() {
            select = select.column(Expr::column(name), self.scene.names.dimension(columns.len()));
            columns.push(Column {
                name: name.to_owned(),
                display_name: name.to_owned(),
                role: Role::Column,
                field: String::new(),
                grain: None,
            });
        }
        tell_apart(columns.iter_mut());
        if self.may_fail_unseen(&select, &shown) {
            let every = self.fresh("every");
            let names: Vec<String> = select.columns.iter().map(|(_, name)| name.clone()).collect();
            select = opaque(Relation::Select(Box::new(select), every), &names);
        }
        let page = self.fresh("page");
        let mut outer = Select::from(Relation::Select(Box::new(select), page.clone()));
        for (place, column) in columns.iter().enumerate() {
            let shown = match query.use_display_names {
                true => &column.display_name,
                false => &column.name,
            };
            outer = outer.column(Expr::of(&page, self.scene.names.dimension(place)), shown);
        }
        outer.order = self.row_order(&columns, &query.sort, &page);
        outer.limit = query.limit;
        outer.offset = query.offset;
        outer.with = self.with;
        Ok(Plan {
            select: outer,
            columns,
            pivot: None,
            time_range: self.scene.base.map(|span| span.range),
            comparison_time_range: None,
            totals: false,
        })
    }

    /// Returns true if rows beyond a limit, the query's or an export's, must be evaluated too. Otherwise the engine
    /// stops after a batch of rows, whose extent depends on hidden rows, so that an expression's failure on a visible
    /// row could reveal them (Q18).
    fn may_fail_unseen(&self, select: &Select, shown: &BTreeSet<usize>) -> bool {
        let mut values = select
            .columns
            .iter()
            .map(|(value, _)| value)
            .chain(&select.filter);
        let is_bound = !self.scene.policy.row_filters().is_empty();
        is_bound && (values.any(Expr::may_fail) || shown.iter().any(|index| self.source(*index).may_fail()))
    }

    /// Returns the order by the requested columns and then all others, so that only fully equal rows can change places.
    fn row_order(&self, columns: &[Column], sort: &[Sort], page: &str) -> Vec<Order> {
        let find = |sort: &Sort| {
            let place = columns.iter().position(|column| same(&column.name, &sort.name))?;
            Some((place, sort.descending))
        };
        let mut order: Vec<(usize, bool)> = sort.iter().filter_map(find).collect();
        for place in 0..columns.len() {
            if order.iter().all(|(other, _)| *other != place) {
                order.push((place, false));
            }
        }
        let by = |(place, descending)| Order {
            by: Expr::of(page, self.scene.names.dimension(place)),
            descending,
        };
        order.into_iter().map(by).collect()
    }

    /// Returns the table's columns that are no dimensions; empty if the viewer may not see them.
    fn other_columns(&self) -> Vec<&str> {
        let view = self.scene.view;
        if self.scene.policy.binds_fields() {
            return Vec::new();
        }
        let is_dimension = |column: &&String| {
            view.dimensions.iter().any(|dimension| {
                let shown = match &dimension.source {
                    Source::Column(name) => dimension.lookup.is_none() && same(name, column),
                    Source::Expression(_) => false,
                };
                shown || same(&dimension.name, column)
            })
        };
        let others = view.columns.iter().filter(|column| !is_dimension(column));
        others.map(String::as_str).collect()
    }
}
