//! Watching of folders: reports at least all changed paths.
//!
//! One [`Watcher`] serves a whole process, for systems bound how many there may be; whoever wants to know something
//! takes a [`Subscription`] of it. A subscription watches [trees](Tree) folder by folder, so that what is not of
//! interest (`node_modules`, version control, our own state) costs nothing.
//!
//! Invariants:
//! 1. A folder is watched before it is listed, so whatever comes to be in it afterwards is told.
//! 2. When the system says that events were lost, or more paths are touched than are kept, the subscription says so:
//!    then anything may have been touched.
//! 3. A link to a file is watched with all that it leads through: its end, other links, and links among the folders of those.
//! 4. A touched path says nothing about what happened to it: whoever is told looks.

mod inbox;
mod links;
mod registry;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

pub use inbox::ChangedPaths;
use inbox::Inbox;
use registry::Registry;
pub use tree::Tree;
use tree::{Found, Reached};
use watershed_locks::Unpoisoned;

/// True if the system watches single folders. Otherwise it watches whole trees, and uninteresting events are dropped.
const ONE_BY_ONE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The error of watching folders.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system provides no watcher, or no more of them.
    #[error("the system can't watch folders")]
    Unavailable(#[source] notify::Error),
    /// The system's limit of watched folders is reached, at this folder.
    #[error("the system watches no more folders; its limit is reached at `{}`", .0.display())]
    TooMany(PathBuf),
    /// A folder can't be watched.
    #[error("can't watch `{}`", path.display())]
    Folder {
        /// Path of the folder that can't be watched.
        path: PathBuf,
        /// The system's error.
        source: notify::Error,
    },
}

/// The watcher of a process, shared by its clones.
#[derive(Clone)]
pub struct Watcher(Arc<WatcherInner>);

struct WatcherInner {
    /// The system's watcher. Its lock is held during calls that wait for the event thread, which locks only `registry`.
    system: Mutex<RecommendedWatcher>,
    registry: Arc<Mutex<Registry>>,
}

impl Watcher {
    /// Creates a watcher without any watched folders.
    ///
    /// # Errors
    /// When the system has no more watchers.
    pub fn new() -> Result<Self, WatchError> {
        let registry = Arc::new(Mutex::new(Registry::default()));
        let told = Arc::clone(&registry);
        let system = notify::recommended_watcher(move |event| told.lock().unpoisoned().tell(event));
        Ok(Self(Arc::new(WatcherInner {
            system: Mutex::new(system.map_err(WatchError::Unavailable)?),
            registry,
        })))
    }

    /// Creates a subscription without any watched folders.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let inbox = Arc::new(Inbox::default());
        let id = self.0.registry.lock().unpoisoned().open(Arc::clone(&inbox));
        Subscription {
            shared: Arc::clone(&self.0),
            id,
            inbox,
            folders: BTreeSet::new(),
            has_links: false,
            links: BTreeMap::new(),
            for_links: BTreeSet::new(),
        }
    }
}

/// The folders that one subscriber watches, until dropped.
pub struct Subscription {
    shared: Arc<WatcherInner>,
    id: u64,
    inbox: Arc<Inbox>,
    folders: BTreeSet<PathBuf>,
    has_links: bool,
    /// Links to files, by each path that they lead through.
    links: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Folders watched only because links lead through them.
    for_links: BTreeSet<PathBuf>,
}

/// The folders that may have been replaced by others of the same name.
#[derive(Debug, Clone, Copy)]
pub enum Anew<'a> {
    /// All folders.
    All,
    /// Folders at these paths and below.
    Below(&'a BTreeSet<PathBuf>),
}

impl Subscription {
    /// Watches the current folders of `trees`, and no others. Folders in `anew` may have been replaced, and are watched
    /// again. Blocks.
    ///
    /// # Errors
    /// When folders can't be watched; those that could are.
    pub fn follow(&mut self, trees: &[Tree], anew: Anew<'_>) -> Result<(), WatchError> {
        let is_stale = |folder: &Path| match anew {
            Anew::All => true,
            Anew::Below(paths) => folder.ancestors().any(|above| paths.contains(above)),
        };
        let is_left = |folder: &Path| !trees.iter().any(|tree| tree.holds(folder));
        let leaving = self.folders.iter().filter(|folder| {
            is_stale(folder) || is_left(folder) && !self.for_links.contains(folder.as_path())
        });
        // Before anything is watched: a folder that moved is known to the system by what it is, not by its path.
        for folder in leaving.cloned().collect::<Vec<_>>() {
            self.leave(&folder);
        }
        self.has_links = false;
        let mut links = BTreeSet::new();
        trees.iter().try_for_each(|tree| {
            tree.walk(&mut |found| match found {
                Found::Folder(folder, way) => {
                    self.has_links |= way == Reached::Links;
                    self.enter(folder)
                }
                Found::Link(link) => {
                    links.insert(link.to_owned());
                    Ok(())
                }
            })
        })?;
        self.follow_links(links, is_left)
    }

    /// Watches the folders that links lead through, and no others because of links.
    fn follow_links(
        &mut self,
        links: BTreeSet<PathBuf>,
        is_left: impl Fn(&Path) -> bool,
    ) -> Result<(), WatchError> {
        let mut found: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        let mut folders = BTreeSet::new();
        for link in links {
            let mut places = links::places(&link);
            loop {
                let parents = places.iter().filter_map(|place| place.parent());
                for folder in parents {
                    self.enter(folder)?;
                    folders.extend(is_left(folder).then(|| folder.to_owned()));
                }
                // What changed before that was watched is told by nobody.
                let now = links::places(&link);
                if now == places {
                    break;
                }
                places = now;
            }
            for place in places.into_iter().filter(|place| *place != link) {
                found.entry(place).or_default().insert(link.clone());
            }
        }
        for folder in self.for_links.difference(&folders).cloned().collect::<Vec<_>>() {
            if is_left(&folder) {
                self.leave(&folder);
            }
        }
        (self.links, self.for_links) = (found, folders);
        Ok(())
    }

    /// Returns the links to files that lead through a path or anything below it.
    pub fn links_through<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let places = self.links.range(path.to_owned()..);
        let below = places.take_while(move |(place, _)| place.starts_with(path));
        below.flat_map(|(_, links)| links).map(PathBuf::as_path)
    }

    /// Returns true if a folder is watched only because of links to files.
    #[must_use]
    pub fn is_for_links(&self, folder: &Path) -> bool {
        self.for_links.contains(folder)
    }

    /// Returns true if links lead to watched folders, whose changes the system may report under another path.
    #[must_use]
    pub fn has_links(&self) -> bool {
        self.has_links
    }

    /// Returns true if a folder of this path is watched.
    #[must_use]
    pub fn watches(&self, folder: &Path) -> bool {
        self.folders.contains(folder)
    }

    /// Returns the number of watched folders.
    #[must_use]
    pub fn folders(&self) -> usize {
        self.folders.len()
    }

    /// Waits for changed paths and takes them. Cancel-safe: paths are kept until returned.
    pub async fn next(&self) -> ChangedPaths {
        self.inbox.next().await
    }

    /// Starts watching a folder, unless watched already.
    fn enter(&mut self, folder: &Path) -> Result<(), WatchError> {
        if self.folders.contains(folder) {
            return Ok(());
        }
        let is_first = self.shared.registry.lock().unpoisoned().add(folder, self.id);
        if is_first && let Err(error) = self.watch(folder) {
            self.shared.registry.lock().unpoisoned().remove(folder, self.id);
            return match error.kind {
                // Gone since it was listed; its parent tells.
                notify::ErrorKind::PathNotFound => Ok(()),
                notify::ErrorKind::MaxFilesWatch => Err(WatchError::TooMany(folder.to_owned())),
                _ => Err(WatchError::Folder {
                    path: folder.to_owned(),
                    source: error,
                }),
            };
        }
        self.folders.insert(folder.to_owned());
        Ok(())
    }

    fn watch(&self, folder: &Path) -> notify::Result<()> {
        // The root of a tree is followed into its depth by the system itself, where it can.
        let is_covered = !ONE_BY_ONE
            && folder
                .parent()
                .is_some_and(|parent| self.folders.contains(parent));
        match (ONE_BY_ONE, is_covered) {
            (_, true) => Ok(()),
            (true, _) => self
                .shared
                .system
                .lock()
                .unpoisoned()
                .watch(folder, RecursiveMode::NonRecursive),
            (false, _) => self
                .shared
                .system
                .lock()
                .unpoisoned()
                .watch(folder, RecursiveMode::Recursive),
        }
    }

    fn leave(&mut self, folder: &Path) {
        self.folders.remove(folder);
        if self.shared.registry.lock().unpoisoned().remove(folder, self.id) {
            // A folder that is gone is not watched any more, which is what is wanted.
            let _ = self.shared.system.lock().unpoisoned().unwatch(folder);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for folder in std::mem::take(&mut self.folders) {
            self.leave(&folder);
        }
        self.shared.registry.lock().unpoisoned().close(self.id);
    }
}

#[cfg(test)]
mod tests;
