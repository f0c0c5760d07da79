//! Queries of metrics views.

use serde_json::{Value, json};
use watershed_api::answers::MetricsAnswer;
use watershed_api::documents::MetricsBoundsDocument;
use watershed_api::request::{MetricsBoundsRequest, MetricsRequest};
use watershed_api::{Code, Problem};
use watershed_core::Key;
use watershed_drivers::olap::Layout;
use watershed_metrics::Query;
use watershed_reconcilers::metrics_view::KIND;
use watershed_reconcilers::{canvas, explore};
use watershed_resolvers::{
    Heading, Prepared, Views, condition,
    metrics::{MetricsError, Question},
};

use super::export::write_answer;
use super::metrics_answer as answers;
use super::query::until_closed;
use crate::out::Out;
use crate::report::names;
use crate::service::Principal;
use crate::service::place::Place;
use crate::service::problems::{made_over, misunderstood, of_metrics, of_statement};
use crate::service::questions::{Asking, Entries, Moment, StatementForm, file_of, viewer};

/// Answers a query of a metrics view.
pub(crate) async fn metrics(
    place: &impl Place,
    _: &Principal,
    input: MetricsRequest,
    out: &Out,
) -> Result<MetricsAnswer, Problem> {
    let entries = place.listing().await?.entries;
    let asking = place.asking(&entries).await?;
    let answered = until_closed(answer(&asking, Entries(&entries), input, out), out).await;
    asking.opened.give_back().await;
    answered
}

/// Tells the ends of a metrics view's time dimension.
pub(crate) async fn metrics_bounds(
    place: &impl Place,
    _: &Principal,
    input: MetricsBoundsRequest,
    out: &Out,
) -> Result<MetricsBoundsDocument, Problem> {
    let entries = place.listing().await?.entries;
    let asking = place.asking(&entries).await?;
    let told = until_closed(ends(&asking, Entries(&entries), input), out).await;
    asking.opened.give_back().await;
    told
}

async fn ends(
    asking: &Asking,
    entries: Entries<'_>,
    input: MetricsBoundsRequest,
) -> Result<MetricsBoundsDocument, Problem> {
    let viewer = viewer(input.user);
    let through = input.through.as_deref().map(typed_front).transpose()?;
    let query = Query::of(&input.view);
    let question = Question {
        query: &query,
        viewer: &viewer,
        through: through.as_ref(),
        now: Moment::read(None)?.now,
        execution_time: None,
    };
    let ends = asking.views(&entries).ends(question).await;
    let ends = ends.map_err(|error| unanswered(entries, error))?;
    let (time_dimension, extent) = ends.unzip();
    let extent = extent.unwrap_or_default();
    let told = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
    Ok(MetricsBoundsDocument {
        schema: MetricsBoundsDocument::SCHEMA.to_owned(),
        metrics_view: input.view,
        time_dimension,
        earliest: told(extent.earliest),
        latest: told(extent.latest),
        watermark: told(extent.watermark.or(extent.latest)),
    })
}

async fn answer(
    asking: &Asking,
    entries: Entries<'_>,
    input: MetricsRequest,
    out: &Out,
) -> Result<MetricsAnswer, Problem> {
    let views = &asking.views(&entries);
    let problem = |error| unanswered(entries, error);
    let options = input.options;
    let moment = Moment::read(options.at.as_deref())?;
    let viewer = viewer(input.user);
    let mut json = input.query;
    if let Some(sql) = &input.sql {
        json = from_sql(sql, &json, views)?;
    }
    add_condition(&mut json, "where", input.condition.as_deref())?;
    add_condition(&mut json, "having", input.having.as_deref())?;
    if input.shows_change {
        add_comparisons(&mut json, views);
    }
    let query = Query::from_json(&json).map_err(|error| misunderstood(&error))?;
    let through = input.through.as_deref().map(typed_front).transpose()?;
    let question = |query| Question {
        query,
        viewer: &viewer,
        through: through.as_ref(),
        now: moment.now,
        execution_time: moment.until,
    };
    if options.sql {
        let form = StatementForm::of(&options, &viewer)?;
        let planned = views.planned(question(&query)).await.map_err(problem)?;
        let sql = form.write(planned.statement(), &asking.secrets);
        let document = answers::unanswered(&query, &planned.plan, sql);
        return Ok(MetricsAnswer::Document(Box::new(document)));
    }
    if options.file.is_some() {
        let planned = views.planned(question(&query)).await.map_err(problem)?;
        if planned.is_made_over() {
            return Err(made_over());
        }
        let layout = Layout {
            columns: planned.headings().iter().map(Heading::look).collect(),
            ..Layout::default()
        };
        if let Some(file) = file_of(&options, None, layout)? {
            let prepared = Prepared::Planned(Box::new(planned));
            let written = write_answer(asking, &prepared, file, &viewer, out).await?;
            return Ok(MetricsAnswer::File(written));
        }
    }
    let shown = options
        .shown
        .filter(|_| query.limit.is_none() && query.pivot_on.is_empty());
    // One more than is shown tells whether there are more.
    let query = Query {
        limit: query.limit.or(shown.map(|shown| shown.saturating_add(1))),
        ..query.clone()
    };
    let answer = views.answer(question(&query)).await.map_err(problem)?;
    let mut document = answers::document(&query, &answer);
    let shown = shown.and_then(|shown| usize::try_from(shown).ok());
    if let Some(shown) = shown.filter(|shown| document.rows.len() > *shown) {
        document.rows.truncate(shown);
        document.truncated = true;
    }
    Ok(MetricsAnswer::Document(Box::new(document)))
}

/// Converts the error of a metrics query; the hint for an unknown view is the nearest name.
fn unanswered(entries: Entries<'_>, error: MetricsError) -> Problem {
    match &error {
        MetricsError::Unknown(name) => names::resolve(entries.0, &format!("{KIND}/{name}"))
            .err()
            .unwrap_or_else(|| of_metrics(error)),
        _ => of_metrics(error),
    }
}

/// Parses the typed name of an explore or a canvas.
///
/// # Errors
/// Anything else.
fn typed_front(typed: &str) -> Result<Key, Problem> {
    front(typed).ok_or_else(|| {
        Problem::new(
            Code::BadArgument,
            format!("`{typed}` is no explore and no canvas"),
        )
        .hint("write `explore/NAME` or `canvas/NAME`")
    })
}

/// Parses the name of an explore or a canvas with its kind; none if it is neither.
pub(crate) fn front(typed: &str) -> Option<Key> {
    match typed.split_once('/')? {
        (kind @ (explore::KIND | canvas::KIND), name) => Some(Key::new(kind, name)),
        _ => None,
    }
}

/// The longest condition in SQL, in bytes: the engine's parser takes time with the square of some of them.
const CONDITION_MAX: usize = 8 << 10;

/// Returns the JSON form of a query in SQL, which stands in the place of all of the JSON form but the view's name.
fn from_sql(sql: &str, json: &Value, views: &Views<'_>) -> Result<Value, Problem> {
    let view = json["metrics_view"].as_str().unwrap_or_default();
    let wrong = |message: String| Problem::new(Code::BadArgument, message);
    if json.as_object().is_some_and(|query| query.len() > 1) {
        return Err(wrong("`query` and `sql` are two forms of one query".to_owned()).hint("leave one out"));
    }
    if sql.len() > CONDITION_MAX {
        return Err(
            wrong(format!("`sql` has at most {CONDITION_MAX} bytes")).hint("`query` takes longer filters")
        );
    }
    let query = views.json_of_sql(sql).map_err(of_statement)?;
    let read = query["metrics_view"].as_str().unwrap_or_default();
    if read != view {
        let message = format!("`sql` reads `{read}`, and `{view}` is asked");
        return Err(wrong(message).hint(format!("write `FROM {view}`")));
    }
    Ok(query)
}

/// Adds a condition in SQL to the filter of a query.
fn add_condition(query: &mut Value, key: &str, sql: Option<&str>) -> Result<(), Problem> {
    let Some(sql) = sql else {
        return Ok(());
    };
    if sql.len() > CONDITION_MAX {
        let message = format!("`--{key}`: a condition has at most {CONDITION_MAX} bytes");
        return Err(Problem::new(Code::BadArgument, message).hint("a query in JSON takes longer filters"));
    }
    let added = condition::filter(sql).map_err(|message| {
        Problem::new(Code::BadArgument, format!("`--{key}`: {message}")).hint(
            "conditions compare fields with constants, as in `origin = 'JFK' AND delay > 15`; text stands in single quotes",
        )
    })?;
    if let Value::Object(query) = query {
        let filter = match query.remove(key) {
            None | Some(Value::Null) => added,
            Some(Value::Object(there)) if there.is_empty() => added,
            Some(there) => json!({"cond": {"op": "and", "exprs": [there, added]}}),
        };
        query.insert(key.to_owned(), filter);
    }
    Ok(())
}

/// Adds to each measure its value in the comparison range and the relative change, unless the measure compares by
/// itself.
fn add_comparisons(query: &mut Value, views: &Views<'_>) {
    let view = query.get("metrics_view").and_then(Value::as_str);
    let view = view.unwrap_or_default().to_owned();
    let Some(measures) = query.get_mut("measures").and_then(Value::as_array_mut) else {
        return;
    };
    // One that is computed already compares by itself, or not at all.
    let plain = |measure: &'_ Value| match measure {
        Value::String(name) => Some(name.clone()),
        one if one["compute"].is_null() => one["name"].as_str().map(str::to_owned),
        _ => None,
    };
    let names: Vec<String> = measures.iter().filter_map(plain).collect();
    let added: Vec<Value> = names
        .iter()
        .filter(|name| !views.compares(&view, name))
        .flat_map(|name| {
            [("before", "comparison_value"), ("change", "comparison_ratio")]
                .map(|(end, compute)| json!({"name": format!("{name}_{end}"), "compute": {compute: {"measure": name}}}))
        })
        .collect();
    measures.extend(added);
}
