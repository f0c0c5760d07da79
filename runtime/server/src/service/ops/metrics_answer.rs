//! Conversion of metrics answers to documents.

use watershed_api::documents::{MetricsColumn, MetricsDocument, MetricsRange, MetricsRole};
use watershed_drivers::olap::Value;
use watershed_metrics::plan::{Plan, Role};
use watershed_metrics::{Query, Zone};
use watershed_resolvers::{Answer, Heading};

/// Converts an answer to its document.
pub(crate) fn document(query: &Query, answer: &Answer) -> MetricsDocument {
    MetricsDocument {
        columns: columns(answer),
        rows: rows(answer),
        cached: answer.cached,
        use_display_names: answer.use_display_names,
        totals: answer.totals.as_deref().map(json),
        time_range: answer.time_range.map(range),
        comparison_time_range: answer.comparison_time_range.map(range),
        ..about(query)
    }
}

/// Returns the document of a query that was planned and not run, with its statement.
pub(crate) fn unanswered(query: &Query, plan: &Plan, sql: String) -> MetricsDocument {
    MetricsDocument {
        time_range: plan.time_range.map(range),
        comparison_time_range: plan.comparison_time_range.map(range),
        sql: Some(sql),
        ..about(query)
    }
}

fn about(query: &Query) -> MetricsDocument {
    MetricsDocument {
        schema: MetricsDocument::SCHEMA.to_owned(),
        metrics_view: query.metrics_view.clone(),
        time_zone: zone(&query.time_zone),
        ..MetricsDocument::default()
    }
}

/// Converts the columns of an answer.
pub(crate) fn columns(answer: &Answer) -> Vec<MetricsColumn> {
    let column = |(heading, data_type): &(Heading, String)| MetricsColumn {
        name: heading.name.clone(),
        display_name: heading.display_name.clone(),
        role: role(heading.role),
        field: heading.field.clone(),
        data_type: data_type.clone(),
        grain: heading.grain.map(|grain| grain.as_str().to_owned()),
        format_preset: heading.format_preset.clone(),
        format_d3: heading.format_d3.clone(),
    };
    answer.columns.iter().map(column).collect()
}

/// Converts the rows of an answer to JSON.
pub(crate) fn rows(answer: &Answer) -> Vec<Vec<serde_json::Value>> {
    answer.rows.iter().map(|row| json(row)).collect()
}

fn json(row: &[Value]) -> Vec<serde_json::Value> {
    row.iter().map(Value::to_json).collect()
}

fn role(role: Role) -> MetricsRole {
    match role {
        Role::Dimension => MetricsRole::Dimension,
        Role::Measure => MetricsRole::Measure,
        Role::Computed => MetricsRole::Computed,
        Role::Column => MetricsRole::Column,
    }
}

/// Returns the name of a time zone.
pub(crate) fn zone(zone: &Zone) -> String {
    zone.name().unwrap_or("UTC").to_owned()
}

/// Converts a time range.
pub(crate) fn range(range: watershed_metrics::Range) -> MetricsRange {
    MetricsRange {
        start: range.start.to_string(),
        end: range.end.to_string(),
    }
}
