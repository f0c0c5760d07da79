//! APIs: queries that programs call by name. Nothing is built for them: [`resolvers`](crate::resolvers) answer calls.

use watershed_controller::{Context, KindOptions, Reconciler};
use watershed_core::{Error, Outcome, Work};
use watershed_outputs::failure;
use watershed_proto::ApiSpec;
use watershed_resolvers::check_names;

use crate::{dashboard, messages::Proto};

pub use watershed_resolvers::api::KIND;

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    dashboard::options(KIND)
}

/// The reconciler of APIs, which checks that their refs exist and are healthy.
pub struct ApiReconciler;

impl Reconciler for ApiReconciler {
    type Spec = Proto<ApiSpec>;
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        let missing = context.refs().iter().find(|view| view.target.is_none());
        if let Some(missing) = missing {
            return Err(failure::missing_ref(&missing.reference));
        }
        match spec.data.as_ref().map_or("", |data| data.resolver.as_str()) {
            "ai" => Err(failure::unsupported_data("ai")),
            _ => {
                spec.data
                    .as_ref()
                    .map_or(Ok(()), |data| check_names(data, context.refs()))?;
                Ok(Outcome::from_work(Work::Checked))
            }
        }
    }
}
