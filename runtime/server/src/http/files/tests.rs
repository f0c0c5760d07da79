//! Tests of readable and refused paths.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, mknodat};

use watershed_reconcilers::project_parser::compilation::manifest;

use super::folder::Folder;
use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|file| tree.write(file));
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join("project").join(path)
    }

    fn write(&self, path: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.path("")).unwrap()
    }

    fn view(&self, state: &[&str]) -> View {
        let project = manifest(&self.path(""), watershed_compilers::Options::default());
        let state = state.iter().map(|state| (*state).to_owned()).collect();
        View { project, state }
    }
}

#[test]
fn s_api22_a_path_that_could_mean_another_one_is_refused() {
    for good in [
        "a.sql",
        "models/a b.sql",
        "models/ä.sql",
        "models/..a.sql",
        "a.md",
        "models/%2e.sql",
    ] {
        assert!(check(good, good).is_ok() || good.contains('%'), "{good}");
    }
    let odd = [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a.sql",
        "models/../a.sql",
        "models/..",
        ".",
        "./a.sql",
        "models//a.sql",
        "models/",
        "a\0.sql",
        "a.sql\0.md",
        "models\\a.sql",
        "..\\a.sql",
        "a\n.sql",
        "a\u{85}.sql",
    ];
    for path in odd {
        assert!(check(path, path).is_err(), "{path:?}");
    }
    for raw in [
        "models%2fa.sql",
        "models%2Fa.sql",
        "%2e%2e/a.sql",
        "a%2Esql",
        "models%5ca.sql",
    ] {
        assert!(check("models/a.sql", raw).is_err(), "{raw}");
    }
}

#[test]
fn s_api22_what_is_no_project_file_does_not_exist() {
    let tree = Tree::new(&[]);
    fs::create_dir_all(tree.path("")).unwrap();
    fs::write(
        tree.path("watershed.yaml"),
        "ignore_paths: [/drafts, /models/old.sql]\npublic_paths: [assets, .well-known, drafts]\n",
    )
    .unwrap();
    let view = tree.view(&["state"]);
    for path in [
        "watershed.yaml",
        "models/a.sql",
        "a/b/c.yml",
        "README.md",
        "models/notes.md",
        "tmp.sql",
    ] {
        assert!(view.has(path), "{path}");
    }
    let absent = [
        ".env",
        ".dev.env",
        "prod.env",
        "models/.env",
        ".ENV",
        ".git/a.sql",
        ".GIT/a.sql",
        "models/.git/a.sql",
        ".watershed/dev/a.yaml",
        "models/.watershed/a.yaml",
        "state/a.sql",
        "state",
        "tmp/a.sql",
        "TMP/a.sql",
        "node_modules/a.yaml",
        "drafts/a.sql",
        "models/old.sql",
        "data.csv",
        "models/a.sql~",
        "models/.a.sql.swp",
        "models/._a.sql",
        "models/.#a.sql",
        "models/.#a.md",
        "models",
        ".md",
        "key",
        "a.sql.bak",
        "a.SQL",
    ];
    for path in absent {
        assert!(!view.has(path), "{path}");
    }
    assert!(view.shows("assets/logo.svg") && view.shows("assets/deep/a.csv"));
    for path in [
        "assets/.env",
        "assets/.hidden/a.png",
        ".well-known/a",
        "drafts/a.png",
        "models/a.sql",
        "assets2/a",
    ] {
        assert!(!view.shows(path), "{path}");
    }
}

#[test]
fn s_api22_no_link_is_followed_and_nothing_but_a_regular_file_is_read() {
    let tree = Tree::new(&["models/a.sql", "../outside/secret.sql", "../outside/deep/b.sql"]);
    let outside = tree.path("../outside");
    symlink(outside.join("secret.sql"), tree.path("models/link.sql")).unwrap();
    symlink(tree.path("models/a.sql"), tree.path("models/inner.sql")).unwrap();
    symlink(&outside, tree.path("out")).unwrap();
    symlink(tree.path("models"), tree.path("in")).unwrap();
    symlink("loop.sql", tree.path("loop.sql")).unwrap();
    fs::create_dir_all(tree.path("folder.sql")).unwrap();
    mknodat(
        CWD,
        tree.path("pipe.sql"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    fs::write(tree.path("large.sql"), vec![b'x'; 1_000]).unwrap();
    let folder = tree.folder();
    assert_eq!(folder.read("models/a.sql", 100).unwrap(), b"text");
    let missing = [
        "models/link.sql",
        "models/inner.sql",
        "out/secret.sql",
        "out/deep/b.sql",
        "in/a.sql",
        "loop.sql",
        "folder.sql",
        "pipe.sql",
        "none.sql",
        "models/none.sql",
        "none/a.sql",
        "models/a.sql/b.sql",
        "../outside/secret.sql",
    ];
    for path in missing {
        let read = folder.read(path, 100);
        // The walk goes up where it is told to: paths are checked before.
        assert!(
            matches!(read, Err(Unread::Missing)) || path.starts_with(".."),
            "{path}: {read:?}"
        );
    }
    assert!(matches!(
        folder.read("large.sql", 100),
        Err(Unread::TooLarge(1_000))
    ));
    assert!(matches!(
        folder.read(&"x".repeat(5_000), 100),
        Err(Unread::Missing)
    ));
    let mut told = Vec::new();
    let all = |_: Found, _: &str| true;
    let mut tell = |path: String, _: u64| {
        told.push(path);
        true
    };
    folder.walk(&all, &mut tell).unwrap();
    told.sort();
    assert_eq!(told, ["large.sql", "models/a.sql"]);
}

#[test]
fn s_api22_a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let tree = Tree::new(&["models/a.sql", "../outside/a.sql"]);
    let folder = tree.folder();
    fs::rename(tree.path("models"), tree.path("gone")).unwrap();
    symlink(tree.path("../outside"), tree.path("models")).unwrap();
    assert!(matches!(folder.read("models/a.sql", 100), Err(Unread::Missing)));
    // The folder itself may be moved: its handle stays with it.
    let moved = tree.0.path().join("elsewhere");
    fs::rename(tree.path(""), &moved).unwrap();
    symlink(tree.0.path().join("outside"), tree.0.path().join("project")).unwrap();
    assert_eq!(folder.read("gone/a.sql", 100).unwrap(), b"text");
    assert!(matches!(folder.read("a.sql", 100), Err(Unread::Missing)));
}
