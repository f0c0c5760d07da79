//! The files of a project that may have changed since the last look.
//!
//! Nobody is required to watch: then every look is at everything. A watcher calls [`Touched::set_watched`] once and from
//! then on adds every path that may have changed, before it nudges the project parser. What a look that failed was
//! to look at is not lost: the next one is at everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::watch;
use watershed_locks::Unpoisoned;

/// The part of the folder that a look covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The whole folder of the project.
    Everything,
    /// The given paths, relative to the project with `/` between parts, and everything below those that are folders.
    Paths(BTreeSet<String>),
}

impl Scope {
    /// Returns the scope that covers only the given paths.
    pub fn paths<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::Paths(paths.into_iter().map(Into::into).collect())
    }

    fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Paths(paths), Self::Paths(more)) if paths.len() + more.len() <= MOST_PATHS => {
                paths.extend(more);
            }
            _ => *self = Self::Everything,
        }
    }
}

/// The number of paths above which listing the whole folder is cheaper.
const MOST_PATHS: usize = 2_000;

/// The changed files reported by a watcher, to be taken by the project parser; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    state: Arc<Mutex<State>>,
    /// Number of times that changes were reported.
    reports: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    is_watched: bool,
    scope: Scope,
    /// The callers who have written files since the last look, by path.
    authors: BTreeMap<String, Arc<str>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            is_watched: false,
            scope: Scope::Everything,
            authors: BTreeMap::new(),
        }
    }
}

impl Touched {
    /// Sets whether a watcher adds all changed paths from now on. The next look covers the whole folder.
    pub fn set_watched(&self, is_watched: bool) {
        let mut state = self.state();
        (state.is_watched, state.scope) = (is_watched, Scope::Everything);
    }

    /// Returns true if a watcher reports changes.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state().is_watched
    }

    /// Returns true if any changes were reported since the last look.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.state().scope != Scope::Paths(BTreeSet::new())
    }

    /// Notes the caller who is about to write a file, which the next look at the file names as the origin of its
    /// changes. Beyond a bound of files without a look, callers are not noted.
    pub fn note_author(&self, path: &str, author: Arc<str>) {
        let mut state = self.state();
        if state.authors.len() < MOST_PATHS {
            state.authors.insert(path.to_owned(), author);
        }
    }

    /// Returns the caller who has written a file since the last look at it, and forgets the caller.
    pub fn take_author(&self, path: &str) -> Option<Arc<str>> {
        self.state().authors.remove(path)
    }

    /// Adds paths that may have changed.
    pub fn add(&self, scope: Scope) {
        self.state().scope.add(scope);
        self.reports.send_modify(|number| *number += 1);
    }

    /// Returns a receiver that is told each time that changes are reported.
    #[must_use]
    pub fn reports(&self) -> watch::Receiver<u64> {
        self.reports.subscribe()
    }

    /// Runs a look at the reported paths. After a failure, the next look covers everything.
    ///
    /// # Errors
    /// That of the look.
    pub fn look<T, E>(&self, look: impl FnOnce(&Scope) -> Result<T, E>) -> Result<T, E> {
        let scope = self.take();
        let looked = look(&scope);
        if looked.is_err() {
            self.add(Scope::Everything);
        }
        looked
    }

    fn take(&self) -> Scope {
        let mut state = self.state();
        if !state.is_watched {
            return Scope::Everything;
        }
        std::mem::replace(&mut state.scope, Scope::Paths(BTreeSet::new()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(touched: &Touched) -> Scope {
        touched.look(|scope| Ok::<_, ()>(scope.clone())).unwrap()
    }

    #[test]
    fn where_nobody_watches_every_look_is_at_everything() {
        let touched = Touched::default();
        touched.add(Scope::paths(["a"]));
        assert_eq!(looked(&touched), Scope::Everything);
        assert_eq!(looked(&touched), Scope::Everything);
    }

    #[test]
    fn a_watched_folder_is_looked_at_once_and_then_in_parts() {
        let touched = Touched::default();
        touched.set_watched(true);
        assert_eq!(looked(&touched), Scope::Everything);
        assert!(touched.is_watched() && !touched.is_pending());
        touched.add(Scope::paths(["a"]));
        assert!(touched.is_pending());
        touched.add(Scope::paths(["b"]));
        assert_eq!(looked(&touched), Scope::paths(["a", "b"]));
        assert_eq!(looked(&touched), Scope::paths([""; 0]));
    }

    #[test]
    fn a_look_that_failed_is_made_up_for() {
        let touched = Touched::default();
        touched.set_watched(true);
        looked(&touched);
        touched.add(Scope::paths(["a"]));
        assert_eq!(touched.look(|_| Err::<(), _>("no")), Err("no"));
        assert_eq!(looked(&touched), Scope::Everything);
    }

    #[test]
    fn too_many_paths_are_everything() {
        let touched = Touched::default();
        touched.set_watched(true);
        looked(&touched);
        touched.add(Scope::paths((0..=MOST_PATHS).map(|n| n.to_string())));
        assert_eq!(looked(&touched), Scope::Everything);
    }
}
