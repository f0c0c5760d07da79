//! Addresses of services, for the programs that refer to them.

use std::collections::BTreeMap;

use watershed_controller::Resource;
use watershed_core::RefView;

use super::record::ServiceRecord;

/// Returns the addresses of the services that are referred to, by variable (rule W17).
pub(crate) fn addresses(refs: &[RefView]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for view in refs
        .iter()
        .filter(|view| view.reference.kind.as_str() == super::KIND)
    {
        let state = view
            .target
            .as_deref()
            .map(Resource::state_of::<ServiceRecord>)
            .and_then(Result::ok)
            .flatten();
        if let Some(state) = state {
            found.extend(state.addresses(view.reference.name.as_str()));
        }
    }
    found
}
