//! The common part of dashboards, whose result depends only on their spec and refs, so that they are checked only when
//! either changes.

use watershed_controller::kind::AtStart;
use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy};
use watershed_core::{Error, Outcome, Parents, RefView, Work};
use watershed_outputs::{failure, selection::Chosen};
use watershed_proto::{Fault, MetricsViewSpec, MetricsViewState};

use crate::{metrics_view, refs};

/// Returns the options of a kind of dashboard. Dashboards are checked at start only if they had not settled.
pub(crate) fn options(kind: &str) -> KindOptions {
    KindOptions::new(kind)
        .retry(RetryPolicy::Never)
        .parents(Parents::Changed)
        .at_start(AtStart::AskIfUnsettled)
}

/// Returns an error for a dashboard that does not compile, or whose refs are missing or failed.
///
/// # Errors
/// The fault, or the first ref that is missing or has failed.
pub(crate) fn open(fault: Option<&Fault>, refs: &[RefView], chosen: &Chosen) -> Result<(), Error> {
    if let Some(fault) = fault {
        return Err(failure::from_fault(fault));
    }
    refs::check(refs, chosen)
}

/// Returns the last valid spec of a metrics view, by name.
///
/// # Errors
/// While it has not been.
pub(crate) fn metrics_view(refs: &[RefView], name: &str) -> Result<MetricsViewSpec, Error> {
    let view = refs::find(refs, metrics_view::KIND, name);
    let state = view.and_then(refs::state::<MetricsViewState>);
    state.and_then(|state| state.valid_spec).ok_or_else(|| {
        let message = format!("metrics view \"{name}\" has not been found to be valid");
        Error::transient("metrics-view-unchecked", message)
    })
}

/// Stores the result of a check that found no errors.
///
/// # Errors
/// When the state can't be written.
pub(crate) async fn keep<R: Reconciler>(context: &Context<R>, state: R::State) -> Result<Outcome, Error>
where
    R::State: PartialEq,
{
    if context.state() != Some(&state) {
        context.set_state(&state).await?;
    }
    Ok(Outcome::from_work(Work::Checked))
}
