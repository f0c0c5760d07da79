//! Components: one part of a canvas. The fields that it names are those of its metrics view.

use watershed_controller::{AtStart, Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Parents, Work};
use watershed_proto::{ComponentSpec, ComponentState, MetricsViewSpec, MetricsViewState, Value};

use crate::{messages::Proto, metrics_view, model::failure, places, refs, selector::unknown};

/// The kind's name.
pub const KIND: &str = "component";

/// The kind's options.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions {
        parents: Parents::Changed,
        at_start: AtStart::AskIfUnsettled,
        ..KindOptions::new(KIND)
    }
}

/// Checks components.
pub struct ComponentReconciler;

impl Reconciler for ComponentReconciler {
    type Spec = Proto<ComponentSpec>;
    type State = Proto<ComponentState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::of_fault(fault));
        }
        refs::check(context.refs())?;
        let mut state = ComponentState::default();
        if let Some(name) = metrics_view_of(spec) {
            let view = refs::find(context.refs(), metrics_view::KIND, name);
            let view = view
                .and_then(refs::state::<MetricsViewState>)
                .and_then(|state| state.valid_spec);
            let view = view.ok_or_else(|| {
                let message = format!("metrics view \"{name}\" has not been found to be valid");
                Error::transient("metrics-view-unchecked", message)
            })?;
            check(spec, &view, &context.row().paths)?;
            state.metrics_view = name.to_owned();
            state.first_day_of_week = view.first_day_of_week;
            state.first_month_of_year = view.first_month_of_year;
            state.dimensions = view.dimensions.into_iter().map(|one| one.name).collect();
        }
        state.valid_spec = Some(ComponentSpec {
            at: None,
            spots: std::collections::BTreeMap::new(),
            ..spec.clone()
        });
        let state = Proto(state);
        if context.state() != Some(&state) {
            let written = context.set_state(&state).await;
            written.map_err(|error| Error::transient("state", error.to_string()))?;
        }
        Ok(Outcome {
            work: Work::Checked,
            retrigger: None,
        })
    }
}

/// The metrics view that a component reads, if it reads one.
fn metrics_view_of(spec: &ComponentSpec) -> Option<&str> {
    let properties = spec.renderer_properties.as_ref()?;
    properties.str("metrics_view").filter(|name| !name.is_empty())
}

/// What a setting of a renderer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Measures,
    Dimensions,
    /// Either.
    Fields,
}

/// Settings that name fields; `key.key` is a setting inside another.
const SETTINGS: [(&str, Names); 22] = [
    ("measure", Names::Measures),
    ("measures", Names::Measures),
    ("dimension", Names::Dimensions),
    ("dimensions", Names::Dimensions),
    ("row_dimensions", Names::Dimensions),
    ("col_dimensions", Names::Dimensions),
    ("columns", Names::Fields),
    ("x.field", Names::Fields),
    ("x.fields", Names::Fields),
    ("y.field", Names::Fields),
    ("y.fields", Names::Fields),
    ("y1.field", Names::Fields),
    ("y1.fields", Names::Fields),
    ("y2.field", Names::Fields),
    ("y2.fields", Names::Fields),
    ("color.field", Names::Fields),
    ("size.field", Names::Fields),
    ("stage.field", Names::Fields),
    ("measure.field", Names::Measures),
    ("dimension.field", Names::Dimensions),
    ("tooltip.field", Names::Fields),
    ("theta.field", Names::Fields),
];

/// What a time column by a grain is called behind the column's name.
const GRAIN_SUFFIX: &str = "_rill_TIME_GRAIN_";

/// Names that stand for no field of the metrics view.
const OTHERS: [&str; 2] = ["rill_measures", "value"];

/// Refuses names that are no fields of the metrics view.
fn check(spec: &ComponentSpec, view: &MetricsViewSpec, paths: &[std::sync::Arc<str>]) -> Result<(), Error> {
    // What these draw is said in a language of its own.
    if matches!(
        spec.renderer.as_str(),
        "vega_lite" | "custom_chart" | "markdown" | "image"
    ) {
        return Ok(());
    }
    let measures: Vec<&str> = view.measures.iter().map(|one| one.name.as_str()).collect();
    let mut dimensions: Vec<&str> = view.dimensions.iter().map(|one| one.name.as_str()).collect();
    dimensions.extend((!view.time_dimension.is_empty()).then_some(view.time_dimension.as_str()));
    let all: Vec<&str> = dimensions.iter().chain(&measures).copied().collect();
    for (setting, names) in SETTINGS {
        let (what, known) = match names {
            Names::Measures => ("measure", &measures),
            Names::Dimensions => ("dimension", &dimensions),
            Names::Fields => ("field", &all),
        };
        for (key, name) in texts(spec, setting) {
            let plain = name.split(GRAIN_SUFFIX).next().unwrap_or(name);
            let is_there = known.iter().any(|one| one.eq_ignore_ascii_case(plain));
            if !is_there && !OTHERS.contains(&plain) {
                let spot = spec.spots.get(&key).or(spec.at.as_ref());
                return Err(unknown(plain, known, what, places::of_spot(paths, spot)));
            }
        }
    }
    Ok(())
}

/// The texts of a setting: one, or a list of them, each with the key of its place.
fn texts<'a>(spec: &'a ComponentSpec, setting: &str) -> Vec<(String, &'a str)> {
    let Some(properties) = &spec.renderer_properties else {
        return Vec::new();
    };
    let (first, second) = match setting.split_once('.') {
        Some((first, second)) => (first, Some(second)),
        None => (setting, None),
    };
    let outer = properties.get(first);
    let value = match second {
        None => outer,
        Some(second) => outer.and_then(Value::as_map).and_then(|map| map.get(second)),
    };
    let Some(value) = value else { return Vec::new() };
    if let Some(text) = value.as_str() {
        return vec![(setting.to_owned(), text)];
    }
    let items = value.as_list().unwrap_or_default().iter().enumerate();
    items
        .filter_map(|(index, item)| Some((format!("{setting}.{index}"), item.as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::{MapValue, MetricsViewDimension, MetricsViewMeasure, Spot};

    use super::*;

    fn component(renderer: &str, setting: &str, value: Value) -> ComponentSpec {
        let fields = match setting.split_once('.') {
            None => BTreeMap::from([(setting.to_owned(), value)]),
            Some((outer, inner)) => BTreeMap::from([(
                outer.to_owned(),
                Value::from(BTreeMap::from([(inner.to_owned(), value)])),
            )]),
        };
        ComponentSpec {
            renderer: renderer.into(),
            renderer_properties: Some(MapValue { fields }),
            spots: BTreeMap::from([(setting.to_owned(), Spot { line: 7, column: 3 })]),
            ..ComponentSpec::default()
        }
    }

    fn told(component: &ComponentSpec) -> Option<(String, u32)> {
        let view = MetricsViewSpec {
            time_dimension: "day".into(),
            dimensions: vec![MetricsViewDimension {
                name: "port".into(),
                ..Default::default()
            }],
            measures: vec![MetricsViewMeasure {
                name: "flights".into(),
                ..Default::default()
            }],
            ..MetricsViewSpec::default()
        };
        let error = check(component, &view, &["canvases/a.yaml".into()]).err()?;
        Some((
            error.message.to_string(),
            error.place.map_or(0, |place| place.line),
        ))
    }

    #[test]
    fn names_of_fields_are_found_wherever_a_renderer_has_them() {
        let list =
            |names: &[&str]| Value::from(names.iter().map(|name| Value::from(*name)).collect::<Vec<_>>());
        for (renderer, setting, value) in [
            ("kpi", "measure", "Flights".into()),
            ("leaderboard", "dimensions", list(&["port"])),
            ("line_chart", "x.field", "day".into()),
            ("pivot", "col_dimensions", list(&["day_rill_TIME_GRAIN_MONTH"])),
            ("bar_chart", "color.field", "rill_measures".into()),
            ("vega_lite", "measure", "anything".into()),
            ("bar_chart", "color", "primary".into()),
        ] {
            assert_eq!(
                told(&component(renderer, setting, value)),
                None,
                "{renderer} {setting}"
            );
        }
        let wrong = told(&component("line_chart", "y.field", "flihgts".into()));
        assert_eq!(
            wrong,
            Some(("the metrics view has no field \"flihgts\"".into(), 7))
        );
        assert!(told(&component("kpi", "measure", "port".into())).is_some());
        assert!(told(&component("table", "columns", list(&["port", "nothing"]))).is_some());
    }
}
