//! Groups of rows with their aggregates: one scan per level and side for all simple measures, joined with measures over
//! smaller groups.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::Bucket;
use super::rows::Wanted;
use super::scene::Scene;
use super::side::{Cut, Side};
use super::{PlanError, Planner};
use crate::query::{ComputedMeasure, Filter};
use crate::sql::{Expr, Infix, JoinKind, Relation, Select};
use crate::view::{Measure, MeasureKind, Uri};

/// The indices of needed measures, by side.
pub(super) type Sides = BTreeMap<Side, BTreeSet<usize>>;

/// The groups to be computed.
pub(super) struct Level<'l> {
    pub(super) cuts: &'l [Cut],
    pub(super) filter: Option<&'l Filter>,
    /// The measures that are computed directly from rows, as indices into the query's measures.
    pub(super) computed: &'l [usize],
}

/// A named subquery with groups, and its columns.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
}

impl Groups {
    /// Returns a statement that reads all columns of the groups.
    pub(super) fn select(&self) -> Select {
        let mut select = Select::from(Relation::named(&self.name));
        for column in &self.columns {
            select = select.column(Expr::column(column), column);
        }
        select.with_a_column()
    }
}

impl<'a> Scene<'a> {
    /// Returns the indices of the measures that a measure is computed from: the required ones, or all simple ones if
    /// none are named.
    pub(super) fn required(&self, measure: &Measure) -> Result<Vec<usize>, PlanError> {
        if measure.kind == MeasureKind::Simple {
            return Ok(Vec::new());
        }
        if measure.requires.is_empty() {
            let all = self.view.measures.iter().enumerate();
            let simple = all.filter(|(_, other)| other.kind == MeasureKind::Simple);
            return Ok(simple.map(|(index, _)| index).collect());
        }
        measure.requires.iter().map(|name| self.measure(name)).collect()
    }

    /// Adds the measures that the needed ones are computed from on the same level.
    pub(super) fn close(&self, sides: &mut Sides) -> Result<(), PlanError> {
        let mut left: Vec<(Side, usize)> = sides
            .iter()
            .flat_map(|(side, measures)| measures.iter().map(|index| (*side, *index)))
            .collect();
        while let Some((side, index)) = left.pop() {
            let Some(measure) = self.view.measures.get(index) else {
                continue;
            };
            let both = match measure.kind {
                MeasureKind::Simple | MeasureKind::Per => continue,
                MeasureKind::TimeComparison if side == Side::Comparison => continue,
                MeasureKind::TimeComparison => &[Side::Base, Side::Comparison][..],
                MeasureKind::Derived | MeasureKind::Window => &[side][..],
            };
            for index in self.required(measure)? {
                for side in both {
                    if sides.entry(*side).or_default().insert(index) {
                        left.push((*side, index));
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> Planner<'a> {
    /// Returns the groups of a level on one side, with its aggregates.
    pub(super) fn aggregates(
        &mut self,
        level: &Level<'_>,
        side: Side,
        measures: &BTreeSet<usize>,
    ) -> Result<Groups, PlanError> {
        let view = self.scene.view;
        let rows = self.rows(&Wanted {
            cuts: level.cuts,
            side,
            filter: level.filter,
            others: self.computed_dimensions(level.computed)?,
        })?;
        let mut select = Select::from(rows.relation_of());
        select.filter.clone_from(&rows.filter);
        select.group_by = level.cuts.len();
        let mut buckets = Vec::new();
        for (place, cut) in level.cuts.iter().enumerate() {
            let bucket = self.bucket(*cut, side, self.cut_value(*cut, &rows));
            select = select.column(bucket.key.clone(), self.scene.names.dimension(place));
            buckets.push(bucket);
        }
        for index in measures {
            if let Some(measure) = view.measures.get(*index).filter(|measure| is_simple(measure)) {
                let name = self.scene.names.measure(side, *index);
                select = select.column(Expr::Foreign(measure.expression.clone()), name);
            }
        }
        for place in level.computed {
            let value = self.computed_from_rows(*place, &rows)?;
            select = select.column(value, self.scene.names.computed(*place));
        }
        let mut columns: Vec<String> = select.columns.iter().map(|(_, name)| name.clone()).collect();
        // Makes groups of what has no aggregate, too.
        select = select.column(Expr::CountAll, self.scene.names.relation("n", 0));
        let mut name = self.with("groups", select);
        if buckets.iter().any(Bucket::is_local) {
            let mut select = Select::from(Relation::named(&name));
            for (place, column) in columns.iter().enumerate() {
                let value = Expr::column(column);
                let value = match buckets.get(place) {
                    Some(bucket) => bucket.start(value),
                    None => value,
                };
                select = select.column(value, column);
            }
            name = self.with("buckets", select);
        }
        for index in measures {
            let measure = view.measures.get(*index);
            if measure.is_some_and(|measure| measure.kind == MeasureKind::Per) {
                let part = self.per(level, side, *index)?;
                (name, columns) = self.beside(&name, columns, level.cuts.len(), &part);
            }
        }
        Ok(Groups { name, columns })
    }

    /// Returns the bucket of a cut for a value.
    fn bucket(&self, cut: Cut, side: Side, value: Expr) -> Bucket {
        let (Some(grain), Some(dimension)) = (cut.grain, self.scene.view.dimensions.get(cut.dimension))
        else {
            return Bucket::whole(value);
        };
        let clock = self.scene.clock(cut.dimension, side);
        Bucket::new(value, dimension.data_type, grain, self.scene.shifts(), &clock)
    }

    /// Returns the groups with a measure that aggregates over smaller groups.
    fn per(&mut self, level: &Level<'_>, side: Side, index: usize) -> Result<Groups, PlanError> {
        let Some(measure) = self.scene.view.measures.get(index) else {
            return Err(PlanError::missing("measure", ""));
        };
        self.deeper()?;
        let mut cuts = level.cuts.to_vec();
        for selector in &measure.per {
            let cut = Cut {
                dimension: self.scene.dimension(&selector.name)?,
                grain: selector.grain,
            };
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
        let required = self.scene.required(measure)?;
        let mut sides = Sides::from([(side, required.iter().copied().collect())]);
        self.scene.close(&mut sides)?;
        if sides.len() > 1 {
            return Err(PlanError::compared_within(&measure.name));
        }
        let inner = Level {
            cuts: &cuts,
            filter: level.filter,
            computed: &[],
        };
        let measures = sides.remove(&side).unwrap_or_default();
        let groups = self.aggregates(&inner, side, &measures)?;
        let sides = Sides::from([(side, measures)]);
        let groups = self.measures(groups, &cuts, &sides)?;
        self.depth -= 1;

        let scope = self.scope(&groups, side, &required);
        let mut select = Select::from(Relation::Select(Box::new(scope), "base".to_owned()));
        let mut columns = Vec::new();
        for place in 0..level.cuts.len() {
            let name = self.scene.names.dimension(place);
            select = select.column(Expr::column(&name), &name);
            columns.push(name);
        }
        select.group_by = level.cuts.len();
        let name = self.scene.names.measure(side, index);
        select = select.column(Expr::Foreign(measure.expression.clone()), &name);
        columns.push(name);
        select = select.column(Expr::CountAll, self.scene.names.relation("n", 0));
        Ok(Groups {
            name: self.with("per", select),
            columns,
        })
    }

    /// Joins further columns to a subquery with the same groups.
    fn beside(
        &mut self,
        name: &str,
        columns: Vec<String>,
        cuts: usize,
        part: &Groups,
    ) -> (String, Vec<String>) {
        let (left, right) = (self.fresh("left"), self.fresh("right"));
        let whole = Select::all_from(Relation::named(name));
        let joined = Select::all_from(Relation::named(&part.name));
        let relation = Relation::Select(Box::new(whole), left.clone());
        let other = Relation::Select(Box::new(joined), right.clone());
        let on = self.same(&left, &right, cuts);
        let kind = if on.is_some() {
            JoinKind::Left
        } else {
            JoinKind::Cross
        };
        let mut select = Select::from(relation.join(kind, other, on));
        for column in &columns {
            select = select.column(Expr::of(&left, column), column);
        }
        let mut columns = columns;
        for column in part.columns.iter().skip(cuts) {
            select = select.column(Expr::of(&right, column), column);
            columns.push(column.clone());
        }
        (self.with("groups", select), columns)
    }

    /// Returns the condition that two relations have the same group, where NULL equals NULL; none without dimensions.
    pub(super) fn same(&self, left: &str, right: &str, cuts: usize) -> Option<Expr> {
        let names = (0..cuts).map(|place| self.scene.names.dimension(place));
        let same = names.map(|name| Expr::of(left, &name).infix(Infix::Same, Expr::of(right, &name)));
        let same: Vec<Expr> = same.collect();
        (!same.is_empty()).then(|| Expr::all(same))
    }

    fn computed_dimensions(&self, computed: &[usize]) -> Result<BTreeSet<usize>, PlanError> {
        let mut found = BTreeSet::new();
        for place in computed {
            if let Some(ComputedMeasure::CountDistinct(name)) = self.compute(*place) {
                found.insert(self.scene.dimension(name)?);
            }
        }
        Ok(found)
    }

    /// Returns how the query computes its measure at an index; none for a measure of the view.
    pub(super) fn compute(&self, place: usize) -> Option<&'a ComputedMeasure> {
        self.scene.query.measures.get(place)?.compute.as_ref()
    }

    fn computed_from_rows(&self, place: usize, rows: &super::rows::Rows) -> Result<Expr, PlanError> {
        Ok(match self.compute(place) {
            Some(ComputedMeasure::Count) => Expr::CountAll,
            Some(ComputedMeasure::CountDistinct(name)) => {
                self.count_distinct(self.scene.dimension(name)?, rows)
            }
            Some(ComputedMeasure::Uri(name)) => {
                let dimension = self.scene.view.dimension(name);
                match dimension.and_then(|dimension| dimension.uri.as_ref()) {
                    // Of the links of a group's rows, one that does not depend on their order.
                    Some(Uri::Expression(text)) => Expr::Call("min", vec![Expr::Foreign(text.clone())]),
                    _ => Expr::NULL,
                }
            }
            _ => Expr::NULL,
        })
    }
}

pub(super) fn is_simple(measure: &Measure) -> bool {
    measure.kind == MeasureKind::Simple
}
