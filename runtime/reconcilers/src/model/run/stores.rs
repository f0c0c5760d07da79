//! Access to stores of objects, as connectors give it.

use watershed_controller::Select;
use watershed_core::Error;
use watershed_drivers::objects::{Access, Driver};
use watershed_outputs::{
    access,
    refs::{self, CONNECTOR},
};
use watershed_proto::{ConnectorSpec, Message as _};

use super::subject::Subject;
use crate::model::failure;

/// The access that a connector gives to a store; where it is none of its driver, nobody logs in.
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
        ..Access::default()
    })
}

/// A connector as the catalog has it, also one that goes in the same edit.
pub(super) fn connector_in_catalog(subject: Subject<'_>, name: &str) -> Option<ConnectorSpec> {
    let select = Select::kind(CONNECTOR).with_deleted();
    let all = subject.context.controller().list(select).resources;
    let found = all.into_iter().find(|it| it.row.name.as_str() == name)?;
    ConnectorSpec::decode(found.row.spec.as_ref()).ok()
}

/// The access that a connector gives; none if it is no store's.
pub(super) fn opened_access(subject: Subject<'_>, spec: &ConnectorSpec) -> Result<Option<Access>, Error> {
    let variables = subject.outputs().secrets().open(&spec.variables)?;
    let access = access::access(
        spec,
        &variables,
        access::Surroundings {
            environment: &subject.model.environment,
            root: &subject.model.root,
        },
    );
    access.map_err(|error| failure::from_render(&error))
}
