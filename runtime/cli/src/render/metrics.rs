//! Answers of metrics views for people: formatted numbers, and times in their zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned, civil};
use serde_json::Value;
use watershed_api::documents::{
    Column, MetricsBoundsDocument, MetricsColumn, MetricsDocument, MetricsRange, MetricsRole,
};
use watershed_metrics::format::TimeFormat;
use watershed_metrics::{Format, Grain, Zone};

/// The choice of column headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heads {
    /// Headings as the query asks: names, or display names.
    AsAsked,
    /// Names, by which programs find values.
    Names,
}

/// Returns columns and rows for programs: values unformatted, totals last.
pub(crate) fn raw(document: &MetricsDocument, heads: Heads) -> (Vec<Column>, Vec<Vec<Value>>) {
    let rows = document.rows.iter().chain(&document.totals).cloned().collect();
    (columns(document, heads), rows)
}

/// Returns columns and rows for people: values formatted, totals last.
pub(crate) fn formatted(document: &MetricsDocument) -> (Vec<Column>, Vec<Vec<Value>>) {
    let writers: Vec<Writer> = document
        .columns
        .iter()
        .map(|column| Writer::new(column, document))
        .collect();
    let write = |row: &Vec<Value>| {
        row.iter()
            .zip(&writers)
            .map(|(value, writer)| writer.write(value))
            .collect()
    };
    let mut rows: Vec<Vec<Value>> = document.rows.iter().map(write).collect();
    if let Some(totals) = &document.totals {
        let mut row: Vec<Value> = write(totals);
        let is_dimension = |column: &MetricsColumn| column.role == MetricsRole::Dimension;
        if let Some(first) = document.columns.iter().position(is_dimension)
            && let Some(cell) = row.get_mut(first)
        {
            *cell = Value::from("total");
        }
        rows.push(row);
    }
    (columns(document, Heads::AsAsked), rows)
}

/// Renders the lines below a table: the time range of the answer, in its zone.
pub(crate) fn about(document: &MetricsDocument) -> Vec<String> {
    let zone = TimeZone::get(&document.time_zone).unwrap_or(TimeZone::UTC);
    let mut said: Vec<String> = document
        .time_range
        .iter()
        .map(|range| span(range, &zone))
        .collect();
    let compared = document.comparison_time_range.iter();
    said.extend(compared.map(|other| format!("compared with {}", span(other, &zone))));
    if !said.is_empty() && document.time_zone != "UTC" {
        said.push(document.time_zone.clone());
    }
    said
}

/// Renders a range: in days if both ends are at midnight, otherwise to the minute or second.
fn span(range: &MetricsRange, zone: &TimeZone) -> String {
    let ends = [&range.start, &range.end].map(|end| end.parse::<Timestamp>());
    let [Ok(start), Ok(end)] = ends else {
        return format!("{} to {}", range.start, range.end);
    };
    let ends = [start, end].map(|end| end.to_zoned(zone.clone()));
    let all = |is: fn(&Zoned) -> bool| ends.iter().all(is);
    let form = match (
        all(|end| end.time() == civil::Time::midnight()),
        all(|end| end.second() == 0),
    ) {
        (true, _) => "%Y-%m-%d",
        (false, true) => "%Y-%m-%d %H:%M",
        (false, false) => "%Y-%m-%d %H:%M:%S",
    };
    ends.map(|end| end.strftime(form).to_string()).join(" to ")
}

/// Returns advice for an answer without rows.
pub(crate) fn advice(document: &MetricsDocument) -> Vec<String> {
    let is_empty = document.rows.is_empty() && document.sql.is_none();
    let advice = "no row lies in this time, or none that meets the conditions: `--time-range inf` is all of it; `P7D` \
                  and `7D as of latest` end with the data, `7D` ends now";
    let bound = document.time_range.iter().filter(|_| is_empty);
    bound.map(|_| advice.to_owned()).collect()
}

fn columns(document: &MetricsDocument, heads: Heads) -> Vec<Column> {
    let is_for_people = document.use_display_names && heads == Heads::AsAsked;
    let column = |column: &MetricsColumn| Column {
        name: match is_for_people {
            true => column.display_name.clone(),
            false => column.name.clone(),
        },
        data_type: column.data_type.clone(),
    };
    document.columns.iter().map(column).collect()
}

/// The format of one column's values.
enum Writer {
    Number(Format),
    Time(TimeFormat),
    Plain,
}

impl Writer {
    fn new(column: &MetricsColumn, document: &MetricsDocument) -> Self {
        let d3 = Format::d3(&column.format_d3)
            .ok()
            .filter(|_| !column.format_d3.is_empty());
        if let Some(format) = d3.or_else(|| Format::preset(&column.format_preset)) {
            return Self::Number(format);
        }
        let grain = column.grain.as_deref();
        let grain = grain.and_then(|name| Grain::ALL.into_iter().find(|grain| grain.as_str() == name));
        match (grain, Zone::find(&document.time_zone)) {
            (Some(grain), Ok(zone)) => Self::Time(TimeFormat::new(zone, grain)),
            _ => Self::Plain,
        }
    }

    fn write(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Number(format), Value::Number(number)) => number
                .as_f64()
                .map_or_else(|| value.clone(), |number| Value::from(format.apply(number))),
            // Integers beyond those of JSON, and decimals.
            (Self::Number(format), Value::String(text)) => match text.parse() {
                Ok(number) => Value::from(format.apply(number)),
                Err(_) => value.clone(),
            },
            (Self::Time(format), Value::String(text)) => Value::from(format.apply(text)),
            _ => value.clone(),
        }
    }
}

/// The ends of a view's time dimension.
pub(crate) fn bounds(document: &MetricsBoundsDocument) -> String {
    let Some(time) = &document.time_dimension else {
        return format!("`{}` has no time dimension\n", document.metrics_view);
    };
    let told = |end: &Option<String>| end.as_deref().unwrap_or("no rows").to_owned();
    format!(
        "{time} of {}\n  earliest   {}\n  latest     {}\n  watermark  {}\n",
        document.metrics_view,
        told(&document.earliest),
        told(&document.latest),
        told(&document.watermark)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_see_formats_and_the_clock_of_the_zone() {
        let column = |name: &str, role, grain: Option<&str>, preset: &str| MetricsColumn {
            name: name.to_owned(),
            display_name: name.to_owned(),
            role,
            field: name.to_owned(),
            data_type: "TIMESTAMP".to_owned(),
            grain: grain.map(str::to_owned),
            format_preset: preset.to_owned(),
            format_d3: String::new(),
        };
        let document = MetricsDocument {
            time_zone: "America/New_York".to_owned(),
            columns: vec![
                column("day", MetricsRole::Dimension, Some("day"), ""),
                column("hour", MetricsRole::Dimension, Some("hour"), ""),
                column("share", MetricsRole::Measure, None, "percentage"),
            ],
            rows: vec![vec![
                json!("2024-03-01 05:00:00"),
                json!("2024-03-01 17:00:00"),
                json!(0.256),
            ]],
            totals: Some(vec![json!(null), json!(null), json!("0.5")]),
            ..MetricsDocument::default()
        };
        let (columns, rows) = formatted(&document);
        assert_eq!(columns.len(), 3);
        assert_eq!(
            rows[0],
            [json!("2024-03-01"), json!("2024-03-01 12:00"), json!("25.6%")]
        );
        assert_eq!(rows[1][0], json!("total"));
        assert_eq!(raw(&document, Heads::Names).1[0][2], json!(0.256));
    }

    #[test]
    fn heads_are_the_names_for_people_where_the_question_says_so_and_programs_keep_the_others() {
        let mut document = MetricsDocument {
            columns: vec![MetricsColumn {
                name: "total_n".to_owned(),
                display_name: "Total N".to_owned(),
                role: MetricsRole::Measure,
                field: "total_n".to_owned(),
                data_type: "BIGINT".to_owned(),
                grain: None,
                format_preset: String::new(),
                format_d3: String::new(),
            }],
            rows: vec![vec![json!(1)]],
            ..MetricsDocument::default()
        };
        let heads = |document: &MetricsDocument| {
            let of = |columns: Vec<Column>| columns[0].name.clone();
            let raw = |heads| of(raw(document, heads).0);
            [of(formatted(document).0), raw(Heads::AsAsked), raw(Heads::Names)]
        };
        assert_eq!(heads(&document), ["total_n", "total_n", "total_n"]);
        document.use_display_names = true;
        assert_eq!(heads(&document), ["Total N", "Total N", "total_n"]);
    }

    #[test]
    fn a_range_is_shown_by_the_clock_of_its_zone_as_short_as_it_can_be() {
        let new_york = TimeZone::get("America/New_York").expect("a zone");
        let range = |start: &str, end: &str| MetricsRange {
            start: start.to_owned(),
            end: end.to_owned(),
        };
        for (start, end, shown) in [
            (
                "2024-03-10T05:00:00Z",
                "2024-03-11T04:00:00Z",
                "2024-03-10 to 2024-03-11",
            ),
            (
                "2024-03-10T06:30:00Z",
                "2024-03-10T07:00:00Z",
                "2024-03-10 01:30 to 2024-03-10 03:00",
            ),
            (
                "2024-03-10T06:30:00.25Z",
                "2024-03-10T07:00:01Z",
                "2024-03-10 01:30:00 to 2024-03-10 03:00:01",
            ),
        ] {
            assert_eq!(span(&range(start, end), &new_york), shown);
        }
    }
}
