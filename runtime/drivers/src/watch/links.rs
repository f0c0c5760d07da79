//! Links to files: the paths where a change may affect a link's target.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most links in one path, equal to the system's limit.
const MOST_LINKS: usize = 40;

/// Returns the paths that a path leads through: each link on the way, and the final target, existing or not. Their
/// folders contain no links, so that events report these paths.
pub(super) fn places(path: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut here = PathBuf::new();
    let mut ahead = parts(path);
    while let Some(part) = ahead.pop_front() {
        match part {
            Part::Root => here = PathBuf::from("/"),
            Part::Up => drop(here.pop()),
            Part::Name(name) => {
                let next = here.join(name);
                let Ok(target) = fs::read_link(&next) else {
                    if ahead.is_empty() || !next.exists() {
                        places.push(next);
                        return places;
                    }
                    here = next;
                    continue;
                };
                places.push(next);
                if places.len() > MOST_LINKS {
                    return places;
                }
                for part in parts(&target).into_iter().rev() {
                    ahead.push_front(part);
                }
            }
        }
    }
    places
}

/// A component of a path on the way.
enum Part {
    Root,
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> VecDeque<Part> {
    let part = |component: Component<'_>| match component {
        Component::RootDir => Some(Part::Root),
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_and_its_end_are_places() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("conf/..1")).unwrap();
        fs::create_dir(root.join("models")).unwrap();
        fs::write(root.join("conf/..1/m.sql"), "").unwrap();
        symlink("..1", root.join("conf/..data")).unwrap();
        symlink("..data/m.sql", root.join("conf/m.sql")).unwrap();
        symlink("../conf/m.sql", root.join("models/m.sql")).unwrap();
        let expected = ["models/m.sql", "conf/m.sql", "conf/..data", "conf/..1/m.sql"];
        assert_eq!(
            places(&root.join("models/m.sql")),
            expected.map(|path| root.join(path))
        );
    }

    #[test]
    fn a_link_to_nothing_ends_where_something_is_missing_and_a_circle_ends() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        symlink("none/deep/a.csv", root.join("a.csv")).unwrap();
        assert_eq!(
            places(&root.join("a.csv")),
            ["a.csv", "none"].map(|path| root.join(path))
        );
        symlink("y", root.join("x")).unwrap();
        symlink("x", root.join("y")).unwrap();
        assert!(places(&root.join("x")).len() > MOST_LINKS);
    }
}
