//! The programs that the documents show are as short as those say, and are shown as they are.

use crate::{read, root};

/// Programs with the most lines of code that each may have: blank lines and comments count for nothing.
const PROGRAMS: [(&[&str], usize); 3] = [
    (&["examples/embed/src/bin/smallest.rs"], 25),
    // With retries, drift and a delete.
    (&["examples/embed/src/main.rs"], 60),
    // A web server with two kinds of its own, SQLite and server-sent events.
    (
        &["examples/folders/src/main.rs", "examples/folders/src/kinds.rs"],
        200,
    ),
];

fn lines_of_code(path: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    read(&root().join(path)).lines().filter(is_code).count()
}

#[test]
fn the_programs_that_embed_the_controller_are_short() {
    for (files, most) in PROGRAMS {
        let lines: usize = files.iter().map(|path| lines_of_code(path)).sum();
        assert!(lines <= most, "{files:?}: {lines} lines of code, at most {most}");
    }
}

#[test]
fn the_page_about_embedding_shows_the_smallest_program_as_it_is() {
    let page = read(&root().join("docs/embedding.md"));
    let program = read(&root().join("examples/embed/src/bin/smallest.rs"));
    let (_, code) = program
        .split_once("\n\n")
        .expect("its heading ends with a blank line");
    assert!(page.contains(code), "docs/embedding.md shows another program");
}
