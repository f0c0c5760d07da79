//! Missing and failed refs of a resource, which keep it from being checked.

use watershed_compilers::Kind;
use watershed_core::{Error, RefView};
use watershed_outputs::{chosen::Chosen, failure};

use crate::model;

pub(crate) use watershed_outputs::refs::{find, spec, state};

/// Kinds of which nothing is made.
const CONNECTOR: &str = Kind::Connector.as_str();
const THEME: &str = Kind::Theme.as_str();

/// Refuses to go on while something that is read is missing, has failed, or was never built and is not going to be.
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

/// Refuses to read what was never made, if this run is not going to make it.
///
/// # Errors
/// If it is such a resource.
pub(crate) fn refuse_left_out(view: &RefView, chosen: &Chosen) -> Result<(), Error> {
    let Some(target) = view.target.as_ref().filter(|target| !chosen.holds(target.uid)) else {
        return Ok(());
    };
    let is_there = match target.kind.as_str() {
        model::KIND => model::claim(target).is_some(),
        // They are never left out.
        CONNECTOR | THEME => true,
        _ => target.last_success.is_some(),
    };
    match is_there {
        true => Ok(()),
        false => Err(failure::left_out_ref(&view.reference)),
    }
}
