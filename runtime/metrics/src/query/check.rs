//! Checks of a query against its view: names, grains and types.

use std::collections::BTreeSet;

use super::error::{At, Code, QueryError, choice};
use super::names;
use super::operands::Operands;
use super::{Comparison, ComputedMeasure, Dimension, Limits, Query, Range, Spine};
use crate::view::{MeasureKind, View, same};

/// Checks that a query's fields exist in its view, and that grains and types of values are allowed (Q1 to Q6).
///
/// # Errors
/// The first refusal, with its place in the query's JSON form.
pub fn check(query: &Query, view: &View) -> Result<(), QueryError> {
    let check = Check { query, view };
    check.sizes()?;
    check.ranges()?;
    check.dimensions()?;
    check.measures()?;
    check.columns()?;
    check.filters()?;
    check.forms()
}

struct Check<'q> {
    query: &'q Query,
    view: &'q View,
}

impl Check<'_> {
    fn sizes(&self) -> Result<(), QueryError> {
        let fields = self.query.dimensions.len() + self.query.measures.len();
        if fields > Limits::FIELDS {
            let message = format!(
                "{fields} dimensions and measures are more than {}",
                Limits::FIELDS
            );
            return Err(At::Query.error(Code::TooLarge, message));
        }
        Ok(())
    }

    fn ranges(&self) -> Result<(), QueryError> {
        let at = At::Query.key("time_range");
        if let Some(range) = &self.query.time_range {
            self.range(range, &at)?;
        }
        let at = At::Query.key("comparison_time_range");
        let Some(comparison) = &self.query.comparison_time_range else {
            return Ok(());
        };
        if self.query.time_range.is_none() {
            let message = "a comparison needs a `time_range` to compare";
            return Err(at.error(Code::ConflictingKeys, message));
        }
        match comparison {
            Comparison::Range(range) => self.range(range, &at),
            Comparison::Offset(_) => Ok(()),
        }
    }

    fn range(&self, range: &Range, at: &At<'_>) -> Result<(), QueryError> {
        let name = range
            .time_dimension
            .as_deref()
            .unwrap_or(&self.view.time_dimension);
        if name.is_empty() {
            let message = "the view has no time dimension: name one with `time_dimension`";
            return Err(at.error(Code::MissingKey, message));
        }
        let at = match range.time_dimension {
            Some(_) => at.key("time_dimension"),
            None => *at,
        };
        if self.dimension(name, &at)?.data_type.is_time() {
            Ok(())
        } else {
            Err(at.error(Code::NotATime, format!("\"{name}\" is no time")))
        }
    }

    fn dimension(&self, name: &str, at: &At<'_>) -> Result<&crate::view::Dimension, QueryError> {
        names::dimension(self.view, name, at)
    }

    fn dimensions(&self) -> Result<(), QueryError> {
        let list = At::Query.key("dimensions");
        for (index, dimension) in self.query.dimensions.iter().enumerate() {
            self.cut(dimension, &list.item(index))?;
        }
        Ok(())
    }

    /// Checks a dimension of the query: only times have a grain, and it must not be below the smallest.
    fn cut(&self, dimension: &Dimension, at: &At<'_>) -> Result<(), QueryError> {
        let found = self.dimension(&dimension.of, at)?;
        if !same(&dimension.name, &dimension.of) {
            self.free(&dimension.name, at)?;
        }
        let Some(grain) = dimension.grain else {
            return Ok(());
        };
        if !found.data_type.is_time() {
            let message = format!("\"{}\" is no time, so it has no grains", found.name);
            return Err(at.error(Code::NotATime, message));
        }
        match self.view.smallest_grain(found) {
            Some(smallest) if grain < smallest => {
                let message = format!("\"{}\" has no grain below {smallest:?}", found.name).to_lowercase();
                Err(at.error(Code::InvalidGrain, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that no field of the view has the name of a computed column.
    fn free(&self, name: &str, at: &At<'_>) -> Result<(), QueryError> {
        if self.view.field_names().any(|field| same(field, name)) {
            let message = format!("\"{name}\" is a field of the view, so nothing else can be named so");
            return Err(at.error(Code::DuplicateName, message));
        }
        Ok(())
    }

    fn measures(&self) -> Result<(), QueryError> {
        let list = At::Query.key("measures");
        for (index, measure) in self.query.measures.iter().enumerate() {
            let at = list.item(index);
            match &measure.compute {
                None => self.measure(&measure.name, &at)?,
                Some(compute) => {
                    self.free(&measure.name, &at)?;
                    self.computed(compute, &at.key("compute"))?;
                }
            }
        }
        Ok(())
    }

    /// Checks a measure of the view and all measures that it requires.
    fn measure(&self, name: &str, at: &At<'_>) -> Result<(), QueryError> {
        names::measure(self.view, name, at)?;
        let mut seen = BTreeSet::new();
        let mut left = vec![name.to_owned()];
        while let Some(name) = left.pop() {
            if !seen.insert(name.to_lowercase()) {
                continue;
            }
            // What a measure requires may be hidden from the viewer: its author exposed it.
            let Some(found) = self.view.measure(&name) else {
                let message = format!("the view has no measure \"{name}\", which is required");
                return Err(at.error(Code::UnknownField, message));
            };
            for selector in &found.order {
                let has = |dimension: &&Dimension| {
                    same(&dimension.of, &selector.name)
                        && (selector.grain.is_none() || dimension.grain == selector.grain)
                };
                if self.query.dimensions.iter().find(has).is_none() {
                    let grain = selector
                        .grain
                        .map(|grain| format!(" by {grain:?}").to_lowercase());
                    let message = format!(
                        "\"{}\" needs the dimension \"{}\"{} in the query",
                        found.name,
                        selector.name,
                        grain.unwrap_or_default()
                    );
                    return Err(at.error(Code::DimensionRequired, message));
                }
            }
            if found.kind == MeasureKind::TimeComparison && self.query.comparison_time_range.is_none() {
                let message = format!("\"{}\" needs a `comparison_time_range`", found.name);
                return Err(at.error(Code::MissingKey, message));
            }
            left.extend(found.requires.iter().cloned());
        }
        Ok(())
    }

    fn computed(&self, compute: &ComputedMeasure, at: &At<'_>) -> Result<(), QueryError> {
        match compute {
            ComputedMeasure::Count => Ok(()),
            ComputedMeasure::CountDistinct(name) => self.dimension(name, at).map(drop),
            ComputedMeasure::ComparisonValue(name)
            | ComputedMeasure::ComparisonDelta(name)
            | ComputedMeasure::ComparisonRatio(name) => {
                self.compared(at)?;
                self.measure(name, at)
            }
            ComputedMeasure::ComparisonTime(name) => {
                self.compared(at)?;
                self.selected(name, at)
            }
            ComputedMeasure::PercentOfTotal(name) => {
                self.measure(name, at)?;
                let windows = |name: &str| {
                    let found = self.view.measure(name);
                    found.is_some_and(|found| found.kind == MeasureKind::Window)
                };
                if windows(name) {
                    let message = format!("\"{name}\" is computed over groups, so it has no total");
                    return Err(at.error(Code::ConflictingKeys, message));
                }
                Ok(())
            }
            ComputedMeasure::Uri(name) => {
                self.selected(name, at)?;
                if self.dimension(name, at)?.uri.is_some() {
                    Ok(())
                } else {
                    Err(at.error(Code::UnknownField, format!("\"{name}\" has no links")))
                }
            }
        }
    }

    fn compared(&self, at: &At<'_>) -> Result<(), QueryError> {
        match self.query.comparison_time_range {
            Some(_) => Ok(()),
            None => Err(at.error(Code::MissingKey, "`comparison_time_range` is missing")),
        }
    }

    fn selected(&self, name: &str, at: &At<'_>) -> Result<(), QueryError> {
        self.dimension(name, at)?;
        let mut dimensions = self.query.dimensions.iter();
        if dimensions.any(|dimension| same(&dimension.of, name)) {
            return Ok(());
        }
        let message = format!("\"{name}\" is no dimension of the query");
        Err(at.error(Code::DimensionRequired, message))
    }

    /// Returns the names of the answer's columns before a pivot.
    fn names(&self) -> impl Iterator<Item = &str> {
        let rows = self.query.rows.then(|| self.view.visible_dimensions());
        let dimensions = self
            .query
            .dimensions
            .iter()
            .map(|dimension| dimension.name.as_str());
        let measures = self.query.measures.iter().map(|measure| measure.name.as_str());
        dimensions.chain(measures).chain(rows.into_iter().flatten())
    }

    fn columns(&self) -> Result<(), QueryError> {
        let mut seen = BTreeSet::new();
        for name in self.names() {
            if !seen.insert(name.to_lowercase()) {
                let message = format!("two columns are named \"{name}\"");
                return Err(At::Query.error(Code::DuplicateName, message));
            }
        }
        let sort = At::Query.key("sort");
        for (index, column) in self.query.sort.iter().enumerate() {
            if !self.names().any(|name| same(name, &column.name)) {
                let message = format!("\"{}\" is no column of the answer", column.name);
                let at = sort.item(index);
                return Err(at.unknown(Code::UnknownField, message, &column.name, self.names()));
            }
        }
        let pivot = At::Query.key("pivot_on");
        for (index, name) in self.query.pivot_on.iter().enumerate() {
            let dimensions = || {
                self.query
                    .dimensions
                    .iter()
                    .map(|dimension| dimension.name.as_str())
            };
            if !dimensions().any(|dimension| same(dimension, name)) {
                let message = format!("\"{name}\" is no dimension of the query");
                return Err(pivot
                    .item(index)
                    .unknown(Code::UnknownField, message, name, dimensions()));
            }
        }
        Ok(())
    }

    fn filters(&self) -> Result<(), QueryError> {
        let mut operands = Operands::new(self.query, self.view);
        if let Some(filter) = &self.query.r#where {
            operands.rows(filter, &At::Query.key("where"))?;
        }
        if let Some(Spine::Where(filter)) = &self.query.spine {
            operands.rows(filter, &At::Query.key("spine").key("where"))?;
        }
        if let Some(filter) = &self.query.having {
            operands.groups(filter, &At::Query.key("having"))?;
        }
        Ok(())
    }

    /// Checks that no keys of the query exclude each other.
    fn forms(&self) -> Result<(), QueryError> {
        let query = self.query;
        if query.rows {
            let others = !query.dimensions.is_empty()
                || !query.measures.is_empty()
                || query.having.is_some()
                || query.spine.is_some()
                || query.totals
                || !query.pivot_on.is_empty()
                || query.comparison_time_range.is_some();
            if others {
                let message =
                    "`rows` shows rows as they are: no fields, groups, comparison, totals or pivots";
                return Err(At::Query.key("rows").error(Code::ConflictingKeys, message));
            }
        } else if query.dimensions.is_empty() && query.measures.is_empty() {
            let message = "a dimension, a measure or `rows: true` is needed";
            let known: Vec<&str> = self
                .view
                .visible_measures()
                .chain(self.view.visible_dimensions())
                .collect();
            return Err(QueryError {
                hint: choice(&known),
                ..At::Query.error(Code::MissingKey, message)
            });
        }
        if query.spine == Some(Spine::Time) {
            let at = At::Query.key("spine");
            if query.time_range.is_none() {
                return Err(at.error(Code::MissingKey, "a spine of times needs a `time_range`"));
            }
            if !query.dimensions.iter().any(|dimension| dimension.grain.is_some()) {
                let message = "a spine of times needs a time dimension with a grain";
                return Err(at.error(Code::DimensionRequired, message));
            }
        }
        Ok(())
    }
}
