//! The files of a project's folder that are compiled, and their changes since the last look.
//!
//! A file is read again only if its inode, size or times differ from the last look, or if it changed so shortly
//! before that look that it may have changed again without showing it. What can't be read is told as such, never
//! left out: a file that is there and can't be read is not a file that is gone.
//!
//! Where somebody watches the folder, a look is only at what was [touched](super::touched::Scope).

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use thiserror::Error;
use walkdir::WalkDir;
use watershed_compilers::{FileEvent, FileProblem, IGNORED, Project};
use watershed_drivers::regular::{self, Oddity, ReadError};
use watershed_drivers::sandbox::Sandbox;

use super::touched::Scope;

/// Extensions of files that are compiled.
const EXTENSIONS: [&str; 4] = ["env", "sql", "yaml", "yml"];

/// Prefixes of names of files that other programs leave behind, such as locks of editors.
const LEFT_OVERS: [&str; 2] = [".#", "._"];

/// The time during which a file can change again without a new modification time.
const CLOCK_GRAIN: Duration = Duration::from_secs(2);

/// The reason why the project's files can't be listed.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The folder of the project does not exist.
    #[error("the project's folder `{path}` does not exist")]
    Missing {
        /// The path where the project's folder was expected.
        path: PathBuf,
    },
    /// A folder can't be listed.
    #[error("can't list `{path}`")]
    Unlisted {
        /// The path of the folder that can't be listed.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The project's files as of the last look.
#[derive(Debug, Default)]
pub struct Folder {
    seen: BTreeMap<String, Seen>,
    /// True if the whole folder was listed once, so that partial looks yield changes.
    is_known: bool,
    /// The folders that files may lie in; none without confinement.
    sandbox: Option<Sandbox>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// A file, with the time at which it was inspected.
    File { stamp: Stamp, at: SystemTime },
    /// A file that can't be read.
    Problem(FileProblem),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
    created: Option<SystemTime>,
}

impl Folder {
    /// Creates the folder, without any files seen, for a project that links must not lead out of.
    #[must_use]
    pub fn confined(sandbox: Option<Sandbox>) -> Self {
        Self {
            sandbox,
            ..Self::default()
        }
    }

    /// Returns true if links must not lead out of the project.
    pub(super) fn is_confined(&self) -> bool {
        self.sandbox.is_some()
    }

    /// Returns the changes of files below `root` since the last look, ordered by path. The first look covers the whole
    /// folder, whatever `scope` is. At most one file beyond the limit is listed, as more are refused as a whole.
    ///
    /// # Errors
    /// When a folder can't be listed. Then nothing is known anew, and the next look starts from the same.
    pub fn look(&mut self, root: &Path, scope: &Scope) -> Result<Vec<FileEvent>, FolderError> {
        let at = SystemTime::now();
        if !root.is_dir() {
            return Err(FolderError::Missing {
                path: root.to_owned(),
            });
        }
        let (now, places) = match scope {
            Scope::Paths(paths) if self.is_known => (list_places(root, paths, at)?, Some(paths)),
            _ => (list(root, root, at)?, None),
        };
        let known = match places {
            None => self.seen.keys().cloned().collect::<Vec<_>>(),
            Some(paths) => paths.iter().flat_map(|path| self.at_or_below(path)).collect(),
        };
        let mut events = Vec::new();
        for path in known.into_iter().filter(|path| !now.contains_key(path)) {
            self.seen.remove(&path);
            events.push(FileEvent::Removed { path });
        }
        for (path, entry) in now {
            let entry = self.unless_outside(root, &path, entry);
            if self.seen.get(&path).is_some_and(|before| is_same(before, &entry)) {
                continue;
            }
            let event = read(root, &path, &entry);
            if matches!(event, FileEvent::Removed { .. }) {
                self.seen.remove(&path);
            } else {
                self.seen.insert(path, entry);
            }
            events.push(event);
        }
        self.is_known = true;
        Ok(events)
    }

    /// Returns the entry, or a problem if a link leads out of the sandbox.
    fn unless_outside(&self, root: &Path, path: &str, entry: Seen) -> Seen {
        match &self.sandbox {
            Some(sandbox) if !sandbox.holds(&root.join(path)) => {
                Seen::Problem(FileProblem::Io("a link leads out of the sandbox".to_owned()))
            }
            _ => entry,
        }
    }

    /// Lists the known paths at or below a path.
    fn at_or_below(&self, path: &str) -> Vec<String> {
        let below = format!("{path}/");
        let from = (Bound::Included(below.clone()), Bound::Unbounded);
        let below = self
            .seen
            .range::<String, _>(from)
            .take_while(|(found, _)| found.starts_with(&below));
        let itself = self.seen.get_key_value(path);
        itself
            .into_iter()
            .chain(below)
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Returns true if a file was written at or after a time, in milliseconds since 1970.
    pub(super) fn is_written_after(&self, path: &str, then_ms: i64) -> bool {
        let Some(Seen::File { stamp, .. }) = self.seen.get(path) else {
            return false;
        };
        let modified = stamp.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        modified.is_some_and(|modified| i64::try_from(modified.as_millis()).is_ok_and(|ms| ms >= then_ms))
    }

    /// Returns the number of known files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns true if no files are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// Lists the files at the given paths, and below those that are folders.
fn list_places<'p>(
    root: &Path,
    paths: impl IntoIterator<Item = &'p String>,
    at: SystemTime,
) -> Result<BTreeMap<String, Seen>, FolderError> {
    let mut found = BTreeMap::new();
    for path in paths {
        let first = path.split('/').next();
        if !is_ignored(first) {
            found.extend(list(root, &root.join(path), at)?);
        }
    }
    Ok(found)
}

/// Lists the project files at `place`, and below it if it is a folder.
fn list(root: &Path, place: &Path, at: SystemTime) -> Result<BTreeMap<String, Seen>, FolderError> {
    let mut found = BTreeMap::new();
    let is_root = place == root;
    let walk = WalkDir::new(place)
        .min_depth(usize::from(is_root))
        .follow_links(true)
        .into_iter();
    let is_left_out = |depth, name: Option<&str>| is_root && depth == 1 && is_ignored(name);
    for entry in walk.filter_entry(|entry| !is_left_out(entry.depth(), entry.file_name().to_str())) {
        match entry {
            Ok(entry) if !is_project_file(entry.path()) => {}
            Ok(entry) => {
                let seen = match entry.metadata() {
                    Ok(metadata) => match Oddity::from_type(metadata.file_type()) {
                        Some(oddity) => Seen::Problem(problem_of(oddity)),
                        None => Seen::File {
                            stamp: Stamp::from_metadata(&metadata),
                            at,
                        },
                    },
                    // Gone since it was listed.
                    Err(_) => continue,
                };
                found.insert(relative(root, entry.path()), seen);
            }
            Err(error) => found.extend(problem(root, place, error)?),
        }
        if found.len() > Project::MAX_FILES {
            break;
        }
    }
    Ok(found)
}

/// Returns the problem of an entry that can't be listed, or an error if the listing fails as a whole.
fn problem(root: &Path, place: &Path, error: walkdir::Error) -> Result<Option<(String, Seen)>, FolderError> {
    let path = error.path().unwrap_or(place).to_owned();
    let told = |problem: FileProblem| Ok(Some((relative(root, &path), Seen::Problem(problem))));
    if error.loop_ancestor().is_some() {
        return told(FileProblem::LinkLoop);
    }
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_symlink());
    let source = io::Error::from(error);
    match source.kind() {
        io::ErrorKind::NotFound if !is_link => Ok(None),
        _ if is_link && is_project_file(&path) => told(FileProblem::Io(source.to_string())),
        // Its parent is a file by now.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
        _ => Err(FolderError::Unlisted { path, source }),
    }
}

fn read(root: &Path, path: &str, seen: &Seen) -> FileEvent {
    let path = path.to_owned();
    if let Seen::Problem(problem) = seen {
        let problem = problem.clone();
        return FileEvent::Unreadable { path, problem };
    }
    let problem = match regular::read(&root.join(&path), FileEvent::MAX_BYTES) {
        Ok(content) => {
            let content = Arc::from(content);
            return FileEvent::Written { path, content };
        }
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return FileEvent::Removed { path };
        }
        Err(ReadError::Odd(oddity)) => problem_of(oddity),
        Err(ReadError::TooLarge(size)) => FileProblem::TooLarge(size),
        Err(ReadError::Io(error)) => FileProblem::Io(error.to_string()),
    };
    FileEvent::Unreadable { path, problem }
}

fn problem_of(oddity: Oddity) -> FileProblem {
    match oddity {
        Oddity::Folder => FileProblem::Folder,
        other => FileProblem::Special(other.to_string()),
    }
}

/// Returns true if a file is proven unchanged, so that it need not be read again.
fn is_same(before: &Seen, now: &Seen) -> bool {
    match (before, now) {
        (Seen::Problem(before), Seen::Problem(now)) => before == now,
        (Seen::File { stamp: before, at }, Seen::File { stamp: now, .. }) => {
            let settled = before
                .modified
                .is_some_and(|modified| modified + CLOCK_GRAIN < *at);
            before == now && settled
        }
        _ => false,
    }
}

/// Returns true if an entry of this name at the project's root is always ignored.
#[must_use]
pub fn is_ignored(name: Option<&str>) -> bool {
    name.is_some_and(|name| IGNORED.contains(&name))
}

/// Returns true if a path has the name of a file that is compiled.
#[must_use]
pub fn is_project_file(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let is_left_over = LEFT_OVERS.iter().any(|prefix| name.starts_with(prefix));
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    !is_left_over && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Returns a path relative to the project, with `/` between parts.
fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

impl Stamp {
    fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self {
            inode: inode(metadata),
            size: metadata.len(),
            modified: metadata.modified().ok(),
            created: metadata.created().ok(),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Project {
        root: tempfile::TempDir,
        folder: Folder,
    }

    impl Project {
        fn new(files: &[&str]) -> Self {
            let project = Self {
                root: tempfile::tempdir().unwrap(),
                folder: Folder::default(),
            };
            files.iter().for_each(|file| project.write(file, "text"));
            project
        }

        fn path(&self, path: &str) -> PathBuf {
            self.root.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Sets the modification time of a file to an hour ago.
        fn age(&self, path: &str) {
            let file = fs::File::options().write(true).open(self.path(path)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3_600))
                .unwrap();
        }

        fn look(&mut self) -> Vec<String> {
            self.look_at(&Scope::Everything)
        }

        fn look_at(&mut self, scope: &Scope) -> Vec<String> {
            let events = self.folder.look(self.root.path(), scope).unwrap();
            events.iter().map(told).collect()
        }
    }

    fn told(event: &FileEvent) -> String {
        match event {
            FileEvent::Written { path, .. } => format!("written {path}"),
            FileEvent::Removed { path } => format!("removed {path}"),
            FileEvent::Unreadable { path, problem } => match problem {
                FileProblem::TooLarge(size) => format!("too large {path} {size}"),
                FileProblem::Folder => format!("folder {path}"),
                FileProblem::Special(what) => format!("{what} {path}"),
                FileProblem::LinkLoop => format!("loop {path}"),
                FileProblem::Io(_) => format!("unreadable {path}"),
            },
        }
    }

    #[test]
    fn project_files_are_found_and_nothing_else() {
        let mut project = Project::new(&[
            "rill.yaml",
            "models/deep/a.sql",
            ".env",
            ".dev.env",
            "README.md",
            "data/a.csv",
            ".git/x.sql",
            ".watershed/dev/x.yaml",
            "models/tmp/b.sql",
            "models/._a.sql",
            "models/a.sql~",
            "models/.a.sql.swp",
        ]);
        std::os::unix::fs::symlink("user@host.1", project.path("models/.#a.sql")).unwrap();
        let found = [
            "written .dev.env",
            "written .env",
            "written models/deep/a.sql",
            "written models/tmp/b.sql",
        ];
        assert_eq!(
            project.look(),
            [found.as_slice(), &["written rill.yaml"]].concat()
        );
    }

    #[test]
    fn a_second_look_tells_only_what_changed() {
        let mut project = Project::new(&["a.sql", "b.sql", "c.sql"]);
        ["a.sql", "b.sql", "c.sql"]
            .iter()
            .for_each(|file| project.age(file));
        assert_eq!(project.look().len(), 3);
        assert_eq!(project.look(), [""; 0]);
        project.write("b.sql", "other");
        fs::remove_file(project.path("c.sql")).unwrap();
        assert_eq!(project.look(), ["removed c.sql", "written b.sql"]);
    }

    #[test]
    fn a_look_at_what_was_touched_leaves_the_rest_alone() {
        let files = ["a.sql", "m/b.sql", "m/c.sql", "m.sql", "n/d.sql"];
        let mut project = Project::new(&files);
        assert_eq!(project.look().len(), files.len());
        files.iter().for_each(|file| project.age(file));
        project.look();
        files.iter().for_each(|file| project.write(file, "other"));
        fs::remove_dir_all(project.path("m")).unwrap();
        let touched = Scope::paths(["m", "a.sql", "new", "tmp/x.sql"]);
        project.write("tmp/x.sql", "ignored");
        project.write("new/deep/e.sql", "text");
        assert_eq!(
            project.look_at(&touched),
            [
                "removed m/b.sql",
                "removed m/c.sql",
                "written a.sql",
                "written new/deep/e.sql"
            ]
        );
        for left in ["written m.sql", "written n/d.sql"] {
            assert!(
                project.look().contains(&left.to_owned()),
                "{left} is told by the next whole look"
            );
        }
    }

    #[test]
    fn the_first_look_is_at_everything() {
        let mut project = Project::new(&["a.sql", "b.sql"]);
        assert_eq!(project.look_at(&Scope::paths(["a.sql"])).len(), 2);
    }

    #[test]
    fn a_folder_that_became_a_file_holds_nothing() {
        let mut project = Project::new(&["m/b.sql"]);
        project.look();
        fs::remove_dir_all(project.path("m")).unwrap();
        project.write("m", "a file");
        assert_eq!(project.look_at(&Scope::paths(["m/b.sql"])), ["removed m/b.sql"]);
    }

    #[test]
    fn a_file_that_changed_right_before_the_look_is_read_again() {
        let mut project = Project::new(&["a.sql"]);
        assert_eq!(project.look(), ["written a.sql"]);
        assert_eq!(project.look(), ["written a.sql"]);
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        let mut project = Project::new(&["folder.sql/inside.sql"]);
        project.write("large.sql", &"x".repeat(FileEvent::MAX_BYTES + 1));
        let size = FileEvent::MAX_BYTES + 1;
        let found = [
            "folder folder.sql".to_owned(),
            "written folder.sql/inside.sql".to_owned(),
        ];
        assert_eq!(
            project.look(),
            [found.as_slice(), &[format!("too large large.sql {size}")]].concat()
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_or_in_a_circle_are_told() {
        let mut project = Project::new(&["models/a.sql"]);
        std::os::unix::fs::symlink(project.path("models"), project.path("models/loop")).unwrap();
        std::os::unix::fs::symlink(project.path("gone.sql"), project.path("models/b.sql")).unwrap();
        assert_eq!(
            project.look(),
            [
                "written models/a.sql",
                "unreadable models/b.sql",
                "loop models/loop"
            ]
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let error = Folder::default()
            .look(Path::new("/nowhere/at/all"), &Scope::Everything)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the project's folder `/nowhere/at/all` does not exist"
        );
    }
}
