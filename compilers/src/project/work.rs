//! Work of an `apply`.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::Claim;
use crate::resource::{Resource, ResourceKey};

/// The groups and names that an `apply` has to look at.
#[derive(Default)]
pub(super) struct Work {
    /// Groups whose files, or what their compilation depends on, changed.
    pub(super) groups: BTreeSet<String>,
    /// `.env` files that came, went, changed, or began or ceased to count.
    pub(super) env_files: BTreeSet<String>,
    /// Names whose claims changed, with whether they were claimed and who won.
    pub(super) names: BTreeMap<ResourceKey, Option<Claim>>,
    /// Tables that models asked for, or ask for no longer, in lower case.
    pub(super) tables: BTreeSet<String>,
    /// Groups to be linked anew.
    pub(super) links: BTreeSet<String>,
    /// Resources as they were before, of names that were touched.
    pub(super) before: BTreeMap<ResourceKey, Option<Resource>>,
    pub(super) findings: bool,
}
