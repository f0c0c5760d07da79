//! The parts of a spec that callers with the role `read` see, of what they may ask: metrics views, explores and APIs; and
//! themes, which are colours.
//!
//! A part is shown if it is listed here, and if it is about fields that the policies let the caller see. Expressions,
//! conditions, rules, SQL and tables are never shown.

use serde_json::{Value, json};
use watershed_api::{Code, Problem};
use watershed_compilers::{Spec, spec_json};
use watershed_core::{Key, Row};
use watershed_metrics::Query;
use watershed_proto::{ExploreState, FieldSelector, Message as _, MetricsViewSpec};
use watershed_reconcilers::managed::decode as spec_of;
use watershed_reconcilers::{explore, metrics_view, theme};
use watershed_resolvers::metrics::{Offered, Question};
use watershed_resolvers::{Viewer, api};

use super::answers;
use super::caller::Caller;
use super::service::Open;
use crate::out::without_secrets;
use crate::service::problems::{of_metrics, unresolved};
use crate::service::questions::{Asking, Entries, Moment, viewer};

/// Returns true if a part of the spec of this kind is shown to callers with the role `read`.
pub(super) fn is_offered(kind: &str) -> bool {
    [metrics_view::KIND, explore::KIND, theme::KIND, api::KIND].contains(&kind)
}

/// Returns the part of a resource's spec that the caller may see.
///
/// # Errors
/// `not-allowed` where the policies give no access, and when nothing valid is there.
pub(super) async fn spec(open: &Open, caller: &Caller, row: &Row) -> Result<Value, Problem> {
    let asking = Asking::of(&open.instance);
    let entries = open.instance.entries();
    let entries = Entries(&entries);
    let viewer = viewer(caller.user());
    let mut spec = match row.kind.as_str() {
        metrics_view::KIND => {
            let offered = offered(&asking, entries, (row.name.as_str(), None), &viewer).await?;
            of_view(&offered)
        }
        theme::KIND => spec_of(row).map_or(Value::Null, |spec| spec_json::declared(&spec, row.name.as_str())),
        explore::KIND => of_explore(&asking, entries, row, &viewer).await?,
        _ => {
            let resolvers = asking.resolvers(&entries);
            let name = row.name.as_str();
            let spec = resolvers.callable(name, &viewer).await.map_err(unresolved)?;
            json!({
                "display_name": spec.display_name,
                "description": spec.description,
                "arguments": resolvers.arguments_of(name).names().collect::<Vec<_>>(),
            })
        }
    };
    watershed_outputs::secrets::show(&mut spec, "");
    let spec = without_secrets(spec, &asking.secrets);
    Ok(answers::document(&spec, &open.instance))
}

/// Asks for the visible fields of a view, by its name and the explore through which it is seen.
async fn offered(
    asking: &Asking,
    entries: Entries<'_>,
    (view, through): (&str, Option<&Key>),
    viewer: &Viewer,
) -> Result<Offered, Problem> {
    let query = Query::of(view);
    let question = Question {
        query: &query,
        viewer,
        through,
        now: Moment::read(None)?.now,
        execution_time: None,
    };
    asking.views(&entries).offered(question).await.map_err(of_metrics)
}

/// Returns the part of a view's spec that its viewer may see.
pub(super) fn of_view(offered: &Offered) -> Value {
    let MetricsViewSpec {
        display_name,
        description,
        time_dimension,
        smallest_time_grain,
        first_day_of_week,
        first_month_of_year,
        dimensions,
        measures,
        ..
    } = &offered.spec;
    let dimensions = dimensions.iter().filter(|one| offered.shows(&one.name));
    let measures = measures.iter().filter(|one| offered.shows(&one.name));
    json!({
        "display_name": display_name,
        "description": description,
        "timeseries": time_dimension,
        "smallest_time_grain": smallest_time_grain,
        "first_day_of_week": first_day_of_week,
        "first_month_of_year": first_month_of_year,
        "dimensions": dimensions
            .map(|one| json!({"name": one.name, "display_name": one.display_name, "description": one.description}))
            .collect::<Vec<_>>(),
        "measures": measures
            .map(|one| {
                json!({
                    "name": one.name,
                    "display_name": one.display_name,
                    "description": one.description,
                    "format_preset": one.format_preset,
                    "format_d3": one.format_d3,
                    "valid_percent_of_total": one.valid_percent_of_total,
                })
            })
            .collect::<Vec<_>>(),
    })
}

/// The parts of an explore that name no field, and those of its defaults that the viewer may see.
const EXPLORE: [&str; 10] = [
    "display_name",
    "description",
    "banner",
    "theme",
    "embedded_theme",
    "time_ranges",
    "allow_custom_time_range",
    "time_zones",
    "lock_time_zone",
    "defaults",
];

async fn of_explore(
    asking: &Asking,
    entries: Entries<'_>,
    row: &Row,
    viewer: &Viewer,
) -> Result<Value, Problem> {
    let key = row.key();
    let state = row
        .state
        .as_ref()
        .and_then(|state| ExploreState::decode(state.as_ref()).ok());
    let valid = state.and_then(|state| state.valid_spec);
    let spec = valid.ok_or_else(|| {
        Problem::new(Code::NotBuilt, format!("`{key}` was never valid")).hint("run the project first")
    })?;
    let offered = offered(asking, entries, (&spec.metrics_view, Some(&key)), viewer).await?;
    // A selector that is no list of names is not resolved, and shows nothing.
    let shown = |selector: &Option<FieldSelector>| -> Vec<String> {
        let listed = selector.iter().filter(|selector| !selector.invert);
        let names = listed.flat_map(|selector| &selector.fields);
        names.filter(|name| offered.shows(name)).cloned().collect()
    };
    let (dimensions, measures) = (shown(&spec.dimensions), shown(&spec.measures));
    let mut spec = spec;
    if let Some(defaults) = &mut spec.defaults {
        for selector in [&mut defaults.dimensions, &mut defaults.measures] {
            let fields = shown(selector);
            let seen = FieldSelector {
                fields,
                ..FieldSelector::default()
            };
            *selector = Some(seen).filter(|seen| !seen.fields.is_empty());
        }
        if !offered.shows(&defaults.comparison_dimension) {
            defaults.comparison_dimension.clear();
            if defaults.comparison_mode == "dimension" {
                defaults.comparison_mode.clear();
            }
        }
    }
    let view = spec.metrics_view.clone();
    let declared = spec_json::declared(&Spec::Explore(Box::new(spec)), row.name.as_str());
    let part = |key: &str| declared.get(key).cloned().unwrap_or_default();
    let mut told = json!({ "metrics_view": view, "dimensions": dimensions, "measures": measures });
    for key in EXPLORE {
        told[key] = part(key);
    }
    Ok(told)
}
