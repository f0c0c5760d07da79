//! Access to object stores through connectors.

use watershed_controller::Select;
use watershed_core::Error;
use watershed_drivers::objects::{Access, Driver};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::{
    access,
    refs::{self, CONNECTOR},
};
use watershed_proto::{ConnectorSpec, Message as _};

use super::subject::Subject;
use crate::model::failure;

/// Returns the access to a store through a connector; anonymous if the connector is not for a store of this driver.
pub(super) fn access_of(subject: Subject<'_>, connector: &str, driver: Driver) -> Result<Access, Error> {
    // An address of another store is reached by the connector that bears the name of its driver.
    for name in [connector, driver.as_str()] {
        let found = refs::find(subject.context.refs(), CONNECTOR, name);
        let Some(spec) = found.and_then(refs::spec::<ConnectorSpec>) else {
            continue;
        };
        let access = opened_access(subject, &spec)?;
        if let Some(access) = access.filter(|access| access.driver == driver) {
            return Ok(access);
        }
    }
    Ok(Access {
        driver,
        egress: subject.outputs().egress().clone(),
        ..Access::default()
    })
}

/// Refuses an address that a confined project may not ask for with this access.
///
/// # Errors
/// When the operator lists no prefix of the address, or of the store's endpoint.
pub(crate) fn refuse_unreached(sandbox: &Sandbox, access: &Access, address: &str) -> Result<(), Error> {
    match sandbox.reaches(access, address) {
        true => Ok(()),
        false => Err(failure::confined_store(address)),
    }
}

/// Returns the spec of a connector in the catalog, including one that is being deleted.
pub(super) fn connector_in_catalog(subject: Subject<'_>, name: &str) -> Option<ConnectorSpec> {
    let select = Select::kind(CONNECTOR).with_deleted();
    let all = subject.context.controller().list(select).resources;
    let found = all.into_iter().find(|it| it.row.name.as_str() == name)?;
    ConnectorSpec::decode(found.row.spec.as_ref()).ok()
}

/// Returns the access that a connector gives, with variables opened; none if it is not for an object store.
pub(super) fn opened_access(subject: Subject<'_>, spec: &ConnectorSpec) -> Result<Option<Access>, Error> {
    let variables = subject.outputs().secrets().open(&spec.variables)?;
    let access = access::access(
        spec,
        &variables,
        access::Surroundings {
            environment: &subject.model.environment,
            root: &subject.model.root,
            is_confined: subject.outputs().sandbox().is_some(),
        },
    );
    let access = access.map_err(|error| failure::from_render(&error))?;
    Ok(access.map(|access| Access {
        egress: subject.outputs().egress().clone(),
        ..access
    }))
}
