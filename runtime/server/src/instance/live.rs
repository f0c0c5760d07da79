//! The watch of an instance's files: project files, and the data files that models read.
//!
//! Changed files are passed to the project parser and the readers, which look at them again.
//!
//! Invariants:
//! 1. Folders are watched before they are listed, so nothing falls between a listing and the first event.
//! 2. Where folders can't be watched, or events were lost, everything is looked at: sooner or later, never not at all.
//! 3. A batch is told to the project parser before it is nudged. What it means is for reconcilers to find out.

mod data;
mod gather;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_controller::resource::Target;
use watershed_controller::watch::Watch;
use watershed_controller::{Event, Handle, Select, Uid};
use watershed_drivers::watch::{Anew, ChangedPaths, Subscription, Tree, WatchError, Watcher};
use watershed_reconcilers::project_parser::folder::{is_ignored, is_project_file};
use watershed_reconcilers::project_parser::touched::{Scope, Touched};

use self::data::DataFiles;
use self::gather::Gathering;
use crate::state_folder::{Lock, STATE_FOLDER};

/// The interval at which folders that can't be watched are listed: a listing costs milliseconds.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The state of an instance's file watch, shared with its task.
#[derive(Debug, Clone, Default)]
pub(super) struct Watching {
    stop: CancellationToken,
    lost: CancellationToken,
    trouble: Arc<OnceLock<String>>,
}

impl Watching {
    /// Ends the watch.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Resolves when the state folder is no longer the one that this instance owns. Cancel-safe.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Returns the reason why folders can't be watched; none if they can.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }
}

/// The watch of a project's folder, begun before anything is read.
pub(super) struct Begun {
    root: PathBuf,
    project: Tree,
    subscription: Option<Subscription>,
    watching: Watching,
}

impl Begun {
    /// Begins to watch the project's files.
    pub(super) async fn new(root: &Path, watcher: Result<Watcher, WatchError>, touched: &Touched) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let project = Tree {
            ignored: |name| is_ignored(Some(name)),
            ..Tree::whole(&root)
        };
        let watching = Watching::default();
        let subscription = match watcher {
            Ok(watcher) => follow(watcher.subscribe(), trees(&project, Vec::new()), Vec::new(), true).await,
            Err(error) => Err(error),
        };
        let subscription = subscription.inspect(|_| touched.set_watched(true));
        let subscription = subscription.map_err(|error| watching.complain(&error)).ok();
        Self {
            root,
            project,
            subscription,
            watching,
        }
    }

    /// Continues the watch in a task for as long as the instance lives.
    pub(super) fn go_on(self, handle: Handle, parser: Uid, touched: Touched, lock: &Lock) -> Watching {
        let watching = self.watching.clone();
        let live = Live {
            gathering: Gathering::new(&self.root),
            data: DataFiles::new(&self.root),
            root: self.root,
            project: self.project,
            handle,
            parser,
            touched,
            owned: lock.proof(),
            watching: self.watching,
        };
        // Ends when it is told to or the controller ends; it holds nothing that has to be given back.
        tokio::spawn(live.run(self.subscription));
        watching
    }
}

impl Watching {
    fn complain(&self, error: &WatchError) {
        let _ = self.trouble.set(crate::chain(error));
        tracing::warn!(error = crate::chain(error), "folders can't be watched");
    }
}

struct Live {
    root: PathBuf,
    project: Tree,
    gathering: Gathering,
    data: DataFiles,
    handle: Handle,
    parser: Uid,
    touched: Touched,
    owned: crate::state_folder::Owned,
    watching: Watching,
}

impl Live {
    async fn run(mut self, mut subscription: Option<Subscription>) {
        let stop = self.watching.stop.clone();
        let mut catalog = self.learn_all();
        if let Some(watched) = subscription {
            subscription = self.follow(watched, &BTreeSet::new(), false).await;
        }
        loop {
            let Some(watched) = subscription else {
                return self.look_again_and_again(&stop).await;
            };
            let (data, root) = (&self.data, &self.root);
            let interests = |path: &Path| is_of_interest(root, data, &watched, path);
            // Both reads keep their place when the other is served.
            let happened = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                event = catalog.next() => Happened::InCatalog(event),
                seen = self.gathering.next(&watched, interests) => Happened::OnDisk(seen),
            };
            subscription = match happened {
                Happened::OnDisk(seen) => self.on_disk(watched, seen).await,
                Happened::InCatalog(None) => return,
                Happened::InCatalog(Some(Event::Lagged)) => {
                    catalog = self.learn_all();
                    self.follow(watched, &BTreeSet::new(), false).await
                }
                Happened::InCatalog(Some(event)) => match self.learn(&event) {
                    true => self.follow(watched, &BTreeSet::new(), false).await,
                    false => Some(watched),
                },
            };
        }
    }

    /// Records the data files of all models, and returns a watch of the catalog from that revision.
    fn learn_all(&mut self) -> Watch {
        let listing = self.handle.list(Select::all());
        self.data = DataFiles::new(&self.root);
        for resource in &listing.resources {
            self.data.learn(&resource.row);
        }
        self.handle.watch(listing.revision)
    }

    /// Records the data files in a change of the catalog. Returns true if they are others than before.
    fn learn(&mut self, event: &Event) -> bool {
        let Event::Changed(changes) = event else {
            return false;
        };
        let mut is_news = false;
        for row in &changes.rows {
            is_news |= self.data.learn(row);
        }
        for removed in &changes.removed {
            is_news |= self.data.forget(removed.uid);
        }
        is_news
    }

    /// Watches all folders that matter now, and nudges the readers of files in newly watched ones.
    async fn follow(
        &mut self,
        subscription: Subscription,
        touched: &BTreeSet<PathBuf>,
        lost: bool,
    ) -> Option<Subscription> {
        let data = self.data.trees(&self.project);
        let new: Vec<PathBuf> = data
            .iter()
            .filter(|tree| !subscription.watches(&tree.root))
            .map(|tree| tree.root.clone())
            .collect();
        let touched: Vec<PathBuf> = touched.iter().cloned().collect();
        match follow(subscription, trees(&self.project, data), touched, lost).await {
            Ok(subscription) => {
                let new: Vec<(&Path, bool)> = new.iter().map(|path| (path.as_path(), true)).collect();
                self.nudge(self.data.readers(&new)).await;
                Some(subscription)
            }
            Err(error) => {
                self.watching.complain(&error);
                None
            }
        }
    }

    async fn on_disk(&mut self, subscription: Subscription, mut seen: ChangedPaths) -> Option<Subscription> {
        let links = seen
            .paths
            .iter()
            .flat_map(|path| subscription.links_through(path));
        let links: Vec<PathBuf> = links.map(Path::to_owned).collect();
        // What a link leads to is told by another path, and may be another file from now on.
        let has_links = !links.is_empty() || seen.paths.iter().any(|path| path.is_symlink());
        seen.paths.extend(links);
        let touched: Vec<(&Path, bool)> = seen
            .paths
            .iter()
            .map(|path| (path.as_path(), path.is_dir() || subscription.watches(path)))
            .collect();
        let readers = if seen.lost {
            self.data.all_readers()
        } else {
            self.data.readers(&touched)
        };
        let folders: BTreeSet<PathBuf> = touched
            .iter()
            .filter(|(_, is_folder)| *is_folder)
            .map(|(path, _)| path.to_path_buf())
            .collect();
        let linked = subscription.has_links();
        let subscription = if seen.lost || has_links || !folders.is_empty() {
            self.follow(subscription, &folders, seen.lost).await
        } else {
            Some(subscription)
        };
        if self.root.is_dir() && !self.owned.still() {
            self.watching.lost.cancel();
        }
        let scope = self.scope(&seen, &touched, linked);
        if scope != Scope::paths([""; 0]) {
            self.touched.add(scope);
            self.nudge([self.parser].into()).await;
        }
        self.nudge(readers).await;
        subscription
    }

    /// Returns the paths of a batch that the project parser must read.
    fn scope(&self, seen: &ChangedPaths, touched: &[(&Path, bool)], linked: bool) -> Scope {
        let mine = touched
            .iter()
            .filter(|(path, is_folder)| *is_folder || is_project_file(path));
        let mut paths = BTreeSet::new();
        for (path, _) in mine {
            match path.strip_prefix(&self.root) {
                Ok(below) if below.as_os_str().is_empty() => return Scope::Everything,
                Ok(below) => drop(paths.insert(name(below))),
                // The root itself came or went, or a link leads there.
                Err(_) if self.root.starts_with(path) => return Scope::Everything,
                Err(_) => {}
            }
        }
        let is_elsewhere = linked && !touched.is_empty();
        if seen.lost || is_elsewhere {
            return Scope::Everything;
        }
        paths.retain(|path: &String| !is_ignored(path.split('/').next()));
        Scope::Paths(paths)
    }

    async fn nudge(&self, uids: BTreeSet<Uid>) {
        for uid in uids {
            // One that is gone by now needs no look; a controller that ends looks at nothing.
            let _ = self.handle.nudge(Target::Uid(uid)).await;
        }
    }

    /// Polls the files instead of watching them.
    async fn look_again_and_again(mut self, stop: &CancellationToken) {
        self.touched.set_watched(false);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if self.root.is_dir() && !self.owned.still() {
                self.watching.lost.cancel();
            }
            self.learn_all();
            let mut all = self.data.all_readers();
            all.insert(self.parser);
            self.nudge(all).await;
        }
    }
}

enum Happened {
    InCatalog(Option<Event>),
    OnDisk(ChangedPaths),
}

/// Returns true for a project file, a watched folder, the state folder, or a data file that somebody reads.
fn is_of_interest(root: &Path, data: &DataFiles, subscription: &Subscription, path: &Path) -> bool {
    let below = path.strip_prefix(root).ok();
    let first = below
        .and_then(|below| below.iter().next())
        .and_then(|name| name.to_str());
    let is_state = first == Some(STATE_FOLDER);
    if is_state {
        // Its files change all the time and are nobody's business; that it went is.
        return below.is_some_and(|below| below.iter().count() == 1);
    }
    if subscription.links_through(path).next().is_some() {
        return true;
    }
    if below.is_none()
        && path
            .parent()
            .is_some_and(|folder| subscription.is_for_links(folder))
    {
        return data.is_read(path, false);
    }
    let is_folder = path.is_dir() || subscription.watches(path);
    let is_project = below.is_some() && !is_ignored(first) && (is_project_file(path) || is_folder);
    is_project || (below.is_none() && is_folder) || data.is_read(path, is_folder)
}

fn trees(project: &Tree, mut data: Vec<Tree>) -> Vec<Tree> {
    data.push(project.clone());
    data
}

/// Changes the watched folders, on a thread for blocking work.
async fn follow(
    mut subscription: Subscription,
    trees: Vec<Tree>,
    touched: Vec<PathBuf>,
    lost: bool,
) -> Result<Subscription, WatchError> {
    let following = tokio::task::spawn_blocking(move || {
        let touched = touched.into_iter().collect();
        let anew = if lost { Anew::All } else { Anew::Below(&touched) };
        subscription.follow(&trees, anew).map(|()| subscription)
    });
    match following.await {
        Ok(followed) => followed,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program ends.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Returns a path in the form of project files, with `/` between its parts.
fn name(below: &Path) -> String {
    let parts = below.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}
