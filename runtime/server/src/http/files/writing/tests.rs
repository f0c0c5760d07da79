//! Tests of changes that are whole or not made.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for file in files {
            fs::create_dir_all(tree.path(file).parent().unwrap()).unwrap();
            fs::write(tree.path(file), "text").unwrap();
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn folder(&self) -> Folder {
        Folder::open(self.0.path()).unwrap()
    }

    fn write(&self, path: &str, may_replace: &dyn Fn(Option<&[u8]>) -> bool) -> Result<(), Unchanged> {
        let folder = self.folder();
        folder.lock().unwrap().write(&Writing {
            path,
            bytes: b"new",
            may_replace,
            is_secret: false,
            most: 1_000,
        })
    }

    /// Returns the names in a folder, sorted.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn s_api23_an_edit_by_hand_in_the_middle_of_a_write_is_kept() {
    for (before, by_hand) in [
        (Some("text"), Some("by hand")),
        (Some("text"), None),
        (None, Some("by hand")),
    ] {
        let tree = Tree::new(&["models/other.sql"]);
        let file = tree.path("models/a.sql");
        if let Some(before) = before {
            fs::write(&file, before).unwrap();
        }
        let looks = Cell::new(0);
        let may_replace = |found: Option<&[u8]>| {
            looks.set(looks.get() + 1);
            let fits = found == before.map(str::as_bytes);
            if looks.get() == 1 {
                // Somebody saves or deletes the file after it was compared first.
                match by_hand {
                    Some(text) => fs::write(&file, text).unwrap(),
                    None => fs::remove_file(&file).unwrap(),
                }
            }
            fits
        };
        let refused = tree.write("models/a.sql", &may_replace);
        let current = by_hand.map(|text| text.as_bytes().to_vec());
        assert!(
            matches!(&refused, Err(Unchanged::Stale(found)) if *found == current),
            "{refused:?}"
        );
        assert_eq!(fs::read(&file).ok(), current);
        let names = tree.names("models");
        assert!(names.iter().all(|name| !is_unfinished(name)), "{names:?}");
    }
}

#[test]
fn s_api22_what_is_no_file_is_never_replaced_and_folders_are_made_and_taken_back() {
    let tree = Tree::new(&["models/a.sql"]);
    fs::create_dir(tree.path("folder.sql")).unwrap();
    std::os::unix::fs::symlink(tree.path("models/a.sql"), tree.path("link.sql")).unwrap();
    std::os::unix::fs::symlink(tree.path("models"), tree.path("linked")).unwrap();
    for path in [
        "folder.sql",
        "link.sql",
        "linked/a.sql",
        "models/a.sql/b.sql",
        "linked/new.sql",
    ] {
        let refused = tree.write(path, &|_| true);
        assert!(matches!(refused, Err(Unchanged::Occupied)), "{path}: {refused:?}");
    }
    for (path, there) in [("models/A.sql", "models/a.sql"), ("MODELS/b.sql", "models")] {
        let refused = tree.write(path, &|_| true);
        assert!(
            matches!(&refused, Err(Unchanged::OtherCase(found)) if found == there),
            "{path}: {refused:?}"
        );
    }
    let looks = Cell::new(0);
    let refused = tree.write("one/two/a.sql", &|_| {
        looks.set(looks.get() + 1);
        looks.get() == 1
    });
    assert!(matches!(refused, Err(Unchanged::Stale(None))), "{refused:?}");
    assert!(!tree.path("one").exists());
    tree.write("one/two/a.sql", &|found| found.is_none()).unwrap();
    assert_eq!(fs::read(tree.path("one/two/a.sql")).unwrap(), b"new");
    assert_eq!(fs::read(tree.path("models/a.sql")).unwrap(), b"text");
}

#[test]
fn permissions_stay_and_a_case_alone_may_be_renamed() {
    let tree = Tree::new(&["models/a.sql"]);
    let path = tree.path("models/a.sql");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    tree.write("models/a.sql", &|_| true).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let folder = tree.folder();
    let locked = folder.lock().unwrap();
    locked
        .rename("models/a.sql", "models/A.sql", 1_000, &|found| {
            found == Some(b"new")
        })
        .unwrap();
    assert_eq!(tree.names("models"), ["A.sql"]);
    let refused = locked.rename("models/A.sql", "models/A.sql", 1_000, &|_| true);
    assert!(matches!(refused, Err(Unchanged::Occupied)), "{refused:?}");
}

#[test]
fn leftovers_go_and_what_only_looks_like_one_stays() {
    let leftover = format!(".watershed-{}.tmp", uuid::Uuid::nil());
    let tree = Tree::new(&[
        &format!("models/{leftover}"),
        &leftover,
        ".watershed-notes.tmp",
        "models/a.sql",
        &format!("hidden/{leftover}"),
    ]);
    let folder = tree.folder();
    folder
        .lock()
        .unwrap()
        .remove_leftovers(&|path| path != "hidden")
        .unwrap();
    assert_eq!(tree.names(""), [".watershed-notes.tmp", "hidden", "models"]);
    assert_eq!(tree.names("models"), ["a.sql"]);
    assert_eq!(tree.names("hidden"), [leftover]);
}

#[test]
fn a_second_writer_waits_for_the_first() {
    let tree = Tree::new(&["a.sql"]);
    let folder = tree.folder();
    let locked = folder.lock().unwrap();
    let other = tree.folder();
    let handle = rustix::fs::flock(other.handle(), FlockOperation::NonBlockingLockExclusive);
    assert_eq!(handle, Err(Errno::WOULDBLOCK));
    let _ = locked;
    drop(folder);
    assert!(other.lock().is_ok());
}

#[test]
fn s_api23_a_change_that_the_disk_does_not_confirm_is_not_told_as_none() {
    // Something that the system can't sync.
    let (reader, _writer) = io::pipe().unwrap();
    let Err(Unchanged::Unconfirmed(error)) = confirm(&reader.into()) else {
        panic!("a pipe was synced");
    };
    let problem = super::super::problems::unconfirmed("models/a.sql", &error);
    assert!(
        problem.message.starts_with("`models/a.sql` is changed, but"),
        "{}",
        problem.message
    );
    assert!(!problem.message.contains("nothing"), "{}", problem.message);
}
