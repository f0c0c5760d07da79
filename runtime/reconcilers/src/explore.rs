//! Explores: dashboards over one metrics view, whose selectors are resolved to names of fields.

use std::sync::Arc;

use watershed_compilers::fields::{self, Fields};
use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome};
use watershed_outputs::{Asking, Outputs};
use watershed_proto::{DashboardDefaults, ExploreSpec, ExploreState, FieldSelector};

use crate::{
    dashboard,
    messages::Proto,
    selector::{self, Choosing},
};

/// The kind by which the controller knows explores.
pub const KIND: &str = "explore";

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// The reconciler of explores, which resolves their selectors.
pub struct ExploreReconciler {
    outputs: Arc<Outputs>,
}

impl ExploreReconciler {
    /// Creates the reconciler; the engine of `outputs` resolves patterns and expressions.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>) -> Self {
        Self { outputs }
    }
}

impl Reconciler for ExploreReconciler {
    type Spec = Proto<ExploreSpec>;
    type State = Proto<ExploreState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.outputs.chosen().holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let spec = &context.spec().0;
        dashboard::open(spec.fault.as_ref(), context.refs(), self.outputs.chosen())?;
        let view = dashboard::metrics_view(context.refs(), &spec.metrics_view)?;
        let engine = Asking {
            outputs: &self.outputs,
            cancel: context.cancellation(),
        };
        let paths = &context.row().paths;
        let valid = resolve(
            spec,
            &Fields::from_metrics_view(&view),
            &Choosing { engine, paths },
        )
        .await?;
        let valid_spec = Some(valid);
        dashboard::keep(&context, Proto(ExploreState { valid_spec })).await
    }
}

/// Returns the spec with selectors replaced by names of fields.
async fn resolve(spec: &ExploreSpec, view: &Fields, choosing: &Choosing<'_>) -> Result<ExploreSpec, Error> {
    let mut offered = choosing
        .choose(spec.dimensions.as_ref(), &view.dimensions, "dimension")
        .await?;
    // Times are looked along, not grouped by.
    offered.retain(|name| *name != view.time);
    let computed = choosing
        .choose(spec.measures.as_ref(), &view.measures, "measure")
        .await?;
    let defaults = match &spec.defaults {
        None => None,
        Some(defaults) => Some(opening(defaults, &offered, &computed, choosing).await?),
    };
    Ok(ExploreSpec {
        dimensions: Some(listed(offered)),
        measures: Some(listed(computed)),
        defaults,
        metrics_view_at: None,
        ..spec.clone()
    })
}

async fn opening(
    defaults: &DashboardDefaults,
    dimensions: &[String],
    measures: &[String],
    choosing: &Choosing<'_>,
) -> Result<DashboardDefaults, Error> {
    let mut opening = defaults.clone();
    opening.comparison_at = None;
    if let Some(selector) = &defaults.dimensions {
        let chosen = choosing.choose(Some(selector), dimensions, "dimension").await?;
        opening.dimensions = Some(listed(chosen));
    }
    if let Some(selector) = &defaults.measures {
        let chosen = choosing.choose(Some(selector), measures, "measure").await?;
        opening.measures = Some(listed(chosen));
    }
    let unknown = fields::unknown_in_comparison(defaults, dimensions);
    selector::refuse(unknown.into_iter().collect(), choosing.paths)?;
    Ok(opening)
}

fn listed(fields: Vec<String>) -> FieldSelector {
    FieldSelector {
        fields,
        ..FieldSelector::default()
    }
}
