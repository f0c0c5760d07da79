//! Source files stay short enough to read in one go, and each begins with what it is.

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
