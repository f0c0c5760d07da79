//! Parsing of queries from JSON.

use std::str::FromStr;

use serde_json::Value;
use watershed_schedule::jiff::Timestamp;
use watershed_schedule::{Grain, Zone};

use super::error::{At, Code, QueryError};
use super::filter::{Filter, Literal, Operator, Subquery};
use super::json::{Block, wrong};
use super::{Comparison, ComputedMeasure, Dimension, Limits, Measure, Query, Range, Sort, Spine};
use crate::range::{Expression, Offset, TimeRange};

/// The keys that a query accepts.
const KEYS: [&str; 16] = [
    "metrics_view",
    "dimensions",
    "measures",
    "time_range",
    "comparison_time_range",
    "time_zone",
    "where",
    "having",
    "sort",
    "limit",
    "offset",
    "pivot_on",
    "spine",
    "totals",
    "rows",
    "use_display_names",
];

/// The keys that a time range in a query accepts.
const RANGE_KEYS: [&str; 7] = [
    "start",
    "end",
    "iso_duration",
    "iso_offset",
    "round_to_grain",
    "expression",
    "time_dimension",
];

impl Query {
    /// Parses a query from JSON (Q1). Names are not looked up; [`check`](super::check) does that.
    ///
    /// # Errors
    /// The first unknown key, wrong type, missing or conflicting key, range, zone or grain, with its place.
    pub fn from_json(value: &Value) -> Result<Self, QueryError> {
        let at = &At::Query;
        let block = Block::new(value, &KEYS, at)?;
        let range = |key: &str| {
            let read = |value| time_range(value, &at.key(key));
            block.said(key).map(read).transpose()
        };
        let comparison_at = at.key("comparison_time_range");
        let comparison = block.said("comparison_time_range");
        Ok(Self {
            metrics_view: block.required("metrics_view", at)?,
            dimensions: block.list("dimensions", at, dimension)?,
            measures: block.list("measures", at, measure)?,
            time_range: range("time_range")?,
            comparison_time_range: comparison
                .map(|value| comparison_range(value, &comparison_at))
                .transpose()?,
            time_zone: zone(&block, at)?,
            r#where: condition(&block, "where", at)?,
            having: condition(&block, "having", at)?,
            sort: block.list("sort", at, sort)?,
            limit: block.count("limit", at)?,
            offset: block.count("offset", at)?.unwrap_or_default(),
            pivot_on: block.fields("pivot_on", at)?,
            spine: spine(&block, at)?,
            totals: block.flag("totals", at)?,
            rows: block.flag("rows", at)?,
            use_display_names: block.flag("use_display_names", at)?,
        })
    }
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| At::Query.error(Code::WrongType, format!("this is no JSON: {error}")))?;
        Self::from_json(&value)
    }
}

fn zone(block: &Block<'_>, at: &At<'_>) -> Result<Zone, QueryError> {
    let name = block.text("time_zone", at)?.unwrap_or_default();
    Zone::find(&name).map_err(|unknown| at.key("time_zone").error(Code::InvalidRange, unknown.to_string()))
}

fn dimension(value: &Value, at: &At<'_>) -> Result<Dimension, QueryError> {
    if let Value::String(name) = value {
        return Ok(Dimension::named(name));
    }
    let block = Block::new(value, &["name", "grain", "compute"], at)?;
    let name = block.required("name", at)?;
    let short = grain(&block, "grain", at)?;
    let Some(compute) = block.get("compute") else {
        return Ok(Dimension {
            grain: short,
            ..Dimension::named(&name)
        });
    };
    if short.is_some() {
        return Err(at.error(Code::ConflictingKeys, "`grain` and `compute` exclude each other"));
    }
    let at = at.key("compute");
    let block = Block::new(compute, &["time_floor"], &at)?;
    let floor = block
        .get("time_floor")
        .ok_or_else(|| at.error(Code::MissingKey, "`time_floor` is missing"))?;
    let at = at.key("time_floor");
    let block = Block::new(floor, &["dimension", "grain"], &at)?;
    let grain = grain(&block, "grain", &at)?;
    if grain.is_none() {
        return Err(at.error(Code::MissingKey, "`grain` is missing"));
    }
    Ok(Dimension {
        name,
        of: block.field("dimension", &at)?,
        grain,
    })
}

fn grain(block: &Block<'_>, key: &str, at: &At<'_>) -> Result<Option<Grain>, QueryError> {
    let Some(text) = block.text(key, at)? else {
        return Ok(None);
    };
    let found = Grain::ALL
        .into_iter()
        .find(|grain| text.eq_ignore_ascii_case(grain.as_str()));
    let grain = found.ok_or_else(|| {
        let message = format!("\"{text}\" is no grain of time");
        let names = Grain::ALL.map(Grain::as_str).into_iter();
        at.key(key).unknown(Code::InvalidGrain, message, &text, names)
    })?;
    Ok(Some(grain))
}

fn measure(value: &Value, at: &At<'_>) -> Result<Measure, QueryError> {
    if let Value::String(name) = value {
        return Ok(Measure::named(name));
    }
    let block = Block::new(value, &["name", "compute"], at)?;
    let name = block.required("name", at)?;
    let compute = block.get("compute");
    let compute = compute
        .map(|value| computed(value, &at.key("compute")))
        .transpose()?;
    Ok(Measure { name, compute })
}

fn computed(value: &Value, at: &At<'_>) -> Result<ComputedMeasure, QueryError> {
    const KEYS: [&str; 8] = [
        "count",
        "count_distinct",
        "comparison_value",
        "comparison_delta",
        "comparison_ratio",
        "comparison_time",
        "percent_of_total",
        "uri",
    ];
    let block = Block::new(value, &KEYS, at)?;
    let mut set = KEYS.iter().filter_map(|key| Some((*key, block.get(key)?)));
    let (Some((key, value)), None) = (set.next(), set.next()) else {
        return Err(at.error(
            Code::ConflictingKeys,
            "exactly one computation is needed, such as `count: true`",
        ));
    };
    let at = at.key(key);
    let of = |of: &'static str| Block::new(value, &[of], &at)?.field(of, &at);
    Ok(match key {
        "count" if *value == Value::Bool(true) => ComputedMeasure::Count,
        "count" => return Err(wrong("true", value, &at)),
        "count_distinct" => ComputedMeasure::CountDistinct(of("dimension")?),
        "comparison_value" => ComputedMeasure::ComparisonValue(of("measure")?),
        "comparison_delta" => ComputedMeasure::ComparisonDelta(of("measure")?),
        "comparison_ratio" => ComputedMeasure::ComparisonRatio(of("measure")?),
        "comparison_time" => ComputedMeasure::ComparisonTime(of("dimension")?),
        "percent_of_total" => ComputedMeasure::PercentOfTotal(of("measure")?),
        _ => ComputedMeasure::Uri(of("dimension")?),
    })
}

/// Parses a time range; a text is a range expression.
fn time_range(value: &Value, at: &At<'_>) -> Result<Range, QueryError> {
    if let Value::String(text) = value {
        return expression(text, at);
    }
    let block = Block::new(value, &RANGE_KEYS, at)?;
    keys_of_range(&block, at)
}

fn expression(text: &str, at: &At<'_>) -> Result<Range, QueryError> {
    text.parse::<Expression>()
        .map_err(|error| at.error(Code::InvalidRange, error.to_string()))?;
    Ok(Range {
        time_dimension: None,
        range: TimeRange::expression(text),
    })
}

fn keys_of_range(block: &Block<'_>, at: &At<'_>) -> Result<Range, QueryError> {
    let parsed = |key: &str, parse: &dyn Fn(&str) -> Option<String>| {
        let text = block.text(key, at)?;
        match text.as_deref().and_then(parse) {
            Some(error) => Err(at.key(key).error(Code::InvalidRange, error)),
            None => Ok(text),
        }
    };
    let is_expression = |text: &str| text.parse::<Expression>().err().map(|error| error.to_string());
    let is_offset = |text: &str| text.parse::<Offset>().err().map(|error| error.to_string());
    let range = TimeRange {
        start: moment(block, "start", at)?,
        end: moment(block, "end", at)?,
        iso_duration: parsed("iso_duration", &is_expression)?,
        iso_offset: parsed("iso_offset", &is_offset)?,
        round_to_grain: grain(block, "round_to_grain", at)?,
        expression: parsed("expression", &is_expression)?,
    };
    range
        .check()
        .map_err(|error| at.error(Code::ConflictingKeys, error.to_string()))?;
    Ok(Range {
        time_dimension: block.text("time_dimension", at)?,
        range,
    })
}

/// Parses the instant of a key; none if it is missing.
fn moment(block: &Block<'_>, key: &str, at: &At<'_>) -> Result<Option<Timestamp>, QueryError> {
    let Some(text) = block.text(key, at)? else {
        return Ok(None);
    };
    let moment = text.parse().map_err(|_| {
        let message = format!("\"{text}\" is no instant such as `2024-02-29T00:00:00Z`");
        at.key(key).error(Code::InvalidRange, message)
    })?;
    Ok(Some(moment))
}

fn comparison_range(value: &Value, at: &At<'_>) -> Result<Comparison, QueryError> {
    let Value::Object(map) = value else {
        return time_range(value, at).map(Comparison::Range);
    };
    if !map.contains_key("offset") {
        return time_range(value, at).map(Comparison::Range);
    }
    let block = Block::new(value, &["offset"], at)?;
    let text = block.required("offset", at)?;
    text.parse()
        .map(Comparison::Offset)
        .map_err(|error: crate::range::RangeError| {
            at.key("offset").error(Code::InvalidRange, error.to_string())
        })
}

fn sort(value: &Value, at: &At<'_>) -> Result<Sort, QueryError> {
    if let Value::String(name) = value {
        return Ok(Sort {
            name: name.clone(),
            descending: false,
        });
    }
    let block = Block::new(value, &["name", "desc"], at)?;
    Ok(Sort {
        name: block.required("name", at)?,
        descending: block.flag("desc", at)?,
    })
}

fn spine(block: &Block<'_>, at: &At<'_>) -> Result<Option<Spine>, QueryError> {
    let Some(value) = block.said("spine") else {
        return Ok(None);
    };
    let at = at.key("spine");
    let block = Block::new(value, &["time", "where"], &at)?;
    let time = block.flag("time", &at)?;
    match (time, condition(&block, "where", &at)?) {
        (true, None) => Ok(Some(Spine::Time)),
        (false, Some(filter)) => Ok(Some(Spine::Where(filter))),
        _ => Err(at.error(Code::ConflictingKeys, "a spine is either `time: true` or `where`")),
    }
}

fn condition(block: &Block<'_>, key: &str, at: &At<'_>) -> Result<Option<Filter>, QueryError> {
    let at = at.key(key);
    let read = |value: &Value| match value {
        Value::String(_) => Err(QueryError {
            hint: Some(format!(
                "a condition in SQL stands beside the query, as its own `{key}`"
            )),
            ..at.error(Code::WrongType, "expected a mapping, not text")
        }),
        value => filter(value, &at, 0),
    };
    block.said(key).map(read).transpose()
}

/// Parses a filter; returns an error for one nested deeper than [`Limits::DEPTH`].
fn filter(value: &Value, at: &At<'_>, depth: usize) -> Result<Filter, QueryError> {
    if depth > Limits::DEPTH {
        let message = format!("filters are nested at most {} deep", Limits::DEPTH);
        return Err(at.error(Code::TooLarge, message));
    }
    let block = Block::new(value, &["name", "val", "cond", "subquery"], at)?;
    let set = ["name", "val", "cond", "subquery"].map(|key| block.raw(key).is_some());
    match set {
        [true, false, false, false] => Ok(Filter::Name(block.required("name", at)?)),
        [false, true, false, false] => {
            let value = block.raw("val").unwrap_or(&Value::Null);
            Ok(Filter::Value(literal(value, &at.key("val"), true)?))
        }
        [false, false, true, false] => {
            let at = at.key("cond");
            let cond = Block::new(block.raw("cond").unwrap_or(&Value::Null), &["op", "exprs"], &at)?;
            let name = cond.required("op", &at)?;
            let op = Operator::NAMES
                .iter()
                .find(|(known, _)| name.eq_ignore_ascii_case(known));
            let Some((_, op)) = op else {
                let names = Operator::NAMES.iter().map(|(name, _)| *name);
                let message = format!("unknown operation \"{name}\"");
                return Err(at.key("op").unknown(Code::UnknownKey, message, &name, names));
            };
            let operands = cond.list("exprs", &at, |value, at| filter(value, at, depth + 1))?;
            Ok(Filter::Condition { op: *op, operands })
        }
        [false, false, false, true] => {
            let at = at.key("subquery");
            let value = block.raw("subquery").unwrap_or(&Value::Null);
            let keys = ["dimension", "measures", "where", "having"];
            let block = Block::new(value, &keys, &at)?;
            let nested = |key: &str| {
                let read = |value| filter(value, &at.key(key), depth + 1);
                block.said(key).map(read).transpose()
            };
            Ok(Filter::Subquery(Box::new(Subquery {
                dimension: block.field("dimension", &at)?,
                measures: block.fields("measures", &at)?,
                r#where: nested("where")?,
                having: nested("having")?,
            })))
        }
        _ => Err(at.error(
            Code::ConflictingKeys,
            "exactly one of `name`, `val`, `cond` and `subquery` is needed",
        )),
    }
}

fn literal(value: &Value, at: &At<'_>, list: bool) -> Result<Literal, QueryError> {
    Ok(match value {
        Value::Null => Literal::Null,
        Value::Bool(flag) => Literal::Boolean(*flag),
        Value::Number(number) => Literal::Number(number.clone()),
        Value::String(text) => Literal::Text(text.clone()),
        Value::Array(items) if list => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| literal(item, &at.item(index), false));
            Literal::List(items.collect::<Result<_, _>>()?)
        }
        other => return Err(wrong("a value", other, at)),
    })
}
