//! The end of a play, as it is compared with the end of another one.

use std::collections::BTreeMap;

/// The end of a play, as it is compared.
pub(super) struct Sight<S> {
    pub(super) outside: S,
    /// By the names of their resources.
    pub(super) states: BTreeMap<String, Option<String>>,
    /// The resources that fail, with their errors.
    pub(super) failed: BTreeMap<String, String>,
}
