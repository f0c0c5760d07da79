//! Tests of the watcher with real folders.

use std::fs;
use std::time::Duration;

use watershed_locks::Unpoisoned;

use super::*;

/// Time limit for events, far above the system's delay.
const PATIENCE: Duration = Duration::from_secs(20);

struct Place {
    _temp: tempfile::TempDir,
    root: PathBuf,
    watcher: Watcher,
}

impl Place {
    fn new(folders: &[&str]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        for folder in folders {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self {
            _temp: temp,
            root,
            watcher: Watcher::new().unwrap(),
        }
    }

    fn tree(&self) -> Tree {
        Tree {
            ignored: |name| name == "ignored",
            ..Tree::whole(&self.root)
        }
    }

    fn follow(&self) -> Subscription {
        let mut subscription = self.watcher.subscribe();
        subscription.follow(&[self.tree()], Anew::All).unwrap();
        subscription
    }

    fn again(&self, subscription: &mut Subscription, touched: &[&str]) {
        let touched = touched.iter().map(|path| self.root.join(path)).collect();
        subscription
            .follow(&[self.tree()], Anew::Below(&touched))
            .unwrap();
    }

    fn write(&self, path: &str) {
        fs::write(self.root.join(path), "text").unwrap();
    }

    /// Waits until a path has changed, and returns all changed paths.
    async fn until(&self, subscription: &Subscription, path: &str) -> BTreeSet<PathBuf> {
        let mut all = BTreeSet::new();
        while !all.contains(&self.root.join(path)) {
            let seen = tokio::time::timeout(PATIENCE, subscription.next()).await;
            all.extend(seen.expect("it is told").paths);
        }
        all
    }
}

#[tokio::test]
async fn a_written_file_is_told_and_what_is_ignored_is_not() {
    let place = Place::new(&["models/deep", "ignored"]);
    let subscription = place.follow();
    place.write("ignored/a.sql");
    place.write("models/deep/b.sql");
    let told = place.until(&subscription, "models/deep/b.sql").await;
    assert_eq!(told, BTreeSet::from([place.root.join("models/deep/b.sql")]));
}

#[tokio::test]
async fn a_new_folder_is_told_and_then_watched() {
    let place = Place::new(&[]);
    let mut subscription = place.follow();
    fs::create_dir(place.root.join("new")).unwrap();
    place.until(&subscription, "new").await;
    place.again(&mut subscription, &["new"]);
    place.write("new/a.sql");
    place.until(&subscription, "new/a.sql").await;
}

#[tokio::test]
async fn a_folder_that_was_moved_away_and_back_is_watched_under_its_name() {
    let place = Place::new(&["models/deep"]);
    let mut subscription = place.follow();
    let (here, there) = (place.root.join("models"), place.root.join("away"));
    fs::rename(&here, &there).unwrap();
    place.until(&subscription, "away").await;
    place.again(&mut subscription, &["models", "away"]);
    place.write("away/deep/a.sql");
    place.until(&subscription, "away/deep/a.sql").await;
    fs::rename(&there, &here).unwrap();
    place.until(&subscription, "models").await;
    place.again(&mut subscription, &["models", "away"]);
    place.write("models/deep/b.sql");
    let told = place.until(&subscription, "models/deep/b.sql").await;
    assert!(
        !told.iter().any(|path| path.ends_with("away/deep/b.sql")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_tree_that_is_not_there_yet_is_waited_for() {
    let place = Place::new(&[]);
    let mut subscription = place.watcher.subscribe();
    let tree = Tree::whole(place.root.join("data/raw"));
    subscription
        .follow(std::slice::from_ref(&tree), Anew::All)
        .unwrap();
    fs::create_dir(place.root.join("data")).unwrap();
    place.until(&subscription, "data").await;
    fs::create_dir(place.root.join("data/raw")).unwrap();
    let touched = BTreeSet::from([place.root.join("data")]);
    subscription.follow(&[tree], Anew::Below(&touched)).unwrap();
    assert!(subscription.watches(&place.root.join("data/raw")));
    assert_eq!(
        subscription.folders(),
        1,
        "the folder above is not needed any more"
    );
    place.write("data/raw/a.csv");
    place.until(&subscription, "data/raw/a.csv").await;
}

/// Fills the system's queue of events while nobody reads it, so that further events are lost.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_queue_that_overflows_is_told_as_lost() {
    let place = Place::new(&["models"]);
    let subscription = place.follow();
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: usize = kept.trim().parse().unwrap();
    let held = place.watcher.0.registry.lock().unpoisoned();
    // Each write is several events. Two files, so that paths alone are not too many, and no event repeats the last.
    for number in 0..kept / 2 {
        place.write(["models/a.sql", "models/b.sql"][number % 2]);
    }
    drop(held);
    let mut paths = BTreeSet::new();
    loop {
        let seen = tokio::time::timeout(PATIENCE, subscription.next()).await;
        let seen = seen.expect("it is told");
        paths.extend(seen.paths);
        if seen.lost {
            break;
        }
    }
    assert!(paths.len() <= 2, "it was not for the number of paths: {paths:?}");
}

#[tokio::test]
async fn two_subscriptions_of_one_folder_do_not_end_each_other() {
    let place = Place::new(&[]);
    let (one, two) = (place.follow(), place.follow());
    drop(one);
    place.write("a.sql");
    place.until(&two, "a.sql").await;
}

#[tokio::test]
async fn a_root_that_is_removed_is_told() {
    let place = Place::new(&["models"]);
    let subscription = place.follow();
    fs::remove_dir_all(&place.root).unwrap();
    place.until(&subscription, "").await;
}

#[test]
fn links_in_a_circle_end() {
    let place = Place::new(&["models"]);
    std::os::unix::fs::symlink(&place.root, place.root.join("models/up")).unwrap();
    assert_eq!(place.follow().folders(), 2);
}

/// Takes changes and follows the tree until the target of a link has changed.
#[cfg(unix)]
async fn until_link(place: &Place, subscription: &Subscription, touched: &Path, link: &str) {
    place.until(subscription, touched.to_str().unwrap()).await;
    let links: Vec<&Path> = subscription.links_through(touched).collect();
    assert_eq!(links, [place.root.join(link)]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_a_link_leads_to_is_told_with_the_link() {
    let place = Place::new(&["models"]);
    let elsewhere = place.root.parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let file = elsewhere.join("m.sql");
    fs::write(&file, "one").unwrap();
    std::os::unix::fs::symlink(&file, place.root.join("models/m.sql")).unwrap();
    let mut subscription = place.follow();
    assert!(subscription.is_for_links(&elsewhere));
    fs::write(&file, "two").unwrap();
    until_link(&place, &subscription, &file, "models/m.sql").await;
    place.again(&mut subscription, &[]);
    fs::write(elsewhere.join(".new"), "three").unwrap();
    fs::rename(elsewhere.join(".new"), &file).unwrap();
    until_link(&place, &subscription, &file, "models/m.sql").await;
    fs::remove_file(place.root.join("models/m.sql")).unwrap();
    place.until(&subscription, "models/m.sql").await;
    place.again(&mut subscription, &[]);
    assert!(!subscription.watches(&elsewhere), "nothing leads there any more");
    assert_eq!(subscription.links_through(&file).count(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_among_the_folders_on_the_way_is_watched_and_followed_when_it_is_swapped() {
    use std::os::unix::fs::symlink;
    let place = Place::new(&[]);
    let mount = place.root.parent().unwrap().join("mount");
    for version in ["..1", "..2"] {
        fs::create_dir_all(mount.join(version)).unwrap();
        fs::write(mount.join(version).join("a.csv"), version).unwrap();
    }
    symlink("..1", mount.join("..data")).unwrap();
    symlink("..data/a.csv", mount.join("a.csv")).unwrap();
    symlink(mount.join("a.csv"), place.root.join("a.csv")).unwrap();
    let mut subscription = place.follow();
    symlink("..2", mount.join("..next")).unwrap();
    fs::rename(mount.join("..next"), mount.join("..data")).unwrap();
    until_link(&place, &subscription, &mount.join("..data"), "a.csv").await;
    place.again(&mut subscription, &[]);
    fs::write(mount.join("..2/a.csv"), "three").unwrap();
    until_link(&place, &subscription, &mount.join("..2/a.csv"), "a.csv").await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_nothing_is_followed_when_its_end_appears() {
    let place = Place::new(&[]);
    let elsewhere = place.root.parent().unwrap().join("elsewhere");
    std::os::unix::fs::symlink(elsewhere.join("a.csv"), place.root.join("a.csv")).unwrap();
    let mut subscription = place.follow();
    fs::create_dir(&elsewhere).unwrap();
    until_link(&place, &subscription, &elsewhere, "a.csv").await;
    place.again(&mut subscription, &[]);
    fs::write(elsewhere.join("a.csv"), "text").unwrap();
    until_link(&place, &subscription, &elsewhere.join("a.csv"), "a.csv").await;
}
