//! Canvases: rows of components, whose metrics views must agree on the start of weeks and years.

use std::{collections::BTreeMap, sync::Arc};

use watershed_compilers::fields;
use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, RefView};
use watershed_outputs::selection::Chosen;
use watershed_proto::{CanvasSpec, CanvasState, ComponentState};

use crate::{component, dashboard, messages::Proto, places, refs, selector};

/// The kind by which the controller knows canvases.
pub const KIND: &str = "canvas";

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// The reconciler of canvases, which checks them.
pub struct CanvasReconciler {
    chosen: Chosen,
}

impl CanvasReconciler {
    /// Creates the reconciler for the resources in a selection.
    #[must_use]
    pub fn new(chosen: Chosen) -> Self {
        Self { chosen }
    }
}

impl Reconciler for CanvasReconciler {
    type Spec = Proto<CanvasSpec>;
    type State = Proto<CanvasState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.chosen.holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        dashboard::open(spec.fault.as_ref(), context.refs(), &self.chosen)?;
        let views = views(context.refs());
        let paths = &context.row().paths;
        agree(&views, paths)?;
        let known = views.values().flat_map(|view| view.dimensions.clone());
        selector::refuse(fields::unknown_in_canvas(spec, &known.collect::<Vec<_>>()), paths)?;
        let mut valid = CanvasSpec {
            filter_spots: Vec::new(),
            ..spec.clone()
        };
        if let Some(defaults) = &mut valid.defaults {
            defaults.comparison_at = None;
        }
        let valid_spec = Some(valid);
        dashboard::keep(&context, Proto(CanvasState { valid_spec })).await
    }
}

/// Returns the states of a canvas's components, by name.
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

/// Returns an error if two components begin their weeks or years on different days.
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
            place: Some(places::from_spot(paths, None)),
            hint: Some("what stands on one canvas has to cut time alike".into()),
            ..Error::permanent("views-differ", message)
        });
    }
    Ok(())
}
