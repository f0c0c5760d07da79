//! Pivots, which turn dimensions of a finished answer into columns.

use std::collections::BTreeMap;

use super::scene::Scene;
use super::{Column, Plan, PlanError, Role};
use crate::query::Limits;
use crate::view::same;

/// The indices of columns in a pivot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pivot {
    /// The dimensions that become columns.
    keys: Vec<usize>,
    /// The dimensions that remain.
    rows: Vec<usize>,
    /// The measures, as indices of columns.
    values: Vec<usize>,
}

/// An answer in pivoted form.
#[derive(Debug, Clone, PartialEq)]
pub struct Pivoted<V> {
    /// The columns: the remaining dimensions, then `<value>_<measure>` in the order of values.
    pub columns: Vec<Column>,
    /// The index of the statement's column that each column comes from.
    pub sources: Vec<usize>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<V>>,
}

impl Pivot {
    pub(super) fn of(scene: &Scene<'_>) -> Result<Option<Self>, PlanError> {
        let query = scene.query;
        if query.pivot_on.is_empty() {
            return Ok(None);
        }
        if query.totals {
            return Err(PlanError::pivot("`totals` and `pivot_on` exclude each other"));
        }
        if query.measures.is_empty() {
            return Err(PlanError::pivot("a pivot needs a measure"));
        }
        let keys = Self::keys(scene);
        let dimensions = query.dimensions.len();
        Ok(Some(Self {
            rows: (0..dimensions).filter(|place| !keys.contains(place)).collect(),
            values: (dimensions..dimensions + query.measures.len()).collect(),
            keys,
        }))
    }

    /// Returns the indices of the dimensions that become columns.
    pub(super) fn keys(scene: &Scene<'_>) -> Vec<usize> {
        let query = scene.query;
        let find = |name: &String| {
            let mut dimensions = query.dimensions.iter();
            dimensions.position(|dimension| same(&dimension.name, name))
        };
        query.pivot_on.iter().filter_map(find).collect()
    }
}

impl Plan {
    /// Returns true if the rows must be pivoted by [`Plan::pivot`].
    pub fn is_pivot(&self) -> bool {
        self.pivot.is_some()
    }

    /// Pivots the rows of the statement, whose last column holds the position at which a row's values become columns.
    /// `text` converts a value to part of a column's name, `place` reads the last column.
    ///
    /// # Errors
    /// The number of columns, if it exceeds [`Limits::PIVOT_COLUMNS`].
    pub fn pivot<V: Clone + PartialEq>(
        &self,
        rows: &[Vec<V>],
        null: &V,
        text: impl Fn(&V) -> String,
        place: impl Fn(&V) -> u64,
    ) -> Result<Pivoted<V>, usize> {
        let Some(pivot) = &self.pivot else {
            return Ok(Pivoted {
                columns: self.columns.clone(),
                sources: (0..self.columns.len()).collect(),
                rows: rows.to_vec(),
            });
        };
        let pick = |row: &[V], places: &[usize]| -> Vec<V> {
            places
                .iter()
                .filter_map(|place| row.get(*place))
                .cloned()
                .collect()
        };
        let place = |row: &[V]| row.last().map(&place).unwrap_or_default();
        let mut groups: BTreeMap<u64, String> = BTreeMap::new();
        for row in rows {
            groups.entry(place(row)).or_insert_with(|| {
                let parts: Vec<String> = pick(row, &pivot.keys).iter().map(&text).collect();
                parts.join("_")
            });
        }
        let width = groups.len() * pivot.values.len();
        if width > Limits::PIVOT_COLUMNS {
            return Err(width);
        }
        let at: BTreeMap<u64, usize> = groups
            .keys()
            .enumerate()
            .map(|(at, place)| (*place, at))
            .collect();
        let mut found: Vec<Vec<V>> = Vec::new();
        for row in rows {
            let key = pick(row, &pivot.rows);
            // Rows of one key follow each other.
            if found
                .last()
                .is_none_or(|last| last.get(..key.len()) != Some(&key))
            {
                let mut begun = key.clone();
                begun.resize(key.len() + width, null.clone());
                found.push(begun);
            }
            let first = key.len() + at.get(&place(row)).copied().unwrap_or_default() * pivot.values.len();
            if let Some(cells) = found.last_mut().and_then(|last| last.get_mut(first..)) {
                for (cell, value) in cells.iter_mut().zip(pick(row, &pivot.values)) {
                    *cell = value;
                }
            }
        }
        let values = std::iter::repeat_n(&pivot.values, groups.len()).flatten();
        Ok(Pivoted {
            sources: pivot.rows.iter().chain(values).copied().collect(),
            columns: self.pivoted_columns(pivot, groups.values()),
            rows: found,
        })
    }

    fn pivoted_columns<'n>(&self, pivot: &Pivot, values: impl Iterator<Item = &'n String>) -> Vec<Column> {
        let column = |place: &usize| self.columns.get(*place).cloned();
        let mut columns: Vec<Column> = pivot.rows.iter().filter_map(column).collect();
        for value in values {
            for measure in pivot.values.iter().filter_map(column) {
                columns.push(Column {
                    name: format!("{value}_{}", measure.name),
                    display_name: format!("{value} {}", measure.display_name),
                    role: Role::Measure,
                    ..measure
                });
            }
        }
        columns
    }
}
