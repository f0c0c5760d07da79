//! The last stages of a plan, from groups to the answer: totals, computed columns, conditions on groups, and order.

use std::collections::BTreeSet;

use super::filter;
use super::groups::{Groups, Level, Sides};
use super::names::beside;
use super::pivot::Pivot;
use super::side::{Cut, Side};
use super::{Column, Plan, PlanError, Planner, Role, tell_apart};
use crate::query::{ComputedMeasure, Spine};
use crate::sql::{Constant, Expr, Infix, Order, Relation, Select};
use crate::view::{DataType, Measure, Uri, same};

impl Planner<'_> {
    /// Plans the answer to a query of groups.
    pub(super) fn answer(mut self) -> Result<Plan, PlanError> {
        let groups = self.whole()?;
        let (page, order) = self.page(&groups)?;
        let names = self.output();
        let query = self.scene.query;
        let page_name = self.fresh("page");
        let mut relation = Relation::Select(Box::new(page), page_name.clone());
        let total = beside("total", 0);
        if query.totals {
            let totals = self.totals_row(&names)?;
            let mut rows = Select::from(relation);
            for (column, _) in &names {
                rows = rows.column(Expr::of(&page_name, column), column);
            }
            rows = rows.column(Expr::FALSE, &total);
            rows.union.push(totals);
            relation = Relation::Select(Box::new(rows), page_name.clone());
        }
        let mut select = Select::from(relation);
        for (column, output) in &names {
            let shown = match query.use_display_names {
                true => &output.display_name,
                false => &output.name,
            };
            select = select.column(Expr::of(&page_name, column), shown);
        }
        if query.totals {
            select = select.column(Expr::of(&page_name, &total), &total);
            select.order.push(Order::ascending(Expr::of(&page_name, &total)));
        }
        let pivot = Pivot::of(self.scene)?;
        if pivot.is_some() {
            let places = Pivot::keys(self.scene);
            let order = places
                .iter()
                .map(|place| Order::ascending(Expr::of(&page_name, self.scene.names.dimension(*place))));
            select = select.column(Expr::Rank("dense_rank", order.collect()), beside("place", 0));
        }
        select
            .order
            .extend(order.into_iter().map(|(name, descending)| Order {
                by: Expr::of(&page_name, name),
                descending,
            }));
        select.with = self.with;
        Ok(Plan {
            select,
            columns: names.into_iter().map(|(_, column)| column).collect(),
            pivot,
            time_range: self.scene.base.map(|span| span.range),
            comparison_time_range: self.scene.comparison.map(|span| span.range),
            totals: query.totals,
        })
    }

    /// Plans the values of a subquery: those of its dimension in groups that meet `having`.
    pub(super) fn values(&mut self) -> Result<Select, PlanError> {
        let groups = self.whole()?;
        let name = self.scene.names.dimension(0);
        let mut select = Select::from(Relation::named(&groups.name)).column(Expr::column(&name), &name);
        if let Some(having) = self.having()? {
            select = select.only(having);
        }
        Ok(select)
    }

    /// Returns all groups, with every column that the query shows, filters or sorts by.
    fn whole(&mut self) -> Result<Groups, PlanError> {
        let cuts = self.scene.cuts.clone();
        let computed: Vec<usize> = (0..self.scene.query.measures.len())
            .filter(|place| self.is_counted(*place))
            .collect();
        let sides = self.needs()?;
        let mut groups = self.sides(&cuts, &sides, &computed)?;
        match &self.scene.query.spine {
            None => {}
            Some(Spine::Time) => groups = self.filled(groups, &cuts)?,
            Some(Spine::Where(filter)) => groups = self.added(groups, filter, &cuts)?,
        }
        let groups = self.measures(groups, &cuts, &sides)?;
        let groups = self.computed(groups, &cuts)?;
        match self.scene.query.having {
            None => Ok(groups),
            Some(_) => Ok(self.settled(groups)),
        }
    }

    /// Returns true if the query computes the measure at an index directly from rows.
    pub(super) fn is_counted(&self, place: usize) -> bool {
        match self.compute(place) {
            Some(ComputedMeasure::Count | ComputedMeasure::CountDistinct(_)) => true,
            Some(ComputedMeasure::Uri(name)) => {
                let dimension = self.scene.view.dimension(name);
                dimension.is_some_and(|found| matches!(found.uri, Some(Uri::Expression(_))))
            }
            _ => false,
        }
    }

    /// Returns the aggregates of base and comparison, or of the base alone.
    pub(super) fn sides(
        &mut self,
        cuts: &[Cut],
        sides: &Sides,
        computed: &[usize],
    ) -> Result<Groups, PlanError> {
        let empty = BTreeSet::new();
        let level = |computed| Level {
            cuts,
            filter: self.scene.query.r#where.as_ref(),
            computed,
        };
        let (level, compared) = (level(computed), level(&[]));
        let base = self.aggregates(&level, Side::Base, sides.get(&Side::Base).unwrap_or(&empty))?;
        if self.scene.comparison.is_none() {
            return Ok(base);
        }
        let measures = sides.get(&Side::Comparison).unwrap_or(&empty);
        let comparison = self.aggregates(&compared, Side::Comparison, measures)?;
        self.joined(base, comparison, cuts)
    }

    /// Returns the measures that the query needs on each side.
    pub(super) fn needs(&self) -> Result<Sides, PlanError> {
        let query = self.scene.query;
        let mut sides = Sides::from([(Side::Base, BTreeSet::new())]);
        let mut add = |side: Side, index: usize| {
            sides.entry(side).or_default().insert(index);
        };
        for measure in &query.measures {
            match &measure.compute {
                None => add(Side::Base, self.scene.measure(&measure.name)?),
                Some(ComputedMeasure::ComparisonDelta(name) | ComputedMeasure::ComparisonRatio(name)) => {
                    let index = self.number(name)?;
                    add(Side::Base, index);
                    add(Side::Comparison, index);
                }
                Some(ComputedMeasure::ComparisonValue(name)) => {
                    add(Side::Comparison, self.scene.measure(name)?);
                }
                Some(ComputedMeasure::PercentOfTotal(name)) => add(Side::Base, self.number(name)?),
                Some(_) => {}
            }
        }
        let mut named = BTreeSet::new();
        if let Some(having) = &query.having {
            filter::names(having, &mut named);
        }
        for name in named {
            if let Some(index) = self.scene.view.measure_index(name) {
                add(Side::Base, index);
            }
        }
        self.scene.close(&mut sides)?;
        Ok(sides)
    }

    fn number(&self, name: &str) -> Result<usize, PlanError> {
        let index = self.scene.measure(name)?;
        let measure = self.scene.view.measures.get(index);
        match measure {
            Some(measure) if measure.data_type != DataType::Number => Err(PlanError::no_number(name)),
            _ => Ok(index),
        }
    }

    /// Returns the rows of the answer in order, with the columns of the order.
    fn page(&mut self, groups: &Groups) -> Result<(Select, Vec<(String, bool)>), PlanError> {
        let query = self.scene.query;
        let mut select = groups.select();
        select.filter = self.having()?;
        let order = self.order()?;
        let by = |(name, descending): &(String, bool)| Order {
            by: Expr::column(name),
            descending: *descending,
        };
        if query.pivot_on.is_empty() {
            // Without a limit the order of the whole statement is enough.
            if query.limit.is_some() || query.offset > 0 {
                select.order = order.iter().map(by).collect();
            }
            select.limit = query.limit;
            select.offset = query.offset;
            return Ok((select, order));
        }
        // Of a pivot, rows are counted after groups became columns.
        let keys = Pivot::keys(self.scene);
        let is_key = |name: &String| {
            keys.iter()
                .any(|place| self.scene.names.dimension(*place) == *name)
        };
        let rows: Vec<(String, bool)> = order.into_iter().filter(|(name, _)| !is_key(name)).collect();
        if rows.is_empty() || (query.limit.is_none() && query.offset == 0) {
            return Ok((select, rows));
        }
        let place = beside("row", 0);
        select = select.column(Expr::Rank("dense_rank", rows.iter().map(by).collect()), &place);
        let name = self.fresh("ranked");
        let mut page = Select::from(Relation::Select(Box::new(select), name));
        for column in &groups.columns {
            page = page.column(Expr::column(column), column);
        }
        let bound = |count: u64| Expr::Constant(Constant::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
        page = page.only(Expr::column(&place).infix(Infix::Greater, bound(query.offset)));
        if let Some(limit) = query.limit {
            let last = bound(query.offset.saturating_add(limit));
            page = page.only(Expr::column(&place).infix(Infix::LessOrEqual, last));
        }
        Ok((page, rows))
    }

    /// Returns the columns that the answer is ordered by: the requested ones, then the remaining dimensions (Q11).
    fn order(&self) -> Result<Vec<(String, bool)>, PlanError> {
        let query = self.scene.query;
        let mut order: Vec<(String, bool)> = Vec::new();
        for sort in &query.sort {
            let dimensions = &query.dimensions;
            let place = dimensions.iter().position(|found| same(&found.name, &sort.name));
            let name = match place {
                Some(place) => self.scene.names.dimension(place),
                None => {
                    let measures = &query.measures;
                    let place = measures.iter().position(|found| same(&found.name, &sort.name));
                    self.measure_column(place.unwrap_or(usize::MAX))?
                }
            };
            if !query.pivot_on.is_empty()
                && place.is_none_or(|place| Pivot::keys(self.scene).contains(&place))
            {
                return Err(PlanError::pivot(
                    "the rows of a pivot are sorted by dimensions that do not become columns",
                ));
            }
            if order.iter().all(|(other, _)| *other != name) {
                order.push((name, sort.descending));
            }
        }
        for place in 0..query.dimensions.len() {
            let name = self.scene.names.dimension(place);
            if order.iter().all(|(other, _)| *other != name) {
                order.push((name, false));
            }
        }
        Ok(order)
    }

    /// Returns the inner name of the query's measure at an index.
    fn measure_column(&self, place: usize) -> Result<String, PlanError> {
        match self.scene.query.measures.get(place) {
            None => Err(PlanError::missing("column", "")),
            Some(measure) if measure.compute.is_none() => {
                let index = self.scene.measure(&measure.name)?;
                Ok(self.scene.names.measure(Side::Base, index))
            }
            Some(_) => Ok(self.scene.names.computed(place)),
        }
    }

    /// Returns the columns of the answer with their inner names.
    fn output(&self) -> Vec<(String, Column)> {
        let query = self.scene.query;
        let mut found = Vec::new();
        for (place, dimension) in query.dimensions.iter().enumerate() {
            let field = self.scene.view.dimension(&dimension.of);
            let field = field.map(|field| (field.name.as_str(), field.display_name.as_str()));
            let column = column(&dimension.name, field, Role::Dimension);
            let column = Column {
                grain: dimension.grain,
                ..column
            };
            found.push((self.scene.names.dimension(place), column));
        }
        for (place, measure) in query.measures.iter().enumerate() {
            let Ok(name) = self.measure_column(place) else {
                continue;
            };
            let column = match &measure.compute {
                None => {
                    let field = self.scene.view.measure(&measure.name);
                    let names = |field: &'_ Measure| (field.name.clone(), field.display_name.clone());
                    let field = field.map(names);
                    let field = field
                        .as_ref()
                        .map(|(name, shown)| (name.as_str(), shown.as_str()));
                    column(&measure.name, field, Role::Measure)
                }
                Some(compute) => column(&measure.name, Some((compute.of(), "")), Role::Computed),
            };
            found.push((name, column));
        }
        tell_apart(found.iter_mut().map(|(_, column)| column));
        found
    }
}

fn column(name: &str, field: Option<(&str, &str)>, role: Role) -> Column {
    let (field, shown) = field.unwrap_or_default();
    Column {
        name: name.to_owned(),
        display_name: if shown.is_empty() { name } else { shown }.to_owned(),
        role,
        field: field.to_owned(),
        grain: None,
    }
}

impl ComputedMeasure {
    /// Returns the field that the measure is computed from; empty for the number of rows.
    fn of(&self) -> &str {
        match self {
            Self::Count => "",
            Self::CountDistinct(name)
            | Self::ComparisonValue(name)
            | Self::ComparisonDelta(name)
            | Self::ComparisonRatio(name)
            | Self::ComparisonTime(name)
            | Self::PercentOfTotal(name)
            | Self::Uri(name) => name,
        }
    }
}
