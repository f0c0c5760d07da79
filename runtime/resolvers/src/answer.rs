//! Answers of resolvers: columns with headings, types and formats, and rows.

use watershed_drivers::olap::{Column, Look, Value};
use watershed_metrics::format::TimeFormat;
use watershed_metrics::plan::{self, Plan, Role};
use watershed_metrics::query::ComputedMeasure;
use watershed_metrics::{Format, Grain, Query, Range, Zone};
use watershed_proto::MetricsViewSpec;

use super::error::MetricsError;

/// Heading and format of a column, without the engine's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Name of the column in the query.
    pub name: String,
    /// Display name of the column.
    pub display_name: String,
    /// Role of the column, such as dimension or measure.
    pub role: Role,
    /// Field of the metrics view that the column shows or is computed from; empty if there is none.
    pub field: String,
    /// Grain to which the column's times are truncated; none if they are not.
    pub grain: Option<Grain>,
    /// Time zone whose calendar defines the grain.
    pub zone: Zone,
    /// Preset format of the column's numbers; empty for none.
    pub format_preset: String,
    /// d3 pattern that formats the column's numbers; empty for none.
    pub format_d3: String,
}

impl Heading {
    /// Returns the number format of the column; none if neither a preset nor a pattern is set.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self.format_d3.as_str() {
            "" => Format::preset(&self.format_preset),
            pattern => Format::d3(pattern).ok(),
        }
    }

    /// Returns the time format of the column; none if its times are not truncated to a grain.
    #[must_use]
    pub fn time_format(&self) -> Option<TimeFormat> {
        Some(TimeFormat::new(self.zone.clone(), self.grain?))
    }

    /// Returns the style of the column in spreadsheets.
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

    /// Formats a value of the column for people.
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

    /// Creates the heading of a column of a plain SQL query.
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

/// Answer of any resolver: columns, rows and metadata.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Columns in order, each with the engine's name of its type.
    pub columns: Vec<(Heading, String)>,
    /// Rows, with values in the order of the columns.
    pub rows: Vec<Vec<Value>>,
    /// True if the query has more rows than the answer.
    pub truncated: bool,
    /// Row of totals; none unless the query asks for one.
    pub totals: Option<Vec<Value>>,
    /// Time range of the rows; none if unbounded.
    pub time_range: Option<Range>,
    /// Time range of the comparison; none without a comparison.
    pub comparison_time_range: Option<Range>,
    /// Time zone for displaying times; none for rows of a plain SQL query.
    pub time_zone: Option<Zone>,
    /// True if the rows come from the cache.
    pub cached: bool,
    /// True if the query asks for display names in the head of the columns.
    pub use_display_names: bool,
}

impl Answer {
    /// Returns a column's head for people: its display name if the query asks for that, else its name.
    #[must_use]
    pub fn head<'h>(&self, heading: &'h Heading) -> &'h str {
        match self.use_display_names {
            true => &heading.display_name,
            false => &heading.name,
        }
    }

    /// Creates the answer of a plain SQL query.
    pub(super) fn plain(columns: &[Column], rows: Vec<Vec<Value>>, truncated: bool) -> Self {
        let column = |column: &Column| (Heading::plain(&column.name), column.data_type.clone());
        Self {
            columns: columns.iter().map(column).collect(),
            rows,
            truncated,
            ..Self::default()
        }
    }

    /// Creates the answer of a planned query from its rows: separates the row of totals, and pivots values into
    /// columns.
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

/// Returns the headings of a query's columns, with the formats of their fields in the view.
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

/// Returns the computation that a query declares for a column; none for fields of the view.
fn computed<'q>(query: &'q Query, name: &str) -> Option<&'q ComputedMeasure> {
    let measure = query.measures.iter().find(|measure| measure.name == name);
    measure.and_then(|measure| measure.compute.as_ref())
}
