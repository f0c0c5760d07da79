//! Measures that are computed from other measures of the same groups, in stages by their requirements.

use std::collections::{BTreeMap, BTreeSet};

use watershed_dialect::{Dialect as _, ENGINE, SqlType};

use super::groups::{Groups, Sides};
use super::side::{Cut, Side};
use super::{PlanError, Planner};
use crate::sql::{Expr, Order, Relation, Select};
use crate::view::{Measure, MeasureKind};

impl Planner<'_> {
    /// Cleans the aggregates of groups, and adds the measures that are computed from them.
    pub(super) fn measures(
        &mut self,
        groups: Groups,
        cuts: &[Cut],
        sides: &Sides,
    ) -> Result<Groups, PlanError> {
        let mut levels: BTreeMap<usize, Vec<(Side, usize)>> = BTreeMap::new();
        for (side, measures) in sides {
            for index in measures {
                let level = self.level(*index, &mut Vec::new())?;
                levels.entry(level).or_default().push((*side, *index));
            }
        }
        let first = levels.remove(&0).unwrap_or_default();
        let mut groups = self.cleaned(groups, &first);
        for (_, level) in levels {
            for side in [Side::Base, Side::Comparison] {
                let of = |compares: bool| {
                    let view = self.scene.view;
                    let level = level.iter().filter(|(of, _)| *of == side);
                    let kinds = level.filter(|(_, index)| {
                        let measure = view.measures.get(*index);
                        measure.is_some_and(|found| (found.kind == MeasureKind::TimeComparison) == compares)
                    });
                    kinds.map(|(_, index)| *index).collect::<Vec<_>>()
                };
                let (plain, compared) = (of(false), of(true));
                groups = self.computed_stage(groups, cuts, side, &plain)?;
                groups = self.compared_stage(groups, side, &compared)?;
            }
        }
        Ok(groups)
    }

    /// Returns the depth of a measure's requirements on its own level; 0 for aggregates.
    fn level(&self, index: usize, path: &mut Vec<usize>) -> Result<usize, PlanError> {
        let Some(measure) = self.scene.view.measures.get(index) else {
            return Ok(0);
        };
        if matches!(measure.kind, MeasureKind::Simple | MeasureKind::Per) {
            return Ok(0);
        }
        if path.contains(&index) {
            return Err(PlanError::circle(&measure.name));
        }
        path.push(index);
        let mut deepest = 0;
        for required in self.scene.required(measure)? {
            deepest = deepest.max(self.level(required, path)?);
        }
        path.pop();
        Ok(deepest + 1)
    }

    /// Adds derived and window measures of one side.
    fn computed_stage(
        &mut self,
        groups: Groups,
        cuts: &[Cut],
        side: Side,
        measures: &[usize],
    ) -> Result<Groups, PlanError> {
        if measures.is_empty() {
            return Ok(groups);
        }
        let required: Vec<usize> = self.required(measures)?.into_iter().collect();
        let scope = self.scope(&groups, side, &required);
        let relation = Relation::Select(Box::new(scope), "base".to_owned());
        let mut select = Select::from(relation);
        for column in &groups.columns {
            select = select.column(Expr::column(column), column);
        }
        for index in measures {
            if let Some(measure) = self.scene.view.measures.get(*index) {
                let value = self.expression(measure, cuts)?;
                select = select.column(value, self.scene.names.measure(side, *index));
            }
        }
        Ok(self.finished(groups, select, side, measures))
    }

    /// Adds the base's measures that also read the comparison. In the comparison itself they are NULL.
    fn compared_stage(
        &mut self,
        groups: Groups,
        side: Side,
        measures: &[usize],
    ) -> Result<Groups, PlanError> {
        if measures.is_empty() {
            return Ok(groups);
        }
        let required = self.required(measures)?;
        let mut scope = Select::all_from(Relation::named(&groups.name));
        if side == Side::Base {
            for (name, side) in [("base", Side::Base), ("comparison", Side::Comparison)] {
                let fields = required.iter().filter_map(|index| {
                    let measure = self.scene.view.measures.get(*index)?;
                    let column = Expr::column(self.scene.names.measure(side, *index));
                    Some((measure.name.clone(), column))
                });
                scope = scope.column(Expr::Struct(fields.collect()), name);
            }
        }
        let relation = Relation::Select(Box::new(scope), self.fresh("sides"));
        let mut select = Select::from(relation);
        for column in &groups.columns {
            select = select.column(Expr::column(column), column);
        }
        for index in measures {
            let Some(measure) = self.scene.view.measures.get(*index) else {
                continue;
            };
            let value = match side {
                Side::Base => Expr::Foreign(measure.expression.clone()),
                Side::Comparison => Expr::NULL,
            };
            select = select.column(value, self.scene.names.measure(side, *index));
        }
        Ok(self.finished(groups, select, side, measures))
    }

    /// Returns the indices of the measures that the given measures are computed from, without repetition.
    fn required(&self, measures: &[usize]) -> Result<BTreeSet<usize>, PlanError> {
        let mut required = BTreeSet::new();
        for measure in self.found(measures) {
            required.extend(self.scene.required(measure)?);
        }
        Ok(required)
    }

    fn found<'m>(&'m self, measures: &'m [usize]) -> impl Iterator<Item = &'m Measure> {
        measures
            .iter()
            .filter_map(|index| self.scene.view.measures.get(*index))
    }

    /// Adds a stage as a named subquery, and cleans the measures that it added.
    fn finished(&mut self, groups: Groups, select: Select, side: Side, measures: &[usize]) -> Groups {
        let mut columns = groups.columns;
        columns.extend(
            measures
                .iter()
                .map(|index| self.scene.names.measure(side, *index)),
        );
        let name = self.with("measures", select);
        let added: Vec<(Side, usize)> = measures.iter().map(|index| (side, *index)).collect();
        self.cleaned(Groups { name, columns }, &added)
    }

    /// Returns a statement with a side's measures under their original names, as authors' expressions use them.
    pub(super) fn scope(&self, groups: &Groups, side: Side, required: &[usize]) -> Select {
        let mut select = Select::all_from(Relation::named(&groups.name));
        for index in required {
            if let Some(measure) = self.scene.view.measures.get(*index) {
                let column = Expr::column(self.scene.names.measure(side, *index));
                select = select.column(column, &measure.name);
            }
        }
        select
    }

    fn expression(&self, measure: &Measure, cuts: &[Cut]) -> Result<Expr, PlanError> {
        let Some(window) = &measure.window else {
            return Ok(Expr::Foreign(measure.expression.clone()));
        };
        let mut ordering = Vec::new();
        for selector in &measure.order {
            let dimension = self.scene.dimension(&selector.name)?;
            let is_meant = |cut: &Cut| {
                cut.dimension == dimension && (selector.grain.is_none() || cut.grain == selector.grain)
            };
            // Without a grain a time is meant however it is cut, be it in several ways: days of months are in one order.
            let places = cuts.iter().enumerate().filter(|(_, cut)| is_meant(cut));
            let places: Vec<usize> = places.map(|(place, _)| place).collect();
            if places.is_empty() {
                return Err(PlanError::dimension_required(&measure.name, &selector.name));
            }
            ordering.extend(places);
        }
        let column = |place: usize| Expr::column(self.scene.names.dimension(place));
        let others = (0..cuts.len()).filter(|place| window.partition && !ordering.contains(place));
        Ok(Expr::Over {
            function: measure.expression.clone(),
            partition: others.map(column).collect(),
            order: ordering
                .iter()
                .map(|place| Order::ascending(column(*place)))
                .collect(),
            frame: window.frame.clone(),
        })
    }

    /// Replaces NaN and infinity by NULL, and NULL by the measure's replacement, if there is one (Q4).
    fn cleaned(&mut self, groups: Groups, measures: &[(Side, usize)]) -> Groups {
        let mut replaced = BTreeMap::new();
        for (side, index) in measures {
            let Some(measure) = self.scene.view.measures.get(*index) else {
                continue;
            };
            let name = self.scene.names.measure(*side, *index);
            let mut value = Expr::column(&name);
            if is_floating(&measure.engine_type) {
                value = finite(value);
            }
            if let Some(other) = &measure.treat_nulls_as {
                value = value.or(Expr::Foreign(other.clone()));
            }
            if value != Expr::column(&name) {
                replaced.insert(name, value);
            }
        }
        if replaced.is_empty() {
            return groups;
        }
        let mut select = Select::from(Relation::named(&groups.name));
        for column in &groups.columns {
            let value = replaced.remove(column);
            select = select.column(value.unwrap_or_else(|| Expr::column(column)), column);
        }
        Groups {
            name: self.with("clean", select),
            columns: groups.columns,
        }
    }
}

/// Replaces NaN and infinity by NULL.
pub(super) fn finite(value: Expr) -> Expr {
    Expr::Case(vec![(Expr::Call("isfinite", vec![value.clone()]), value)], None)
}

fn is_floating(engine_type: &str) -> bool {
    matches!(
        ENGINE.read_type(engine_type),
        Some(SqlType::Float | SqlType::Double)
    )
}
