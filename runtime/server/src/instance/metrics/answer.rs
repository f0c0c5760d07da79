//! Answers as documents.

use watershed_drivers::olap::{Column, Value};
use watershed_metrics::Query;
use watershed_metrics::plan::{self, Plan, Role};
use watershed_metrics::query::ComputedMeasure;
use watershed_proto::MetricsViewSpec;

use super::MetricsError;
use crate::documents::{MetricsColumn, MetricsDocument, MetricsRange, MetricsRole};

/// Makes the document of rows as the engine returned them: the row of totals apart, values of a pivot as columns.
///
/// # Errors
/// A pivot with too many columns.
pub(super) fn document(
    query: &Query,
    plan: &Plan,
    spec: &MetricsViewSpec,
    types: &[Column],
    mut rows: Vec<Vec<Value>>,
) -> Result<MetricsDocument, MetricsError> {
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
    let sources = pivoted.sources.iter().map(|place| types.get(*place));
    let column = |(column, found): (plan::Column, Option<&Column>)| {
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
        MetricsColumn {
            data_type: found.map(|found| found.data_type.clone()).unwrap_or_default(),
            role: role(column.role),
            grain: column.grain.map(|grain| format!("{grain:?}").to_lowercase()),
            format_preset: match formats {
                Some(measure) => measure.format_preset.clone(),
                None if is_share => "percentage".to_owned(),
                None => String::new(),
            },
            format_d3: formats
                .map(|measure| measure.format_d3.clone())
                .unwrap_or_default(),
            name: column.name,
            display_name: column.display_name,
            field: column.field,
        }
    };
    let json = |row: Vec<Value>| row.iter().map(Value::to_json).collect();
    Ok(MetricsDocument {
        schema: MetricsDocument::SCHEMA.to_owned(),
        metrics_view: query.metrics_view.clone(),
        time_zone: query.time_zone.name().unwrap_or("UTC").to_owned(),
        columns: pivoted.columns.into_iter().zip(sources).map(column).collect(),
        rows: pivoted.rows.into_iter().map(json).collect(),
        totals: totals.map(json),
        time_range: plan.time_range.map(range),
        comparison_time_range: plan.comparison_time_range.map(range),
        ..MetricsDocument::default()
    })
}

/// Returns a document of a plan without rows, for who wants to see the statement.
pub(super) fn unanswered(query: &Query, plan: &Plan, sql: String) -> MetricsDocument {
    MetricsDocument {
        schema: MetricsDocument::SCHEMA.to_owned(),
        metrics_view: query.metrics_view.clone(),
        time_zone: query.time_zone.name().unwrap_or("UTC").to_owned(),
        time_range: plan.time_range.map(range),
        comparison_time_range: plan.comparison_time_range.map(range),
        sql: Some(sql),
        ..MetricsDocument::default()
    }
}

/// Returns the computation of a query's column, if it is one of the query's own.
fn computed<'q>(query: &'q Query, name: &str) -> Option<&'q ComputedMeasure> {
    let measure = query.measures.iter().find(|measure| measure.name == name);
    measure.and_then(|measure| measure.compute.as_ref())
}

fn role(role: Role) -> MetricsRole {
    match role {
        Role::Dimension => MetricsRole::Dimension,
        Role::Measure => MetricsRole::Measure,
        Role::Computed => MetricsRole::Computed,
        Role::Column => MetricsRole::Column,
    }
}

fn range(range: watershed_metrics::Range) -> MetricsRange {
    MetricsRange {
        start: range.start.to_string(),
        end: range.end.to_string(),
    }
}
