//! Source files stay short enough to read in one go, each begins with what it is, and locks are taken in one way.

use std::collections::BTreeMap;

use crate::code::code_of;
use crate::{files, read, shown};

/// The most lines that a source file may have. Most should have far fewer.
const MAX_LINES: usize = 600;

#[test]
fn no_source_file_is_longer_than_a_person_reads_in_one_go() {
    let long: Vec<_> = files("rs")
        .iter()
        .map(|path| (read(path).lines().count(), shown(path)))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .collect();
    assert!(long.is_empty(), "files of more than {MAX_LINES} lines: {long:?}");
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<_> = files("rs")
        .iter()
        .filter(|path| path.file_name().is_none_or(|name| name != "tests.rs"))
        .filter(|path| !read(path).starts_with("//!"))
        .map(|path| shown(path))
        .collect();
    assert!(
        silent.is_empty(),
        "files without module docs on their first line: {silent:?}"
    );
}

/// A crate says once what a panic means to its locks, and takes that by a method.
#[test]
fn a_crate_says_once_what_a_panic_means_to_its_locks() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files("rs") {
        let shown = shown(&path);
        let folder = shown.split_once("/src/").map(|(folder, _)| folder.to_owned());
        if let Some(folder) = folder.filter(|_| code_of(&read(&path)).contains("PoisonError::into_inner")) {
            places.entry(folder).or_default().push(shown);
        }
    }
    assert!(places.contains_key("runtime/locks"), "{places:?}");
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "use `watershed_locks::Unpoisoned`: {places:?}");
}
