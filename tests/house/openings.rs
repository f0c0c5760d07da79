//! Summary lines of documentation begin with a verb or a noun phrase, not with a question word.
//!
//! `openings.txt` holds, for each crate, the number of summaries of modules and of items that still do. The numbers may
//! only fall: a new one fails the test, and so does a bound that is larger than it has to be. `WATERSHED_BLESS=1`
//! lowers the bounds, and never raises them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::{files, read, root, shown};

/// Words that open a clause where a verb or a noun is expected.
const QUESTION_WORDS: &[&str] = &[
    "What", "Who", "Which", "Whose", "Where", "When", "Whether", "How", "Why",
];

/// The bounds, relative to the repository.
const BOUNDS: &str = "tests/house/openings.txt";

/// The summaries of one crate that open with a question word.
#[derive(Default)]
struct Openings {
    modules: Vec<String>,
    items: Vec<String>,
}

#[test]
fn summaries_that_open_with_a_question_word_only_become_fewer() {
    let found = found();
    let bounds = bounds(&read(&root().join(BOUNDS)));
    let mut lowered = String::from("# crate, modules, items\n");
    let mut wrong = String::new();
    for (name, openings) in &found {
        let (modules, items) = bounds.get(name).copied().unwrap_or_default();
        let counts = [
            ("modules", &openings.modules, modules),
            ("items", &openings.items, items),
        ];
        let _ = write!(lowered, "{name}");
        for (of, openings, bound) in counts {
            let _ = write!(lowered, " {}", openings.len().min(bound));
            if openings.len() > bound {
                let _ = writeln!(wrong, "{name}: {} of {of}, at most {bound}:", openings.len());
                let _ = writeln!(wrong, "{}", new_ones(openings).join("\n"));
            } else if openings.len() < bound {
                let lower = "lower the bound (WATERSHED_BLESS=1 does)";
                let _ = writeln!(wrong, "{name}: {} of {of}, not {bound}: {lower}", openings.len());
            }
        }
        lowered.push('\n');
    }
    if env::var_os("WATERSHED_BLESS").is_some() {
        fs::write(root().join(BOUNDS), lowered).expect("the bounds can be written");
        wrong = wrong
            .lines()
            .filter(|line| !line.contains("lower the bound"))
            .collect();
    }
    assert!(
        wrong.is_empty(),
        "begin a summary with a verb or a noun phrase\n{wrong}"
    );
}

#[test]
fn a_summary_is_the_first_line_of_each_block_of_documentation() {
    let text = "//! What this is.\n//! How it works.\n\n/// Returns it.\n/// When asked.\nfn a() {}\n\n    /// How many.\n    b: u8,\n/// Whatever.\nfn c() {}\n";
    let openings = openings_in("x.rs", text);
    assert_eq!(openings.modules, ["x.rs:1: What this is."]);
    assert_eq!(openings.items, ["x.rs:8: How many."]);
}

/// The openings of each crate, by the name of its package.
fn found() -> BTreeMap<String, Openings> {
    let mut found: BTreeMap<String, Openings> = BTreeMap::new();
    for path in files("rs") {
        let openings = openings_in(&shown(&path), &read(&path));
        let of_crate = found.entry(package(&path)).or_default();
        of_crate.modules.extend(openings.modules);
        of_crate.items.extend(openings.items);
    }
    found
}

/// The openings of one file, each with its place.
fn openings_in(file: &str, text: &str) -> Openings {
    let mut openings = Openings::default();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        for (marker, list) in [("//! ", &mut openings.modules), ("/// ", &mut openings.items)] {
            let goes_on = before.starts_with(marker.trim_end());
            if let Some(summary) = line.strip_prefix(marker).filter(|_| !goes_on)
                && opens_with_a_question_word(summary)
            {
                list.push(format!("{file}:{}: {summary}", number + 1));
            }
        }
        before = line;
    }
    openings
}

fn opens_with_a_question_word(summary: &str) -> bool {
    let first = summary.split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|first| QUESTION_WORDS.contains(&first))
}

/// The package that a file belongs to: the nearest manifest above it names it.
fn package(path: &Path) -> String {
    let manifest = path
        .ancestors()
        .map(|folder| folder.join("Cargo.toml"))
        .find(|file| file.is_file());
    let manifest = read(&manifest.expect("a source file belongs to a crate"));
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
    name.expect("a crate has a name").trim_matches('"').to_owned()
}

/// The bounds by crate: summaries of modules, and of items.
fn bounds(text: &str) -> BTreeMap<String, (usize, usize)> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(' ').collect();
        let [name, modules, items] = cells[..] else {
            panic!("{BOUNDS}: `{row}` is not a crate and two numbers");
        };
        let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("{BOUNDS}: {row}"));
        (name.to_owned(), (number(modules), number(items)))
    })
    .collect()
}

/// The openings that were not there when the bounds were last written; all of them where git can't tell.
fn new_ones(openings: &[String]) -> Vec<String> {
    let Some(commit) = git(&["log", "-1", "--format=%H", "--", BOUNDS]).filter(|commit| !commit.is_empty())
    else {
        return openings.to_vec();
    };
    let mut then: BTreeMap<&str, String> = BTreeMap::new();
    let mut new = Vec::new();
    for opening in openings {
        let (file, rest) = opening.split_once(':').unwrap_or_default();
        let (_, summary) = rest.split_once(": ").unwrap_or_default();
        let text = then
            .entry(file)
            .or_insert_with(|| git(&["show", &format!("{}:{file}", commit.trim())]).unwrap_or_default());
        if !text.contains(summary) {
            new.push(opening.clone());
        }
    }
    new
}

/// The output of git; `None` outside of a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
