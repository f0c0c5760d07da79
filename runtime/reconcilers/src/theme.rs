//! Themes: colours. There is nothing to make of them: they are there for dashboards to read.

use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Work};
use watershed_outputs::failure;
use watershed_proto::ThemeSpec;

use crate::{dashboard, messages::Proto};

/// The kind's name.
pub const KIND: &str = "theme";

/// The kind's options.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// Lets themes be.
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
