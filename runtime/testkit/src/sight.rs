//! The end of a play, in the form that is compared.

use std::collections::BTreeMap;

/// The end of a play, to compare with that of another.
pub(super) struct Sight<S> {
    pub(super) outside: S,
    /// States as text, by the names of their resources.
    pub(super) states: BTreeMap<String, Option<String>>,
    /// Errors of failed resources, by resource key.
    pub(super) failed: BTreeMap<String, String>,
}
