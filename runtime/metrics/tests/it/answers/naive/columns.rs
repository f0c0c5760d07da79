//! Q3, Q8 and Q12: columns that the query computes, and totals.

use watershed_metrics::query::ComputedMeasure;

use super::arithmetic::{apply, count, relative, share};
use super::{Column, Context, Key, Level, Naive, TAG};
use crate::answers::cell::Cell;
use crate::answers::world::{Meaning, Operation};

impl<'w> Naive<'w> {
    pub(super) fn column(&self, column: &Column, level: &Level<'w>, key: &Key) -> Cell {
        match column {
            Column::Dimension(place) => key[*place].clone(),
            Column::Measure(index) => self.of(level, key, 0, *index),
            Column::Computed(place) => self.computed(level, key, *place),
        }
    }

    pub(super) fn computed(&self, level: &Level<'w>, key: &Key, place: usize) -> Cell {
        let measure = |name: &str, side| self.of(level, key, side, self.measure(name));
        match self.query.measures[place]
            .compute
            .as_ref()
            .expect("a computation")
        {
            ComputedMeasure::Count => match level.members(key, 0) {
                Some(members) => count(members.len()),
                None => Cell::Null,
            },
            ComputedMeasure::CountDistinct(name) => match level.members(key, 0) {
                Some(members) => count(self.distinct(members, self.dimension(name))),
                None => Cell::Null,
            },
            ComputedMeasure::ComparisonValue(name) => measure(name, 1),
            ComputedMeasure::ComparisonDelta(name) => {
                apply(Operation::Minus, &measure(name, 0), &measure(name, 1))
            }
            ComputedMeasure::ComparisonRatio(name) => {
                let delta = apply(Operation::Minus, &measure(name, 0), &measure(name, 1));
                relative(&delta, &measure(name, 1))
            }
            ComputedMeasure::PercentOfTotal(name) => {
                let index = self.measure(name);
                share(&measure(name, 0), &self.total(&self.totals(), index, 0))
            }
            ComputedMeasure::ComparisonTime(name) => self.partner(level, key, name),
            ComputedMeasure::Uri(_) => Cell::Null,
        }
    }

    pub(super) fn partner(&self, level: &Level<'w>, key: &Key, name: &str) -> Cell {
        let dimension = self.dimension(name);
        let place = level
            .cuts
            .iter()
            .position(|cut| cut.dimension == dimension)
            .expect("a column");
        let cut = level.cuts[place];
        let (Some(base), Some(comparison)) = (self.base, self.comparison) else {
            return Cell::Null;
        };
        let Some(grain) = cut
            .grain
            .filter(|_| base.dimension == dimension && comparison.dimension == dimension)
        else {
            return key[place].clone();
        };
        let own = self.buckets(cut, base, grain);
        let found = own.iter().position(|bucket| *bucket == key[place]);
        let partners = self.buckets(cut, comparison, grain);
        found
            .and_then(|place| partners.get(place).cloned())
            .unwrap_or(Cell::Null)
    }

    pub(super) fn distinct(&self, members: &[Context<'w>], dimension: usize) -> usize {
        let mut found: Vec<Cell> = Vec::new();
        for context in members {
            let contexts = match (dimension, context.element) {
                (TAG, None) => self.each_element(context),
                _ => vec![context.clone()],
            };
            for value in contexts.iter().map(|context| self.value(context, dimension)) {
                if !value.is_null() && !found.contains(&value) {
                    found.push(value);
                }
            }
        }
        found.len()
    }

    /// Q12: from rows: those that count in some group, each once.
    pub(super) fn totals(&self) -> Level<'w> {
        let mut level = self.level_of(Vec::new(), self.has_tag());
        for side in &mut level.sides {
            for (_, members) in side {
                let mut seen = Vec::new();
                members.retain(|context| {
                    let new = !seen.contains(&context.place);
                    seen.push(context.place);
                    new
                });
                for context in members {
                    context.element = None;
                }
            }
        }
        level
    }

    pub(super) fn total(&self, totals: &Level<'w>, index: usize, side: usize) -> Cell {
        if self.has_window(index) {
            return Cell::Null;
        }
        self.of(totals, &Vec::new(), side, index)
    }

    pub(super) fn has_window(&self, index: usize) -> bool {
        match self.world.meanings[index] {
            Meaning::Simple(_) => false,
            Meaning::Window(..) => true,
            Meaning::Per(_, a) => self.has_window(a),
            Meaning::Derived(_, a, b) | Meaning::Compared(_, a, b) => {
                self.has_window(a) || self.has_window(b)
            }
        }
    }

    pub(super) fn computed_total(&self, totals: &Level<'w>, place: usize) -> Cell {
        let total = |name: &str, side| self.total(totals, self.measure(name), side);
        match self.query.measures[place]
            .compute
            .as_ref()
            .expect("a computation")
        {
            ComputedMeasure::ComparisonValue(name) => total(name, 1),
            ComputedMeasure::ComparisonDelta(name) => {
                apply(Operation::Minus, &total(name, 0), &total(name, 1))
            }
            ComputedMeasure::ComparisonRatio(name) => relative(
                &apply(Operation::Minus, &total(name, 0), &total(name, 1)),
                &total(name, 1),
            ),
            ComputedMeasure::PercentOfTotal(name) => share(&total(name, 0), &total(name, 0)),
            ComputedMeasure::ComparisonTime(_) | ComputedMeasure::Uri(_) => Cell::Null,
            _ => self.computed(totals, &Vec::new(), place),
        }
    }
}
