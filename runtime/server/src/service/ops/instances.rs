//! The instances of an environment.

use watershed_api::Problem;
use watershed_api::documents::{InstanceEntry, InstanceState, InstancesDocument};
use watershed_api::request::NoInput;

use crate::kept::Moment;
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;

/// Lists the instances of the place, which has exactly one.
pub(crate) async fn instances(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<InstancesDocument, Problem> {
    let (state, since, address) = match place.running() {
        Ok(running) => {
            let instance = &running.instance;
            (
                InstanceState::Live,
                Some(instance.opened),
                instance.address.get().cloned(),
            )
        }
        Err(_) => (
            InstanceState::AtRest,
            Moment::End.last(&place.state().path()),
            None,
        ),
    };
    let project = place.project();
    Ok(InstancesDocument {
        schema: InstancesDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        instances: vec![InstanceEntry {
            name: place.options().name.clone(),
            state,
            since,
            address,
        }],
    })
}
