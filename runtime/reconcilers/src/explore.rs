//! Explores: a dashboard over one metrics view. What it offers is resolved to names of fields that are there.

use std::sync::Arc;

use watershed_controller::{AtStart, Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Parents, Place, Work};
use watershed_proto::{
    DashboardDefaults, ExploreSpec, ExploreState, FieldSelector, MetricsViewSpec, MetricsViewState,
};

use crate::{
    asking::Asking,
    messages::Proto,
    metrics_view,
    model::failure,
    outputs::Outputs,
    places, refs,
    selector::{Choosing, unknown},
};

/// The kind's name.
pub const KIND: &str = "explore";

/// The kind's options. What an explore is, its refs say: while they stay it is not asked.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions {
        parents: Parents::Changed,
        at_start: AtStart::AskIfUnsettled,
        ..KindOptions::new(KIND)
    }
}

/// Resolves explores.
pub struct ExploreReconciler {
    outputs: Arc<Outputs>,
}

impl ExploreReconciler {
    /// One that asks the engine of `outputs` what patterns and expressions mean.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>) -> Self {
        Self { outputs }
    }
}

impl Reconciler for ExploreReconciler {
    type Spec = Proto<ExploreSpec>;
    type State = Proto<ExploreState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::of_fault(fault));
        }
        refs::check(context.refs())?;
        let view = refs::find(context.refs(), metrics_view::KIND, &spec.metrics_view);
        let view = view
            .and_then(refs::state::<MetricsViewState>)
            .and_then(|state| state.valid_spec)
            .ok_or_else(|| unchecked(&spec.metrics_view))?;
        let engine = Asking {
            outputs: &self.outputs,
            cancel: context.cancellation(),
        };
        let paths = &context.row().paths;
        let valid = resolve(spec, &view, &Choosing { engine, paths }).await?;
        let state = Proto(ExploreState {
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

fn unchecked(name: &str) -> Error {
    Error::transient(
        "metrics-view-unchecked",
        format!("metrics view \"{name}\" has not been found to be valid"),
    )
}

/// The spec with names of fields in place of selectors.
async fn resolve(
    spec: &ExploreSpec,
    view: &MetricsViewSpec,
    choosing: &Choosing<'_>,
) -> Result<ExploreSpec, Error> {
    let is_time = |name: &str| name == view.time_dimension;
    let dimensions: Vec<&str> = view.dimensions.iter().map(|one| one.name.as_str()).collect();
    let measures: Vec<&str> = view.measures.iter().map(|one| one.name.as_str()).collect();
    let mut offered = choosing
        .choose(spec.dimensions.as_ref(), &dimensions, "dimension")
        .await?;
    // Times are looked along, not grouped by.
    offered.retain(|name| !is_time(name));
    let computed = choosing
        .choose(spec.measures.as_ref(), &measures, "measure")
        .await?;
    let defaults = match &spec.defaults {
        None => None,
        Some(defaults) => {
            let dimensions: Vec<&str> = offered.iter().map(String::as_str).collect();
            let measures: Vec<&str> = computed.iter().map(String::as_str).collect();
            Some(opening(defaults, &dimensions, &measures, choosing).await?)
        }
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
    dimensions: &[&str],
    measures: &[&str],
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
    let compared = defaults.comparison_dimension.as_str();
    let is_there = |name: &&str| name.eq_ignore_ascii_case(compared);
    if !compared.is_empty() && !dimensions.iter().any(is_there) {
        let place: Place = places::of_spot(choosing.paths, defaults.comparison_at.as_ref());
        return Err(unknown(compared, dimensions, "dimension", place));
    }
    Ok(opening)
}

fn listed(fields: Vec<String>) -> FieldSelector {
    FieldSelector {
        fields,
        ..FieldSelector::default()
    }
}
