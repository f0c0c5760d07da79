//! Joining of base and comparison, and adding of groups without rows.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::groups::{Groups, Level};
use super::side::{Cut, Side};
use super::{PlanError, Planner, clock};
use crate::query::Filter;
use crate::sql::{Expr, Infix, JoinKind, Relation, Select};

impl Planner<'_> {
    /// Joins the comparison to the base; values that a side lacks are NULL (Q8).
    pub(super) fn joined(
        &mut self,
        base: Groups,
        comparison: Groups,
        cuts: &[Cut],
    ) -> Result<Groups, PlanError> {
        let comparison = self.paired(comparison, cuts)?;
        Ok(self.met(base, comparison, cuts.len()))
    }

    /// Joins the groups of two statements fully, with all columns of both and the dimensions once.
    fn met(&mut self, first: Groups, second: Groups, cuts: usize) -> Groups {
        let (left, right) = (self.fresh("left"), self.fresh("right"));
        let on = self.same(&left, &right, cuts);
        let kind = if on.is_some() {
            JoinKind::Full
        } else {
            JoinKind::Cross
        };
        let relation =
            |groups: &Groups, name: &String| Relation::Select(Box::new(groups.select()), name.clone());
        let mut select = Select::from(relation(&first, &left).join(kind, relation(&second, &right), on));
        let mut columns = Vec::new();
        for column in first.columns.iter().take(cuts) {
            let value = Expr::of(&left, column).or(Expr::of(&right, column));
            select = select.column(value, column);
            columns.push(column.clone());
        }
        for (groups, name) in [(&first, &left), (&second, &right)] {
            for column in groups.columns.iter().skip(cuts) {
                select = select.column(Expr::of(name, column), column);
                columns.push(column.clone());
            }
        }
        Groups {
            name: self.with("sides", select),
            columns,
        }
    }

    /// Replaces the comparison's buckets by the base's buckets at the same position. Buckets without a partner are
    /// dropped.
    fn paired(&mut self, comparison: Groups, cuts: &[Cut]) -> Result<Groups, PlanError> {
        let mut groups = comparison;
        for (place, cut) in cuts.iter().enumerate() {
            if !self.scene.is_paired(*cut) {
                continue;
            }
            let pairs = self.scene.pairs(*cut)?;
            let dimension = self.scene.names.dimension(place);
            let mut select = Select::default();
            let partners = self.fresh("pairs");
            let own = self.fresh("own");
            let from = Relation::Select(Box::new(groups.select()), own.clone());
            let (to, of) = (
                self.scene.names.relation("b", 0),
                self.scene.names.relation("c", 0),
            );
            for column in &groups.columns {
                let value = match *column == dimension {
                    true if pairs.is_empty() => Expr::NULL,
                    true => Expr::of(&partners, &to),
                    false => Expr::of(&own, column),
                };
                select = select.column(value, column);
            }
            if pairs.is_empty() {
                select.from = Some(from);
                select = select.only(Expr::FALSE);
            } else {
                let rows = pairs
                    .iter()
                    .map(|(base, comparison)| vec![self.start(*cut, *base), self.start(*cut, *comparison)]);
                let rows = Relation::Rows(rows.collect(), partners.clone(), vec![to, of.clone()]);
                let on = Expr::of(&own, &dimension).infix(Infix::Equal, Expr::of(&partners, of));
                select.from = Some(from.join(JoinKind::Inner, rows, Some(on)));
            }
            groups.name = self.with("paired", select);
        }
        Ok(groups)
    }

    /// Returns the constant for the first instant of a bucket of a cut.
    pub(super) fn start(&self, cut: Cut, instant: Timestamp) -> Expr {
        let dimension = self.scene.view.dimensions.get(cut.dimension);
        let data_type = dimension.map(|found| found.data_type).unwrap_or_default();
        clock::start(instant, data_type, self.scene.calendar.zone())
    }

    /// Adds the missing buckets of the time range for each combination of the other dimensions (Q10).
    pub(super) fn filled(&mut self, groups: Groups, cuts: &[Cut]) -> Result<Groups, PlanError> {
        let Some(span) = self.scene.base else {
            return Ok(groups);
        };
        let is_time = |cut: &Cut| cut.grain.is_some() && cut.dimension == span.dimension;
        let times: Vec<(usize, Cut)> = cuts
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, cut)| is_time(cut))
            .collect();
        if times.is_empty() {
            return Err(PlanError::no_time_to_fill());
        }
        let tuples = self.tuples(&times)?;
        if tuples.is_empty() {
            return Ok(groups);
        }
        let name = |place: usize| self.scene.names.dimension(place);
        let columns = times.iter().map(|(place, _)| name(*place)).collect();
        let rows = tuples.iter().map(|tuple| {
            let parts = tuple.iter().zip(&times);
            parts
                .map(|(instant, (_, cut))| self.start(*cut, *instant))
                .collect()
        });
        let rows: Vec<Vec<Expr>> = rows.collect();
        let others: Vec<usize> = (0..cuts.len())
            .filter(|place| times.iter().all(|(time, _)| time != place))
            .collect();
        let (buckets, combinations) = (self.fresh("every"), self.fresh("found"));
        let mut relation = Relation::Rows(rows, buckets.clone(), columns);
        if !others.is_empty() {
            let mut found = Select::from(Relation::named(&groups.name));
            found.distinct = true;
            for place in &others {
                found = found.column(
                    Expr::column(self.scene.names.dimension(*place)),
                    self.scene.names.dimension(*place),
                );
            }
            let found = Relation::Select(Box::new(found), combinations.clone());
            relation = relation.join(JoinKind::Cross, found, None);
        }
        let (mut spine, mut columns) = (Select::from(relation), Vec::new());
        for place in 0..cuts.len() {
            let from = if others.contains(&place) {
                &combinations
            } else {
                &buckets
            };
            let name = self.scene.names.dimension(place);
            spine = spine.column(Expr::of(from, &name), &name);
            columns.push(name);
        }
        let name = self.with("spine", spine);
        // A comparison over another dimension has groups outside of the range, which stay.
        Ok(self.met(groups, Groups { name, columns }, cuts.len()))
    }

    /// Returns the combinations of overlapping buckets of several grains in the time range.
    fn tuples(&self, times: &[(usize, Cut)]) -> Result<BTreeSet<Vec<Timestamp>>, PlanError> {
        let Some(span) = self.scene.base else {
            return Ok(BTreeSet::new());
        };
        let mut moments = BTreeSet::new();
        for (_, cut) in times {
            if let Some(grain) = cut.grain {
                moments.extend(self.scene.buckets(span.range, grain)?);
            }
        }
        let mut found = BTreeSet::new();
        for moment in moments {
            let moment = moment.max(span.range.start);
            let starts = times.iter().filter_map(|(_, cut)| {
                let bucket = self.scene.calendar.bucket(moment, cut.grain?)?;
                Some(bucket.start)
            });
            found.insert(starts.collect());
        }
        Ok(found)
    }

    /// Adds the groups of all rows that meet a condition, ignoring the query's own condition.
    pub(super) fn added(
        &mut self,
        groups: Groups,
        filter: &Filter,
        cuts: &[Cut],
    ) -> Result<Groups, PlanError> {
        if cuts.is_empty() {
            return Ok(groups);
        }
        let level = Level {
            cuts,
            filter: Some(filter),
            computed: &[],
        };
        let more = self.aggregates(&level, Side::Base, &BTreeSet::new())?;
        Ok(self.met(groups, more, cuts.len()))
    }
}
