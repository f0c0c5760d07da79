//! Targets of a resource's refs.

use watershed_compilers::Kind;
use watershed_core::RefView;
use watershed_proto::Message;

/// The kind of connectors, which resources of several kinds refer to.
pub const CONNECTOR: &str = Kind::Connector.as_str();

/// The ref to a resource of a kind and name, compared without regard to case.
#[must_use]
pub fn find<'a>(refs: &'a [RefView], kind: &str, name: &str) -> Option<&'a RefView> {
    let is_it = |view: &&RefView| {
        view.reference.kind.as_str() == kind
            && view.reference.name.as_str().to_lowercase() == name.to_lowercase()
    };
    refs.iter().find(is_it)
}

/// The state of what a ref stands for; none before it has one.
#[must_use]
pub fn state<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.state.as_deref()?).ok()
}

/// The spec of what a ref stands for.
#[must_use]
pub fn spec<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.spec.as_ref()).ok()
}
