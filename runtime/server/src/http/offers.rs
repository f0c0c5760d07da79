//! Metrics views and APIs that a caller may ask, as the policies let the caller see them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use watershed_api::Problem;
use watershed_api::http::offers::{
    ApiEntry, ApisDocument, ExampleDocument, FieldDocument, MetricsViewDocument, MetricsViewEntry,
    MetricsViewsDocument,
};
use watershed_core::Row;
use watershed_drivers::olap;
use watershed_metrics::Query;
use watershed_proto::MetricsViewSpec;
use watershed_reconcilers::{api, metrics_view};
use watershed_resolvers::Prepared;
use watershed_resolvers::metrics::{Offered, Question};

use super::caller::Caller;
use super::scope::Scope;
use super::service::Open;
use crate::out::without_secrets;
use crate::service::problems::of_metrics;
use crate::service::questions::{Asking, Entries, Moment, viewer};

/// The rows of an example that ranks.
const RANKED: u64 = 10;
/// The rows of an example over time: a year of months.
const LAST: u64 = 12;
/// Time limit for the types of a view's fields.
const TYPES_WITHIN: Duration = Duration::from_secs(5);

/// Lists the metrics views that a caller may ask. Those that a policy closes, or that were never valid, are left out.
pub(super) async fn metrics_views(
    open: &Open,
    caller: &Caller,
    scope: &Scope,
) -> Result<MetricsViewsDocument, Problem> {
    let asking = Asking::of(&open.instance);
    let entries = open.instance.entries();
    let mut metrics_views = Vec::new();
    for name in names(open, scope, metrics_view::KIND) {
        let Ok(offered) = offered(&asking, Entries(&entries), caller, &name).await else {
            continue;
        };
        let MetricsViewSpec {
            display_name,
            description,
            measures,
            ..
        } = offered.spec.clone();
        let measures = measures.into_iter().map(|one| one.name);
        metrics_views.push(MetricsViewEntry {
            name,
            display_name,
            description,
            measures: measures.filter(|name| offered.shows(name)).collect(),
        });
    }
    let document = MetricsViewsDocument {
        schema: MetricsViewsDocument::SCHEMA.to_owned(),
        metrics_views,
        unsettled: open.instance.unsettled(),
    };
    Ok(without_secrets(document, &asking.secrets))
}

/// Returns the names of the resources of a kind that the caller may name, sorted.
pub(super) fn names(open: &Open, scope: &Scope, kind: &str) -> Vec<String> {
    let entries = open.instance.entries();
    let allowed = scope.among(|| entries.clone());
    let listed = entries.iter().map(|entry| &*entry.row);
    let is_meant = |row: &&Row| {
        row.kind.as_str() == kind
            && !row.hidden
            && !row.intents.is_deleted()
            && allowed.as_ref().is_none_or(|allowed| allowed.contains(&row.uid))
    };
    let mut names: Vec<String> = listed.filter(is_meant).map(|row| row.name.to_string()).collect();
    names.sort();
    names
}

/// Returns the question of a viewer at this moment.
///
/// # Errors
/// A time that can't be read.
pub(super) fn question<'a>(
    query: &'a Query,
    viewer: &'a watershed_resolvers::Viewer,
) -> Result<Question<'a>, Problem> {
    Ok(Question {
        query,
        viewer,
        through: None,
        now: Moment::read(None)?.now,
        execution_time: None,
    })
}

/// Returns the fields of a view that a caller sees.
///
/// # Errors
/// A view that does not exist, is closed to the caller, or was never valid.
pub(super) async fn offered(
    asking: &Asking,
    entries: Entries<'_>,
    caller: &Caller,
    view: &str,
) -> Result<Offered, Problem> {
    let (query, viewer) = (Query::of(view), viewer(caller.user()));
    let question = question(&query, &viewer)?;
    asking.views(&entries).offered(question).await.map_err(of_metrics)
}

/// Describes a metrics view, as the caller may ask it.
///
/// # Errors
/// `unknown-name` with the nearest name, `not-allowed` where the policies give no access, and when the view was never valid.
pub(super) async fn metrics_view(
    open: &Open,
    caller: &Caller,
    typed: &str,
) -> Result<MetricsViewDocument, Problem> {
    let asking = Asking::of(&open.instance);
    let entries = open.instance.entries();
    let entries = Entries(&entries);
    let name = entries.of_kind(metrics_view::KIND, typed)?.name.to_string();
    let found = offered(&asking, entries, caller, &name).await?;
    let (query, viewer) = (Query::of(&name), viewer(caller.user()));
    let ends = asking
        .views(&entries)
        .ends(question(&query, &viewer)?)
        .await
        .map_err(of_metrics)?;
    let extent = ends.map(|(_, extent)| extent).unwrap_or_default();
    let spec = &found.spec;
    let time = Some(spec.time_dimension.clone()).filter(|time| !time.is_empty());
    let shown = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
    let of_dimension = |one: &watershed_proto::MetricsViewDimension| FieldDocument {
        name: one.name.clone(),
        display_name: one.display_name.clone(),
        description: one.description.clone(),
        data_type: None,
        format: String::new(),
        is_list: one.unnest,
    };
    let of_measure = |one: &watershed_proto::MetricsViewMeasure| FieldDocument {
        name: one.name.clone(),
        display_name: one.display_name.clone(),
        description: one.description.clone(),
        data_type: None,
        format: if one.format_d3.is_empty() {
            one.format_preset.clone()
        } else {
            one.format_d3.clone()
        },
        is_list: false,
    };
    let mut document = MetricsViewDocument {
        schema: MetricsViewDocument::SCHEMA.to_owned(),
        name,
        display_name: spec.display_name.clone(),
        description: spec.description.clone(),
        ai_instructions: spec.ai_instructions.clone(),
        time_dimension: time,
        smallest_time_grain: Some(spec.smallest_time_grain.clone()).filter(|grain| !grain.is_empty()),
        earliest: shown(extent.earliest),
        latest: shown(extent.latest),
        dimensions: spec
            .dimensions
            .iter()
            .filter(|one| found.shows(&one.name))
            .map(of_dimension)
            .collect(),
        measures: spec
            .measures
            .iter()
            .filter(|one| found.shows(&one.name))
            .map(of_measure)
            .collect(),
        examples: Vec::new(),
    };
    document.examples = examples(&document, spec);
    let types = types(&asking, entries, caller, &document, spec).await;
    for field in document.dimensions.iter_mut().chain(&mut document.measures) {
        field.data_type = types.get(&field.name).cloned();
    }
    Ok(without_secrets(document, &asking.secrets))
}

/// Returns the types of fields as the engine tells them without reading rows. Measures that ask for more than a name have none,
/// and no field has one while the engine does not answer.
async fn types(
    asking: &Asking,
    entries: Entries<'_>,
    caller: &Caller,
    view: &MetricsViewDocument,
    spec: &MetricsViewSpec,
) -> BTreeMap<String, String> {
    let named = |fields: &[FieldDocument]| {
        fields
            .iter()
            .map(|one| json!({ "name": one.name }))
            .collect::<Vec<_>>()
    };
    let plain = view.measures.iter().filter(|one| is_plain(spec, &one.name));
    let plain: Vec<FieldDocument> = plain.cloned().collect();
    let query = json!({
        "metrics_view": view.name, "dimensions": named(&view.dimensions), "measures": named(&plain),
    });
    let viewer = viewer(caller.user());
    let asked = async {
        let query = Query::from_json(&query).ok()?;
        let planned = asking
            .views(&entries)
            .planned(question(&query, &viewer).ok()?)
            .await
            .ok()?;
        let statement = olap::Query {
            limit: Some(0),
            timeout: Some(TYPES_WITHIN),
            ..Prepared::Planned(Box::new(planned)).query()
        };
        let cancel = CancellationToken::new();
        let rows = asking.opened.engine.query(statement, &cancel).await.ok()?;
        let columns = rows.columns().iter();
        Some(
            columns
                .map(|column| (column.name.clone(), column.data_type.clone()))
                .collect(),
        )
    };
    asked.await.unwrap_or_default()
}

/// Returns true for a measure that asks for no more than its name.
fn is_plain(spec: &MetricsViewSpec, name: &str) -> bool {
    let measure = spec.measures.iter().find(|one| one.name == name);
    measure.is_some_and(|one| {
        one.window.is_none() && one.per_dimensions.is_empty() && !one.r#type.contains("comparison")
    })
}

/// Returns questions that run as they stand: a total, a ranking, and a course of time.
fn examples(view: &MetricsViewDocument, spec: &MetricsViewSpec) -> Vec<ExampleDocument> {
    let Some(measure) = view.measures.iter().find(|one| is_plain(spec, &one.name)) else {
        return Vec::new();
    };
    let measures = json!([{ "name": measure.name }]);
    let mut list = vec![example(
        format!("{}, in total", measure.name),
        json!({ "measures": measures }),
    )];
    let time = view.time_dimension.as_deref().unwrap_or_default();
    if let Some(by) = view
        .dimensions
        .iter()
        .find(|one| !one.name.eq_ignore_ascii_case(time))
    {
        let query = json!({
            "dimensions": [{ "name": by.name }], "measures": measures,
            "sort": [{ "name": measure.name, "desc": true }], "limit": RANKED,
        });
        list.push(example(
            format!("{} by {}, the largest first", measure.name, by.name),
            query,
        ));
    }
    if !time.is_empty() && view.latest.is_some() {
        let is_coarse = |grain: &&str| ["week", "month", "quarter", "year"].contains(grain);
        let smallest = view.smallest_time_grain.as_deref();
        let grain = smallest.filter(is_coarse).unwrap_or("month");
        let query = json!({
            "dimensions": [{ "name": time, "grain": grain }], "measures": measures,
            "sort": [{ "name": time, "desc": true }], "limit": LAST,
        });
        list.push(example(
            format!("{} by {grain}, the latest first", measure.name),
            query,
        ));
    }
    list
}

fn example(question: String, query: Value) -> ExampleDocument {
    let query = match query {
        Value::Object(query) => query,
        _ => Map::new(),
    };
    ExampleDocument { question, query }
}

/// Lists the APIs that a caller may call.
pub(super) async fn apis(open: &Open, caller: &Caller, scope: &Scope) -> Result<ApisDocument, Problem> {
    let asking = Asking::of(&open.instance);
    let entries = open.instance.entries();
    let entries = Entries(&entries);
    let viewer = viewer(caller.user());
    let mut apis = Vec::new();
    for name in names(open, scope, api::KIND) {
        let resolvers = asking.resolvers(&entries);
        let Ok(spec) = resolvers.callable(&name, &viewer).await else {
            continue;
        };
        apis.push(ApiEntry {
            arguments: resolvers
                .arguments_of(&name)
                .names()
                .map(|name| name.to_string())
                .collect(),
            display_name: spec.display_name,
            description: spec.description,
            name,
        });
    }
    let document = ApisDocument {
        schema: ApisDocument::SCHEMA.to_owned(),
        apis,
    };
    Ok(without_secrets(document, &asking.secrets))
}
