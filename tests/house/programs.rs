//! The programs that the documents show are as short as those say, and are shown as they are.

use crate::{read, root};

/// Programs with the most lines of code that each may have: blank lines and comments count for nothing.
const PROGRAMS: [(&[&str], usize); 5] = [
    (&["examples/embed/src/bin/smallest.rs"], 25),
    // With retries, drift and a delete.
    (&["examples/embed/src/main.rs"], 60),
    // A web server with two kinds of its own, SQLite and server-sent events.
    (
        &["examples/folders/src/main.rs", "examples/folders/src/kinds.rs"],
        200,
    ),
    // A notifier of one's own, with the program around it.
    (&["examples/notifier/src/main.rs"], 60),
    // Programs that are kept running, without a project's files.
    (&["examples/supervisor/src/main.rs"], 80),
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

/// The most lines of a kind of managed resources in Rust, and of one in a file with its script.
const KIND_LINES: [usize; 2] = [60, 20];

#[test]
fn the_page_about_managed_resources_shows_a_kind_in_rust_that_is_tested_as_it_stands() {
    let page = read(&root().join("docs/managers.md"));
    let block = |begin: &str| {
        let (_, rest) = page.split_once(begin).expect("the page has the block");
        rest.split_once("\n```").expect("it ends").0.to_owned()
    };
    let shown = block("```rust\n");
    let lib = read(&root().join("runtime/managers/src/lib.rs"));
    let (_, example) = lib
        .split_once("//! # A first kind")
        .expect("the crate has the example");
    let (_, example) = example.split_once("//! ```\n").expect("it is a block");
    let (example, _) = example.split_once("//! ```").expect("it ends");
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::to_owned);
        lines.filter(|line| !line.trim().is_empty()).collect()
    };
    // Lines that the documentation hides begin with a sign.
    let told = example.lines().filter_map(|line| line.strip_prefix("//! "));
    let told: String = told
        .filter(|line| !line.starts_with("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(lines(&shown), lines(&told), "docs/managers.md shows another kind");
    assert!(
        lines(&shown).len() <= KIND_LINES[0],
        "{} lines",
        lines(&shown).len()
    );
    let in_files = lines(&block("```yaml desks/ada.yaml\n")).len() + lines(&block("```sh desk.sh\n")).len();
    assert!(in_files <= KIND_LINES[1], "{in_files} lines");
}

/// The most names at the root of the controller's library; the others stand in modules with a meaning.
const ROOT_NAMES: usize = 40;

#[test]
fn the_root_of_the_controller_has_few_names() {
    let lib = read(&root().join("runtime/controller/src/lib.rs"));
    let uses = lib
        .split("\npub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next());
    let names: Vec<&str> = uses
        .flat_map(|list| {
            let list = list.split_once('{').map_or(list, |(_, names)| names);
            list.trim_end_matches('}').split(',')
        })
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    assert!(
        names.len() <= ROOT_NAMES,
        "{} names, at most {ROOT_NAMES}: {names:?}",
        names.len()
    );
}
