//! Columns that the query computes from measures.

use watershed_dialect::{Integer, SqlType};

use super::groups::Groups;
use super::measures::finite;
use super::side::{Cut, Side};
use super::{PlanError, Planner};
use crate::query::ComputedMeasure;
use crate::sql::{Constant, Expr, Infix, JoinKind, Relation, Select};
use crate::view::same;

impl Planner<'_> {
    /// Adds a column to the groups for each value that the query computes from measures.
    pub(super) fn computed(&mut self, groups: Groups, cuts: &[Cut]) -> Result<Groups, PlanError> {
        let query = self.scene.query;
        let places: Vec<usize> = (0..query.measures.len())
            .filter(|place| self.compute(*place).is_some() && !self.is_counted(*place))
            .collect();
        if places.is_empty() {
            return Ok(groups);
        }
        let own = self.fresh("own");
        let mut relation = Relation::Select(Box::new(groups.select()), own.clone());
        let totals = self.fresh("totals");
        if places
            .iter()
            .any(|place| matches!(self.compute(*place), Some(ComputedMeasure::PercentOfTotal(_))))
        {
            let found = self.totals()?;
            let select = Select::all_from(Relation::named(&found.name));
            let select = Relation::Select(Box::new(select), totals.clone());
            relation = relation.join(JoinKind::Cross, select, None);
        }
        let mut select = Select::default();
        for column in &groups.columns {
            select = select.column(Expr::of(&own, column), column);
        }
        let mut columns = groups.columns.clone();
        for place in places {
            let name = self.scene.names.computed(place);
            let value;
            (value, relation) = self.computed_value(place, cuts, relation, (&own, &totals))?;
            select = select.column(value, &name);
            columns.push(name);
        }
        select.from = Some(relation);
        Ok(Groups {
            name: self.with("computed", select),
            columns,
        })
    }

    pub(super) fn computed_value(
        &mut self,
        place: usize,
        cuts: &[Cut],
        relation: Relation,
        (own, totals): (&str, &str),
    ) -> Result<(Expr, Relation), PlanError> {
        let measure = |side, name: &str| -> Result<Expr, PlanError> {
            let index = self.scene.measure(name)?;
            Ok(Expr::of(own, self.scene.names.measure(side, index)))
        };
        let value = match self.compute(place) {
            Some(ComputedMeasure::ComparisonValue(name)) => measure(Side::Comparison, name)?,
            Some(ComputedMeasure::ComparisonDelta(name)) => {
                self.delta(name, measure(Side::Base, name)?, measure(Side::Comparison, name)?)
            }
            Some(ComputedMeasure::ComparisonRatio(name)) => {
                let compared = measure(Side::Comparison, name)?;
                let delta = self.delta(name, measure(Side::Base, name)?, compared.clone());
                relative(delta, compared)
            }
            Some(ComputedMeasure::PercentOfTotal(name)) => {
                let index = self.scene.measure(name)?;
                let total = Expr::of(totals, self.scene.names.total(Side::Base, index));
                share(measure(Side::Base, name)?, total)
            }
            Some(ComputedMeasure::ComparisonTime(name)) => {
                return self.comparison_time(name, cuts, relation, own);
            }
            Some(ComputedMeasure::Uri(name)) => {
                let place = self.cut_of(name)?;
                Expr::of(own, self.scene.names.dimension(place)).cast(SqlType::Text)
            }
            _ => Expr::NULL,
        };
        Ok((value, relation))
    }

    /// Returns a difference in a type that has negative numbers.
    pub(super) fn delta(&self, name: &str, base: Expr, comparison: Expr) -> Expr {
        let measure = self.scene.view.measure(name);
        let is_unsigned =
            measure.is_some_and(|found| found.engine_type.to_ascii_uppercase().starts_with('U'));
        if !is_unsigned {
            return base.infix(Infix::Minus, comparison);
        }
        let signed = |value: Expr| value.cast(Integer::WIDEST.into());
        signed(base).infix(Infix::Minus, signed(comparison))
    }

    /// Returns the comparison's bucket that is paired with a bucket, or the value itself if buckets are not paired,
    /// with the relation to read it from.
    pub(super) fn comparison_time(
        &mut self,
        name: &str,
        cuts: &[Cut],
        relation: Relation,
        own: &str,
    ) -> Result<(Expr, Relation), PlanError> {
        let place = self.cut_of(name)?;
        let dimension = Expr::of(own, self.scene.names.dimension(place));
        let Some(cut) = cuts.get(place).filter(|cut| self.scene.is_paired(**cut)) else {
            return Ok((dimension, relation));
        };
        let pairs = self.scene.pairs(*cut)?;
        if pairs.is_empty() {
            return Ok((Expr::NULL, relation));
        }
        let partners = self.fresh("partners");
        let (base, comparison) = (
            self.scene.names.relation("b", 0),
            self.scene.names.relation("c", 0),
        );
        let rows = pairs
            .iter()
            .map(|(base, comparison)| vec![self.start(*cut, *base), self.start(*cut, *comparison)]);
        let columns = vec![base.clone(), comparison.clone()];
        let rows = Relation::Rows(rows.collect(), partners.clone(), columns);
        let on = dimension.infix(Infix::Equal, Expr::of(&partners, base));
        let relation = relation.join(JoinKind::Left, rows, Some(on));
        Ok((Expr::of(&partners, comparison), relation))
    }

    /// Returns the index of a dimension among those of the query. Names of columns take precedence over names of
    /// dimensions.
    pub(super) fn cut_of(&self, name: &str) -> Result<usize, PlanError> {
        let dimensions = &self.scene.query.dimensions;
        dimensions
            .iter()
            .position(|dimension| same(&dimension.name, name))
            .or_else(|| dimensions.iter().position(|dimension| same(&dimension.of, name)))
            .ok_or_else(|| PlanError::not_grouped(name))
    }
}

/// Returns a difference relative to the value that it is a difference to: a rise is positive, whatever the value's sign.
pub(super) fn relative(delta: Expr, compared: Expr) -> Expr {
    share(delta, Expr::Call("abs", vec![compared.cast(SqlType::Double)]))
}

/// Returns a part as a share of a whole; NULL if the whole is zero.
pub(super) fn share(part: Expr, whole: Expr) -> Expr {
    let zero = Expr::Constant(Constant::Integer(0));
    let whole = Expr::Call("nullif", vec![whole, zero]);
    let share = part
        .cast(SqlType::Double)
        .infix(Infix::Divided, whole.cast(SqlType::Double));
    finite(share)
}
