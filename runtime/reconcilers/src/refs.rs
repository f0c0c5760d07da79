//! Checks of a resource's refs, of which missing and failed ones block it.

use watershed_core::{Error, RefView};
use watershed_outputs::{failure, selection::Chosen};

use crate::model::refuse_left_out;

pub(crate) use watershed_outputs::refs::{find, spec, state};

/// Returns an error if a ref is missing, has failed, or was never built and is not selected to be.
///
/// # Errors
/// The first ref that is one of these.
pub(crate) fn check(refs: &[RefView], chosen: &Chosen) -> Result<(), Error> {
    for view in refs {
        if view.target.is_none() {
            return Err(failure::missing_ref(&view.reference));
        }
        refuse_left_out(view, chosen)?;
        if view.failed {
            return Err(failure::unchecked_ref(&view.reference));
        }
    }
    Ok(())
}
