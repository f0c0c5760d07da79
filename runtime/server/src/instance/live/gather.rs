//! Batches of changed paths: a save in several writes, or a switch of branches.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use watershed_drivers::regular;
use watershed_drivers::watch::{ChangedPaths, Subscription};

/// The quiet time after which a batch ends: longer than an editor needs for one save, short enough that nobody waits
/// for it.
const QUIET: Duration = Duration::from_millis(20);
/// The longest time for which a batch is held back while files keep changing.
const LONGEST: Duration = Duration::from_secs(2);
/// Largest `.git` file that is read for the folder of its repository, in bytes.
const LARGEST_POINTER: usize = 64 << 10;

/// A batch of changed paths that is being gathered.
#[derive(Debug)]
pub(super) struct Gathering {
    git: Git,
    seen: ChangedPaths,
    /// The times at which the first and the latest change of the batch were noticed; none while it is empty.
    times: Option<(Instant, Instant)>,
}

impl Gathering {
    /// Returns an empty batch for the project below `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            git: Git {
                root: root.to_owned(),
            },
            seen: ChangedPaths::default(),
            times: None,
        }
    }

    /// Returns the next batch of changed paths that matter. Cancel-safe: gathered paths are kept.
    pub(super) async fn next(
        &mut self,
        subscription: &Subscription,
        interests: impl Fn(&Path) -> bool,
    ) -> ChangedPaths {
        loop {
            let Some((first, latest)) = self.times else {
                self.add(subscription.next().await, &interests);
                continue;
            };
            let due = (latest + QUIET).min(first + LONGEST);
            tokio::select! {
                more = subscription.next() => self.add(more, &interests),
                () = tokio::time::sleep_until(due) => {
                    let now = Instant::now();
                    if now >= first + LONGEST || !self.git.is_at_work() {
                        self.times = None;
                        return std::mem::take(&mut self.seen);
                    }
                    self.times = Some((first, now));
                }
            }
        }
    }

    fn add(&mut self, mut more: ChangedPaths, interests: impl Fn(&Path) -> bool) {
        more.paths.retain(|path| interests(path));
        if more.paths.is_empty() && !more.lost {
            return;
        }
        let now = Instant::now();
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        self.seen.extend(more);
    }
}

/// The git repository that the project is in, if any.
#[derive(Debug)]
struct Git {
    root: PathBuf,
}

impl Git {
    /// Returns true if git is changing files: its lock exists until the last file is written.
    fn is_at_work(&self) -> bool {
        let folder = self
            .root
            .ancestors()
            .find_map(|above| folder_at(&above.join(".git")));
        folder.is_some_and(|folder| folder.join("index.lock").exists())
    }
}

/// Returns a repository's folder; in a linked work tree the file at `git` points to it.
fn folder_at(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = String::from_utf8(regular::read(git, LARGEST_POINTER).ok()?).ok()?;
    let folder = text.trim_end().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn git_at_work_is_noticed_also_from_a_folder_below_and_in_a_linked_work_tree() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("repository/project");
        fs::create_dir_all(&root).unwrap();
        let git = Git { root: root.clone() };
        assert!(!git.is_at_work());
        fs::create_dir(temp.path().join("repository/.git")).unwrap();
        assert!(!git.is_at_work());
        fs::write(temp.path().join("repository/.git/index.lock"), "").unwrap();
        assert!(git.is_at_work());
        fs::create_dir(temp.path().join("elsewhere")).unwrap();
        fs::write(root.join(".git"), "gitdir: ../../elsewhere\n").unwrap();
        assert!(!git.is_at_work());
        fs::write(temp.path().join("elsewhere/index.lock"), "").unwrap();
        assert!(git.is_at_work());
    }
}
