//! Themes: colours for dashboards, for which nothing is built.

use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Work};
use watershed_outputs::failure;
use watershed_proto::ThemeSpec;

use crate::{dashboard, messages::Proto};

/// The kind by which the controller knows themes.
pub const KIND: &str = "theme";

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// The reconciler of themes, which does nothing.
pub struct ThemeReconciler;

impl Reconciler for ThemeReconciler {
    type Spec = Proto<ThemeSpec>;
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        match &context.spec().0.fault {
            Some(fault) => Err(failure::from_fault(fault)),
            None => Ok(Outcome::from_work(Work::Checked)),
        }
    }
}
