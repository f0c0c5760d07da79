//! What the refs of a resource stand for, and why it is not looked at while one of them is missing or has failed.

use watershed_core::{Error, RefView};
use watershed_proto::Message;

use crate::model::failure;

/// Refuses to go on while something that is read is missing or has failed.
///
/// # Errors
/// The first ref that is missing, or has failed.
pub(crate) fn check(refs: &[RefView]) -> Result<(), Error> {
    for view in refs {
        if view.target.is_none() {
            return Err(failure::of_missing_ref(&view.reference));
        }
        if view.failed {
            return Err(failure::of_unchecked(&view.reference));
        }
    }
    Ok(())
}

/// The ref to a resource of a kind and name, compared without regard to case.
pub(crate) fn find<'a>(refs: &'a [RefView], kind: &str, name: &str) -> Option<&'a RefView> {
    let is_it = |view: &&RefView| {
        view.reference.kind.as_str() == kind
            && view.reference.name.as_str().to_lowercase() == name.to_lowercase()
    };
    refs.iter().find(is_it)
}

/// The state of what a ref stands for; none before it has one.
pub(crate) fn state<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.state.as_deref()?).ok()
}

/// The spec of what a ref stands for.
pub(crate) fn spec<S: Message + Default>(view: &RefView) -> Option<S> {
    S::decode(view.target.as_ref()?.spec.as_ref()).ok()
}
