//! The pending work of one call of `apply`.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::Claim;
use crate::resource::{Resource, ResourceKey};

/// The groups, names and files that a call of `apply` must process.
#[derive(Default)]
pub(super) struct Work {
    /// Groups to be compiled again.
    pub(super) groups: BTreeSet<String>,
    /// `.env` files that were added, removed, changed, ignored or no longer ignored.
    pub(super) env_files: BTreeSet<String>,
    /// Names whose claims changed, each with the winner before, if there was one.
    pub(super) names: BTreeMap<ResourceKey, Option<Claim>>,
    /// Tables, in lower case, that models began or ceased to write.
    pub(super) tables: BTreeSet<String>,
    /// Groups to be linked again.
    pub(super) links: BTreeSet<String>,
    /// The resources of touched names before the changes; none for names without one.
    pub(super) before: BTreeMap<ResourceKey, Option<Resource>>,
    pub(super) findings: bool,
}
