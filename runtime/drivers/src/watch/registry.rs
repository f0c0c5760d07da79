//! Registry of watched folders with their subscriptions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};

use super::inbox::{ChangedPaths, Inbox};

/// The subscriptions of one watcher.
#[derive(Debug, Default)]
pub(super) struct Registry {
    next: u64,
    inboxes: BTreeMap<u64, Arc<Inbox>>,
    folders: HashMap<PathBuf, BTreeSet<u64>>,
}

impl Registry {
    pub(super) fn open(&mut self, inbox: Arc<Inbox>) -> u64 {
        self.next += 1;
        self.inboxes.insert(self.next, inbox);
        self.next
    }

    pub(super) fn close(&mut self, id: u64) {
        self.inboxes.remove(&id);
    }

    /// Registers a folder for a subscription. Returns true if nobody watched it before.
    pub(super) fn add(&mut self, folder: &Path, id: u64) -> bool {
        let watchers = self.folders.entry(folder.to_owned()).or_default();
        watchers.insert(id);
        watchers.len() == 1
    }

    /// Unregisters a folder. Returns true if nobody watches it any more.
    pub(super) fn remove(&mut self, folder: &Path, id: u64) -> bool {
        let Some(watchers) = self.folders.get_mut(folder) else {
            return false;
        };
        watchers.remove(&id);
        let is_last = watchers.is_empty();
        if is_last {
            self.folders.remove(folder);
        }
        is_last
    }

    /// Delivers an event to the subscriptions concerned. An error of the system is reported to all as lost events.
    pub(super) fn tell(&self, event: notify::Result<notify::Event>) {
        match event {
            Ok(event) if event.need_rescan() => self.lose(),
            Ok(event) if !is_change(event.kind) => {}
            Ok(event) => event.paths.iter().for_each(|path| self.touch(path)),
            Err(error) => {
                tracing::debug!(%error, "events about folders were lost");
                self.lose();
            }
        }
    }

    fn touch(&self, path: &Path) {
        let watchers: BTreeSet<u64> = path
            .ancestors()
            .filter_map(|folder| self.folders.get(folder))
            .flatten()
            .copied()
            .collect();
        for inbox in watchers.iter().filter_map(|id| self.inboxes.get(id)) {
            inbox.put(ChangedPaths {
                paths: BTreeSet::from([path.to_owned()]),
                lost: false,
            });
        }
    }

    fn lose(&self) {
        for inbox in self.inboxes.values() {
            inbox.put(ChangedPaths {
                paths: BTreeSet::new(),
                lost: true,
            });
        }
    }
}

/// Returns true if an event may change something; reading does not.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use notify::event::Flag;

    fn seen(inbox: &Inbox) -> Option<ChangedPaths> {
        inbox.next().now_or_never()
    }

    #[test]
    fn what_the_system_lost_is_told_to_everybody() {
        let (mut registry, one, two) = (Registry::default(), Arc::default(), Arc::default());
        registry.open(Arc::clone(&one));
        registry.open(Arc::clone(&two));
        registry.tell(Ok(notify::Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert!(seen(&one).is_some_and(|seen| seen.lost));
        registry.tell(Err(notify::Error::generic("no")));
        assert!(seen(&one).is_some_and(|seen| seen.lost));
        assert!(seen(&two).is_some_and(|seen| seen.lost));
        assert_eq!(seen(&two), None);
    }

    #[test]
    fn reading_is_no_touch_and_who_watches_elsewhere_is_not_told() {
        let (mut registry, one, two) = (Registry::default(), Arc::default(), Arc::default());
        let (first, second) = (registry.open(Arc::clone(&one)), registry.open(Arc::clone(&two)));
        registry.add(Path::new("/p"), first);
        registry.add(Path::new("/q"), second);
        let event = |kind| Ok(notify::Event::new(kind).add_path("/p/a.sql".into()));
        registry.tell(event(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert_eq!(seen(&one), None);
        registry.tell(event(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(seen(&one).is_some_and(|seen| seen.paths.contains(Path::new("/p/a.sql"))));
        assert_eq!(seen(&two), None);
    }

    #[test]
    fn too_many_paths_are_everything() {
        let mut seen = ChangedPaths::default();
        for number in 0..20_000 {
            seen.extend(ChangedPaths {
                paths: BTreeSet::from([PathBuf::from(number.to_string())]),
                lost: false,
            });
        }
        assert!(seen.lost);
        assert!(seen.paths.len() <= 10_000);
    }
}
