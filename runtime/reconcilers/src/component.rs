//! Components: parts of canvases, whose fields must exist in their metrics views.

mod queries;

use watershed_compilers::fields::{self, Fields};
use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome};
use watershed_outputs::selection::Chosen;
use watershed_proto::{ComponentSpec, ComponentState};

use crate::{dashboard, messages::Proto, selector};

/// The kind by which the controller knows components.
pub const KIND: &str = "component";

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// The reconciler of components, which checks them.
pub struct ComponentReconciler {
    chosen: Chosen,
}

impl ComponentReconciler {
    /// Creates the reconciler for the resources in a selection.
    #[must_use]
    pub fn new(chosen: Chosen) -> Self {
        Self { chosen }
    }
}

impl Reconciler for ComponentReconciler {
    type Spec = Proto<ComponentSpec>;
    type State = Proto<ComponentState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.chosen.holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        dashboard::open(spec.fault.as_ref(), context.refs(), &self.chosen)?;
        let mut state = ComponentState::default();
        if let Some(name) = fields::metrics_view_of(spec) {
            let view = dashboard::metrics_view(context.refs(), name)?;
            let unknown = fields::unknown_in_component(spec, &Fields::from_metrics_view(&view));
            selector::refuse(unknown, &context.row().paths)?;
            state.metrics_view = name.to_owned();
            state.queries = queries::queries(spec, &view);
            state.first_day_of_week = view.first_day_of_week;
            state.first_month_of_year = view.first_month_of_year;
            state.dimensions = view.dimensions.into_iter().map(|one| one.name).collect();
        }
        state.valid_spec = Some(ComponentSpec {
            at: None,
            spots: std::collections::BTreeMap::new(),
            ..spec.clone()
        });
        dashboard::keep(&context, Proto(state)).await
    }
}
