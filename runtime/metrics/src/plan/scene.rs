//! The inputs of a plan: the view, its viewer, and the query with its time ranges resolved.

use jiff::Timestamp;
use watershed_schedule::Grain;

use super::PlanError;
use super::bounds::{Bounds, Extent};
use super::clock::{Clock, Shifts};
use super::names::Names;
use super::side::{Cut, Side, Span};
use crate::calendar::{Calendar, Range};
use crate::policy::Policy;
use crate::query::{self, Comparison, Limits, Query};
use crate::range::{Moments, Resolved};
use crate::view::{DataType, Dimension, View};

/// The inputs that all parts of a plan share.
pub(super) struct Scene<'a> {
    pub(super) view: &'a View,
    pub(super) policy: &'a Policy,
    pub(super) query: &'a Query,
    pub(super) bounds: &'a Bounds,
    pub(super) calendar: Calendar,
    pub(super) names: Names,
    pub(super) base: Option<Span>,
    pub(super) comparison: Option<Span>,
    pub(super) cuts: Vec<Cut>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        view: &'a View,
        policy: &'a Policy,
        query: &'a Query,
        bounds: &'a Bounds,
    ) -> Result<Self, PlanError> {
        let calendar = Calendar::new(query.time_zone.clone())
            .weeks_from(view.first_day_of_week)
            .years_from(view.first_month_of_year);
        let mut scene = Self {
            view,
            policy,
            query,
            bounds,
            calendar,
            names: Names::of(view),
            base: None,
            comparison: None,
            cuts: Vec::new(),
        };
        for dimension in &query.dimensions {
            scene.cuts.push(Cut {
                dimension: scene.dimension(&dimension.of)?,
                grain: dimension.grain,
            });
        }
        scene.resolve()?;
        Ok(scene)
    }

    fn resolve(&mut self) -> Result<(), PlanError> {
        let Some(asked) = &self.query.time_range else {
            return Ok(());
        };
        let Some((dimension, base)) = self.range(asked, "time_range")? else {
            return match self.query.comparison_time_range {
                None => Ok(()),
                Some(_) => Err(PlanError::unbounded()),
            };
        };
        self.base = Some(span(dimension, &base, "time_range")?);
        let at = "comparison_time_range";
        self.comparison = match &self.query.comparison_time_range {
            None => None,
            Some(Comparison::Offset(offset)) => {
                let moved = offset.of(&base).map_err(|error| PlanError::range(at, error))?;
                Some(span(dimension, &moved, at)?)
            }
            Some(Comparison::Range(range)) => match self.range(range, at)? {
                Some((dimension, range)) => Some(span(dimension, &range, at)?),
                None => return Err(PlanError::unbounded()),
            },
        };
        Ok(())
    }

    fn range(&self, asked: &query::Range, at: &'static str) -> Result<Option<(usize, Resolved)>, PlanError> {
        let name = asked.time_dimension.as_deref();
        let index = self.dimension(name.unwrap_or(&self.view.time_dimension))?;
        let Some(dimension) = self.view.dimensions.get(index) else {
            return Ok(None);
        };
        // Where the viewer sees no row with a time, no range holds one: any will do.
        let (extent, now) = (self.extent(dimension), self.bounds.now);
        let moments = Moments {
            now,
            earliest: extent.earliest.or(Some(now)),
            latest: extent.latest.or(Some(now)),
            watermark: extent.watermark.or(extent.latest).or(Some(now)),
        };
        let moments = match self.bounds.executed_at {
            Some(time) => moments.executed_at(time),
            None => moments,
        };
        let smallest = self.view.smallest_grain(dimension).unwrap_or(Grain::Second);
        let resolved = asked.range.resolve(&moments, &self.calendar, smallest);
        let resolved = resolved.map_err(|error| PlanError::range(at, error))?;
        Ok(resolved.map(|resolved| (index, resolved)))
    }

    /// Returns the extent of a time dimension. Dates stand for their first instant in the query's zone.
    pub(super) fn extent(&self, dimension: &Dimension) -> Extent {
        let known = self.bounds.times.get(&dimension.name.to_lowercase());
        let extent = known.copied().unwrap_or_default();
        if dimension.data_type != DataType::Date {
            return extent;
        }
        let first = |time: Timestamp| {
            let date = jiff::tz::TimeZone::UTC.to_datetime(time).date();
            self.calendar.beginning(date)
        };
        Extent {
            earliest: extent.earliest.and_then(first),
            latest: extent.latest.and_then(first),
            watermark: extent.watermark.and_then(first),
        }
    }

    /// Returns the index of a dimension that must exist.
    pub(super) fn dimension(&self, name: &str) -> Result<usize, PlanError> {
        self.view
            .dimension_index(name)
            .ok_or_else(|| PlanError::missing("dimension", name))
    }

    /// Returns the index of a measure that must exist.
    pub(super) fn measure(&self, name: &str) -> Result<usize, PlanError> {
        self.view
            .measure_index(name)
            .ok_or_else(|| PlanError::missing("measure", name))
    }

    /// Returns the time range of a side, if it has one.
    pub(super) fn span(&self, side: Side) -> Option<Span> {
        match side {
            Side::Base => self.base,
            Side::Comparison => self.comparison,
        }
    }

    /// Returns the clock offsets that a dimension's times on a side may have.
    pub(super) fn clock(&self, dimension: usize, side: Side) -> Clock {
        let zone = self.calendar.zone();
        match self.span(side) {
            Some(span) if span.dimension == dimension => Clock::within(zone, span.range),
            _ => {
                let found = self.view.dimensions.get(dimension);
                let extent = found.map(|found| self.extent(found)).unwrap_or_default();
                Clock::new(zone, extent)
            }
        }
    }

    pub(super) fn shifts(&self) -> Shifts {
        Shifts {
            first_day_of_week: self.view.first_day_of_week,
            first_month_of_year: self.view.first_month_of_year,
        }
    }

    /// Returns the first instants of the buckets in a range, in order.
    pub(super) fn buckets(&self, range: Range, grain: Grain) -> Result<Vec<Timestamp>, PlanError> {
        let found = self.calendar.buckets(range, grain, Limits::BUCKETS);
        let found = found.ok_or_else(PlanError::too_many_buckets)?;
        Ok(found.into_iter().map(|bucket| bucket.start).collect())
    }

    /// Returns true if the buckets of a cut are paired with those of the comparison by position (Q8).
    pub(super) fn is_paired(&self, cut: Cut) -> bool {
        let both = [self.base, self.comparison];
        cut.grain.is_some()
            && both
                .iter()
                .all(|span| span.is_some_and(|span| span.dimension == cut.dimension))
    }

    /// Returns the pairs of buckets of base and comparison; buckets without a partner are left out.
    pub(super) fn pairs(&self, cut: Cut) -> Result<Vec<(Timestamp, Timestamp)>, PlanError> {
        let (Some(base), Some(comparison), Some(grain)) = (self.base, self.comparison, cut.grain) else {
            return Ok(Vec::new());
        };
        let base = self.buckets(base.range, grain)?;
        let comparison = self.buckets(comparison.range, grain)?;
        Ok(base.into_iter().zip(comparison).collect())
    }
}

fn span(dimension: usize, resolved: &Resolved, at: &'static str) -> Result<Span, PlanError> {
    let range = resolved.range().map_err(|error| PlanError::range(at, error))?;
    Ok(Span { dimension, range })
}
