//! Totals, which are measures over all rows and never sums of groups (Q12).

use std::collections::BTreeSet;

use super::computed::{relative, share};
use super::groups::{Groups, Sides};
use super::names::beside;
use super::side::Side;
use super::{Column, PlanError, Planner};
use crate::query::ComputedMeasure;
use crate::sql::{Expr, Relation, Select};
use crate::view::MeasureKind;

impl Planner<'_> {
    /// Returns all measures over all rows, as a single row.
    pub(super) fn totals(&mut self) -> Result<Groups, PlanError> {
        let mut sides = Sides::new();
        for (side, measures) in self.needs()? {
            let measures = measures.into_iter().filter(|index| self.has_total(*index));
            sides.insert(side, measures.collect());
        }
        let computed: Vec<usize> = (0..self.scene.query.measures.len())
            .filter(|place| {
                self.is_counted(*place) && !matches!(self.compute(*place), Some(ComputedMeasure::Uri(_)))
            })
            .collect();
        let groups = self.sides(&[], &sides, &computed)?;
        let groups = self.measures(groups, &[], &sides)?;
        let mut select = Select::from(Relation::named(&groups.name));
        let mut columns = Vec::new();
        for (side, measures) in self.needs()? {
            for index in measures {
                let column = self.scene.names.measure(side, index);
                let value = match groups.columns.contains(&column) {
                    true => Expr::column(column),
                    false => Expr::NULL,
                };
                let name = self.scene.names.total(side, index);
                select = select.column(value, &name);
                columns.push(name);
            }
        }
        for place in computed {
            let name = self.scene.names.computed(place);
            select = select.column(Expr::column(&name), &name);
            columns.push(name);
        }
        Ok(Groups {
            name: self.with("totals", select),
            columns,
        })
    }

    /// Returns true if a measure has a total; measures that depend on a window have none (Q12).
    pub(super) fn has_total(&self, index: usize) -> bool {
        let measures = &self.scene.view.measures;
        let mut left = vec![index];
        let mut seen = BTreeSet::new();
        while let Some(index) = left.pop() {
            if !seen.insert(index) {
                continue;
            }
            let Some(measure) = measures.get(index) else {
                continue;
            };
            if measure.kind == MeasureKind::Window {
                return false;
            }
            left.extend(self.scene.required(measure).unwrap_or_default());
        }
        true
    }

    /// Returns the row of totals, with the columns of the answer.
    pub(super) fn totals_row(&mut self, names: &[(String, Column)]) -> Result<Select, PlanError> {
        let totals = self.totals()?;
        let mut select = Select::from(Relation::named(&totals.name));
        let dimensions = self.scene.query.dimensions.len();
        for (place, (name, _)) in names.iter().enumerate() {
            let value = match place.checked_sub(dimensions) {
                None => Expr::NULL,
                Some(place) => self.total_of(place, &totals)?,
            };
            select = select.column(value, name);
        }
        Ok(select.column(Expr::TRUE, beside("total", 0)))
    }

    pub(super) fn total_of(&self, place: usize, totals: &Groups) -> Result<Expr, PlanError> {
        let Some(measure) = self.scene.query.measures.get(place) else {
            return Ok(Expr::NULL);
        };
        let total = |side, name: &str| -> Result<Expr, PlanError> {
            let index = self.scene.measure(name)?;
            Ok(Expr::column(self.scene.names.total(side, index)))
        };
        Ok(match &measure.compute {
            None => total(Side::Base, &measure.name)?,
            Some(ComputedMeasure::ComparisonValue(name)) => total(Side::Comparison, name)?,
            Some(ComputedMeasure::ComparisonDelta(name)) => {
                self.delta(name, total(Side::Base, name)?, total(Side::Comparison, name)?)
            }
            Some(ComputedMeasure::ComparisonRatio(name)) => {
                let compared = total(Side::Comparison, name)?;
                let delta = self.delta(name, total(Side::Base, name)?, compared.clone());
                relative(delta, compared)
            }
            Some(ComputedMeasure::PercentOfTotal(name)) => {
                let total = total(Side::Base, name)?;
                share(total.clone(), total)
            }
            Some(ComputedMeasure::Count | ComputedMeasure::CountDistinct(_)) => {
                let name = self.scene.names.computed(place);
                match totals.columns.contains(&name) {
                    true => Expr::column(name),
                    false => Expr::NULL,
                }
            }
            Some(ComputedMeasure::ComparisonTime(_) | ComputedMeasure::Uri(_)) => Expr::NULL,
        })
    }
}
