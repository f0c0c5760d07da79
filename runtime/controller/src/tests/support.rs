//! Resources without a meaning, for tests of the controller.

use std::time::Duration;

use watershed_core::{Batch, Edit, Error, NewResource, Outcome};

use crate::{Context, Reconciler, Resource};

/// Timeout that is longer than any step of a test takes.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Reconciler that finds nothing to do.
pub(crate) struct Nothing;

impl Reconciler for Nothing {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::default())
    }
}

/// Declares a resource of kind `thing` with this name.
pub(crate) fn thing(name: &str) -> NewResource {
    Resource::declare("thing", name, &()).expect("nothing has bytes")
}

/// Returns a batch that creates `count` things, each named by its number.
pub(crate) fn things(count: usize) -> Batch {
    let edits = (0..count).map(|number| Edit::create(thing(&number.to_string())));
    Batch {
        edits: edits.collect(),
    }
}
