//! Answers: columns with their meaning, and rows.

use watershed_drivers::olap::{Column, Look, Value};
use watershed_metrics::format::TimeFormat;
use watershed_metrics::plan::{self, Plan, Role};
use watershed_metrics::query::ComputedMeasure;
use watershed_metrics::{Format, Grain, Query, Range, Zone};
use watershed_proto::MetricsViewSpec;

use super::error::MetricsError;

/// A column before its type is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its part in the answer.
    pub role: Role,
    /// The view's field that it shows or is computed from; empty if there is none.
    pub field: String,
    /// The grain that its times are cut to.
    pub grain: Option<Grain>,
    /// The zone by whose calendar they are cut.
    pub zone: Zone,
    /// The preset that its numbers are written by; empty for none.
    pub format_preset: String,
    /// The d3 pattern that its numbers are written by; empty for none.
    pub format_d3: String,
}

impl Heading {
    /// Returns the format of its numbers, if it has one.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self.format_d3.as_str() {
            "" => Format::preset(&self.format_preset),
            pattern => Format::d3(pattern).ok(),
        }
    }

    /// Returns the format of its times, if they are cut to a grain.
    #[must_use]
    pub fn time_format(&self) -> Option<TimeFormat> {
        Some(TimeFormat::new(self.zone.clone(), self.grain?))
    }

    /// Returns the look of its column in sheets.
    #[must_use]
    pub fn look(&self) -> Look {
        let times = self.time_format();
        Look {
            format: match &times {
                Some(times) => Some(times.sheet_code().to_owned()),
                None => self.format().and_then(|format| format.sheet_code()),
            },
            zone: times.map(|times| times.zone().rules().clone()),
        }
    }

    /// Writes a value of its column as people read it.
    #[must_use]
    pub fn written(&self, value: &Value) -> String {
        let number = value.number().zip(self.format());
        let time = value.instant().zip(self.time_format());
        match (number, time) {
            (Some((number, format)), _) => format.apply(number),
            (None, Some((instant, format))) => format.at(instant),
            (None, None) => value.to_string(),
        }
    }

    /// Returns the heading of a column of a plain query.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: name.to_owned(),
            role: Role::Column,
            field: String::new(),
            grain: None,
            zone: Zone::UTC,
            format_preset: String::new(),
            format_d3: String::new(),
        }
    }
}

/// An answer, as any kind of question has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The columns, in order, with the engine's words for their types.
    pub columns: Vec<(Heading, String)>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// There are more rows.
    pub truncated: bool,
    /// The row of totals, if the query has one.
    pub totals: Option<Vec<Value>>,
    /// The range of time, if one bounds the answer.
    pub time_range: Option<Range>,
    /// The range that it is compared with.
    pub comparison_time_range: Option<Range>,
    /// The zone by whose clock its times are meant; none for rows of a plain query.
    pub time_zone: Option<Zone>,
    /// It was kept from an earlier question.
    pub cached: bool,
    /// Columns are headed by their names for people: the question says so.
    pub use_display_names: bool,
}

impl Answer {
    /// Returns the head of a column for people.
    #[must_use]
    pub fn head<'h>(&self, heading: &'h Heading) -> &'h str {
        match self.use_display_names {
            true => &heading.display_name,
            false => &heading.name,
        }
    }

    /// Makes an answer of a plain query's rows.
    pub(super) fn plain(columns: &[Column], rows: Vec<Vec<Value>>, truncated: bool) -> Self {
        let column = |column: &Column| (Heading::plain(&column.name), column.data_type.clone());
        Self {
            columns: columns.iter().map(column).collect(),
            rows,
            truncated,
            ..Self::default()
        }
    }

    /// Makes an answer of the rows of a plan's statement: the row of totals apart, values of a pivot as columns.
    ///
    /// # Errors
    /// A pivot with too many columns.
    pub(super) fn of_plan(
        query: &Query,
        plan: &Plan,
        spec: &MetricsViewSpec,
        types: &[Column],
        mut rows: Vec<Vec<Value>>,
    ) -> Result<Self, MetricsError> {
        let mut totals = None;
        if plan.totals {
            totals = rows.pop();
            for row in rows.iter_mut().chain(&mut totals) {
                row.pop();
            }
        }
        let place = |value: &Value| match value {
            Value::Integer(place) => u64::try_from(*place).unwrap_or_default(),
            _ => 0,
        };
        let pivoted = plan
            .pivot(&rows, &Value::Null, ToString::to_string, place)
            .map_err(MetricsError::TooManyColumns)?;
        let type_at = |place: &usize| types.get(*place).map(|found| found.data_type.clone());
        let types = pivoted
            .sources
            .iter()
            .map(|place| type_at(place).unwrap_or_default());
        Ok(Self {
            columns: headings(query, &pivoted.columns, spec)
                .into_iter()
                .zip(types)
                .collect(),
            rows: pivoted.rows,
            truncated: false,
            totals,
            time_range: plan.time_range,
            comparison_time_range: plan.comparison_time_range,
            time_zone: Some(query.time_zone.clone()),
            cached: false,
            use_display_names: query.use_display_names,
        })
    }
}

/// Returns the headings of a query's columns, with the formats that their view gives them.
pub(super) fn headings(query: &Query, columns: &[plan::Column], spec: &MetricsViewSpec) -> Vec<Heading> {
    columns
        .iter()
        .map(|column| heading(query, column, spec))
        .collect()
}

fn heading(query: &Query, column: &plan::Column, spec: &MetricsViewSpec) -> Heading {
    let measure = spec.measures.iter().find(|measure| measure.name == column.field);
    let compute = computed(query, &column.name);
    let is_share = compute.is_some_and(|compute| {
        matches!(
            compute,
            ComputedMeasure::ComparisonRatio(_) | ComputedMeasure::PercentOfTotal(_)
        )
    });
    let has_amounts = compute.is_some_and(|compute| {
        matches!(
            compute,
            ComputedMeasure::ComparisonValue(_) | ComputedMeasure::ComparisonDelta(_)
        )
    });
    let formats = measure.filter(|_| column.role == Role::Measure || has_amounts);
    Heading {
        name: column.name.clone(),
        display_name: column.display_name.clone(),
        role: column.role,
        field: column.field.clone(),
        grain: column.grain,
        zone: query.time_zone.clone(),
        format_preset: match formats {
            Some(measure) => measure.format_preset.clone(),
            None if is_share => "percentage".to_owned(),
            None => String::new(),
        },
        format_d3: formats
            .map(|measure| measure.format_d3.clone())
            .unwrap_or_default(),
    }
}

/// Returns the computation of a query's column, if it is one of the query's own.
fn computed<'q>(query: &'q Query, name: &str) -> Option<&'q ComputedMeasure> {
    let measure = query.measures.iter().find(|measure| measure.name == name);
    measure.and_then(|measure| measure.compute.as_ref())
}
