//! Kinds known to the catalog, registered or not.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use crate::types::index::KindId;
use crate::{Kind, KindOptions};
use rustc_hash::FxBuildHasher;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct KindEntry {
    pub(super) kind: Kind,
    /// Options of the kind; none if no reconciler is registered here.
    pub(super) options: Option<KindOptions>,
    /// True if resources may be created although the kind has no reconciler here.
    is_passive: bool,
}

impl KindEntry {
    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns true if the kind is registered, with a reconciler or as passive.
    pub(crate) fn is_registered(&self) -> bool {
        self.options.is_some() || self.is_passive
    }

    pub(crate) fn options(&self) -> Option<&KindOptions> {
        self.options.as_ref()
    }
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Kinds {
    entries: Vec<KindEntry>,
    by_name: HashMap<Kind, KindId, FxBuildHasher>,
    /// Smallest `timed_patience` of the registered kinds; none if there are none.
    timed_patience: Option<Duration>,
}

impl Kinds {
    pub(super) fn register(&mut self, options: KindOptions) -> bool {
        if options.passive {
            let id = self.intern(&options.kind);
            self[id].is_passive = true;
            return true;
        }
        let id = self.intern(&options.kind.clone());
        if self[id].options.is_some() {
            return false;
        }
        let patience = options.timed_patience;
        self.timed_patience = Some(self.timed_patience.map_or(patience, |least| least.min(patience)));
        self[id].options = Some(options);
        true
    }

    pub(crate) fn least_timed_patience(&self) -> Duration {
        self.timed_patience.unwrap_or(Duration::MAX)
    }

    pub(crate) fn longest_nudging_interval(&self) -> Duration {
        let options = self.entries.iter().filter_map(|entry| entry.options.as_ref());
        options
            .map(|options| options.nudging.interval)
            .max()
            .unwrap_or_default()
    }

    pub(crate) fn find(&self, kind: &Kind) -> Option<KindId> {
        self.by_name.get(kind).copied()
    }

    pub(super) fn intern(&mut self, kind: &Kind) -> KindId {
        if let Some(id) = self.find(kind) {
            return id;
        }
        let id = KindId::new(u32::try_from(self.entries.len()).expect("fewer than 2^32 kinds"));
        self.entries.push(KindEntry {
            kind: kind.clone(),
            options: None,
            is_passive: false,
        });
        self.by_name.insert(kind.clone(), id);
        id
    }

    /// Lists every known kind, in order of first use.
    pub(crate) fn ids(&self) -> impl Iterator<Item = KindId> + use<> {
        (0..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).map(KindId::new)
    }
}

impl Index<KindId> for Kinds {
    type Output = KindEntry;

    fn index(&self, id: KindId) -> &KindEntry {
        &self.entries[id.index()]
    }
}

impl IndexMut<KindId> for Kinds {
    fn index_mut(&mut self, id: KindId) -> &mut KindEntry {
        &mut self.entries[id.index()]
    }
}
