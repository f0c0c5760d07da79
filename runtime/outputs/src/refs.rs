//! Look-ups among a resource's refs.

use watershed_compilers::Kind;
use watershed_core::RefView;
use watershed_proto::Message;

/// The kind of connectors, to which resources of several kinds refer.
pub const CONNECTOR: &str = Kind::Connector.as_str();

/// Finds a ref by kind and name, compared without case.
#[must_use]
pub fn find<'a>(refs: &'a [RefView], kind: &str, name: &str) -> Option<&'a RefView> {
    let is_it = |view: &&RefView| {
        view.reference.kind.as_str() == kind
            && view.reference.name.as_str().to_lowercase() == name.to_lowercase()
    };
    refs.iter().find(is_it)
}

/// Decodes the state of a ref's target; none before it has a state.
#[must_use]
pub fn state<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.state.as_deref()?).ok()
}

/// Decodes the spec of a ref's target.
#[must_use]
pub fn spec<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.spec.as_ref()).ok()
}
