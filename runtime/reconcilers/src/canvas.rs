//! Canvases: rows of components, whose metrics views have to agree on how time is cut.

use std::{collections::BTreeMap, sync::Arc};

use watershed_controller::{AtStart, Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Parents, Place, RefView, Work};
use watershed_proto::{CanvasSpec, CanvasState, ComponentState};

use crate::{component, messages::Proto, model::failure, places, refs, selector::unknown};

/// The kind's name.
pub const KIND: &str = "canvas";

/// The kind's options.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions {
        parents: Parents::Changed,
        at_start: AtStart::AskIfUnsettled,
        ..KindOptions::new(KIND)
    }
}

/// Checks canvases.
pub struct CanvasReconciler;

impl Reconciler for CanvasReconciler {
    type Spec = Proto<CanvasSpec>;
    type State = Proto<CanvasState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::of_fault(fault));
        }
        refs::check(context.refs())?;
        let views = views(context.refs());
        let paths = &context.row().paths;
        agree(&views, paths)?;
        fields(spec, &views, paths)?;
        let mut valid = CanvasSpec {
            filter_spots: Vec::new(),
            ..spec.clone()
        };
        if let Some(defaults) = &mut valid.defaults {
            defaults.comparison_at = None;
        }
        let state = Proto(CanvasState {
            valid_spec: Some(valid),
        });
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

/// What its components know of their metrics views, by name.
fn views(refs: &[RefView]) -> BTreeMap<String, ComponentState> {
    let components = refs
        .iter()
        .filter(|view| view.reference.kind.as_str() == component::KIND);
    let states = components.filter_map(refs::state::<ComponentState>);
    states
        .filter(|state| !state.metrics_view.is_empty())
        .map(|state| (state.metrics_view.to_lowercase(), state))
        .collect()
}

/// Charts side by side have to begin their weeks and years on the same day.
fn agree(views: &BTreeMap<String, ComponentState>, paths: &[Arc<str>]) -> Result<(), Error> {
    let mut views = views.values();
    let Some(first) = views.next() else { return Ok(()) };
    for other in views {
        let what = if other.first_day_of_week != first.first_day_of_week {
            "first_day_of_week"
        } else if other.first_month_of_year != first.first_month_of_year {
            "first_month_of_year"
        } else {
            continue;
        };
        let message = format!(
            "metrics views \"{}\" and \"{}\" differ in `{what}`",
            first.metrics_view, other.metrics_view
        );
        return Err(Error {
            place: Some(places::of_spot(paths, None)),
            hint: Some("what stands on one canvas has to cut time alike".into()),
            ..Error::permanent("views-differ", message)
        });
    }
    Ok(())
}

/// Refuses names of dimensions that none of the metrics views has.
fn fields(
    spec: &CanvasSpec,
    views: &BTreeMap<String, ComponentState>,
    paths: &[Arc<str>],
) -> Result<(), Error> {
    let known: Vec<&str> = views
        .values()
        .flat_map(|view| &view.dimensions)
        .map(String::as_str)
        .collect();
    let require = |name: &str, place: Place| {
        let is_there = known.iter().any(|one| one.eq_ignore_ascii_case(name));
        if is_there {
            Ok(())
        } else {
            Err(unknown(name, &known, "dimension", place))
        }
    };
    let filters = spec.pinned_filters.iter().chain(&spec.required_filters);
    for (index, name) in filters.enumerate() {
        require(name, places::of_spot(paths, spec.filter_spots.get(index)))?;
    }
    if let Some(defaults) = spec
        .defaults
        .as_ref()
        .filter(|one| !one.comparison_dimension.is_empty())
    {
        let place = places::of_spot(paths, defaults.comparison_at.as_ref());
        require(&defaults.comparison_dimension, place)?;
    }
    Ok(())
}
