//! Every code that the program can print has its section in the page on diagnostics, and no other code has one.
//!
//! Codes of the compiler are held to the page by a test of the compiler. Those of runs and commands are texts in the
//! code, so they are read from it here, in the forms in which they are written (see `codes_in`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{files, read, root, shown};

const PAGE: &str = "docs/diagnostics.md";
/// The heading below which the codes stand that are not the compiler's.
const RUNS: &str = "## Codes of runs and commands";
/// The crates whose errors people read.
const CRATES: [&str; 11] = [
    "runtime/api/src",
    "runtime/core/src",
    "runtime/controller/src",
    "runtime/drivers/src",
    "runtime/managers/src",
    "runtime/outputs/src",
    "runtime/reconcilers/src",
    "runtime/resolvers/src",
    "runtime/cli/src",
    "runtime/server/src",
    "runtime/workloads/src",
];
/// Parts of paths of tests, and of state graphs, which the program has none of.
const LEFT_OUT: [&str; 6] = [
    "/tests",
    "/testing",
    "/stategraph",
    "/fixture",
    "/interleavings",
    "/blocking.rs",
];
/// Names that are no mistake.
const NO_MISTAKE: [&str; 2] = ["converged", "would-change"];
/// Texts that a code stands right behind.
const BEFORE: [&str; 5] = ["permanent(", "transient(", "code: ", "CODE: &str =", ".halt("];
/// The beginning and end of a match that gives codes.
const MATCHES: [(&str, &str); 6] = [
    ("let code = match", "}\n"),
    ("let (code, ", "};"),
    ("fn name(self) -> &'static str {", "\n    }\n"),
    ("code(&self) -> &'static str {", "\n    }\n"),
    ("fn exit_code(", "\n}\n"),
    ("fn start_code(", "\n}\n"),
];

#[test]
fn every_code_of_a_run_has_its_section_and_every_section_its_code() {
    let (printed, explained) = (printed(), explained());
    assert!(printed.len() > 50, "the codes are found: {printed:?}");
    let silent: Vec<_> = printed
        .iter()
        .filter(|(code, _)| !explained.contains(*code))
        .collect();
    assert!(silent.is_empty(), "{PAGE} has no section for {silent:?}");
    let page = read(&root().join(PAGE));
    let (_, runs) = page.split_once(RUNS).expect("the codes of runs have a heading");
    let stale: Vec<_> = headings(runs)
        .filter(|code| !printed.contains_key(*code))
        .collect();
    assert!(
        stale.is_empty(),
        "{PAGE} explains what is never printed: {stale:?}"
    );
}

#[test]
fn every_section_has_an_example_and_says_what_helps() {
    let page = read(&root().join(PAGE));
    let sections: Vec<&str> = page.split("\n### ").skip(1).collect();
    assert_eq!(sections.len(), explained().len(), "a code has one section");
    for section in sections {
        let code = section.lines().next().unwrap_or_default();
        let own = section.split("\n## ").next().unwrap_or_default();
        let parts: Vec<&str> = own.split("\n```").collect();
        let [meaning, example, help] = parts.as_slice() else {
            panic!(
                "{code}: a meaning, an example and what helps, not {} parts",
                parts.len()
            );
        };
        assert!(meaning.lines().count() >= 3, "{code} has a meaning");
        assert!(
            example.starts_with("text\n") && example.len() > 8,
            "{code} has an example"
        );
        assert!(help.trim().len() > 8, "{code} says what helps");
        assert!(
            page.contains(&format!("| [`{code}`](#{code}) |")),
            "{code} has its row in a table"
        );
    }
}

#[test]
fn codes_are_found_in_every_form_in_which_they_are_written() {
    let text = r#"
        permanent("one", x); Error::new(ErrorKind::Dependency(to.clone()), "two", message);
        ..Self::transient(
            "three-a", x)
        let (code, message) = match trust { NoFiles => ("four", "a message"), };
        x { code: "five".into() } const A_CODE: &str = "six"; const B_CODES: [&str; 1] = ["ten"];
    fn code(&self) -> &'static str {
        match self { A => "seven", B => "eight-b" }
    }
        fn other() { A => "nine"; Error::permanent("Ten", x) }
    "#;
    let found: Vec<String> = codes_in(text).into_iter().collect();
    let expected = [
        "eight-b", "five", "four", "one", "seven", "six", "ten", "three-a", "two",
    ];
    assert_eq!(found, expected);
    let named = named_in("Error::permanent(ELEVEN, x)", "const ELEVEN: &str = \"eleven\";");
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["eleven"]);
}

/// The codes in the sources, each with a file that has it.
fn printed() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let paths = files("rs").into_iter().filter(|path| is_read(path));
    let sources: Vec<(String, String)> = paths.map(|path| (shown(&path), code_of(&read(&path)))).collect();
    let all: Vec<&str> = sources.iter().map(|(_, source)| source.as_str()).collect();
    let all = all.join("\n");
    for (path, source) in &sources {
        for code in codes_in(source).into_iter().chain(named_in(source, &all)) {
            found.entry(code).or_insert_with(|| path.clone());
        }
    }
    found.retain(|code, _| !NO_MISTAKE.contains(&code.as_str()));
    found
}

/// The source without comments and tests.
fn code_of(source: &str) -> String {
    let source = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    code.join("\n")
}

/// The codes that errors are given by the name of a constant, which stands somewhere in `all`.
fn named_in(source: &str, all: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for mark in ["permanent(", "transient("] {
        for (at, _) in source.match_indices(mark) {
            let rest = source.get(at + mark.len()..).unwrap_or_default().trim_start();
            let is_part = |c: &char| c.is_ascii_uppercase() || *c == '_';
            let name: String = rest.chars().take_while(is_part).collect();
            let stated = format!("const {name}: &str = \"");
            let (_, value) = all.split_once(&stated).unwrap_or_default();
            let code = value.split('"').next().unwrap_or_default();
            found.extend(is_code(code).then(|| code.to_owned()));
        }
    }
    found
}

fn is_read(path: &Path) -> bool {
    let path = shown(path);
    CRATES.iter().any(|folder| path.starts_with(folder)) && !LEFT_OUT.iter().any(|part| path.contains(part))
}

fn codes_in(source: &str) -> BTreeSet<String> {
    let behind = |mark: &'static str| {
        let starts = source.match_indices(mark);
        starts.filter_map(move |(at, _)| source.get(at + mark.len()..))
    };
    let mut found = BTreeSet::new();
    for mark in BEFORE {
        let quoted = behind(mark).filter_map(|rest| rest.trim_start().strip_prefix('"'));
        found.extend(quoted.filter_map(|rest| rest.split('"').next()));
    }
    // The kind of the error stands first.
    let statements = behind("Error::new(").filter_map(|rest| rest.split(';').next());
    found.extend(statements.filter_map(|text| texts(text).find(|text| is_code(text))));
    let lists = behind("CODES: [&str").chain(behind("TABLE: [Line"));
    let lists = lists.filter_map(|rest| rest.split("];").next());
    found.extend(lists.flat_map(texts));
    for (begin, end) in MATCHES {
        let arms = behind(begin).filter_map(|rest| rest.split(end).next());
        let arms = arms.flat_map(|body| body.split("=> ").skip(1));
        let codes = arms.filter_map(|arm| arm.trim_start_matches('(').strip_prefix('"'));
        found.extend(codes.filter_map(|rest| rest.split('"').next()));
    }
    let of_sql = behind("fn sql_code(").filter_map(|rest| rest.split("\n}\n").next());
    let owned = of_sql.flat_map(|body| {
        body.split("\".to_owned()")
            .filter_map(|text| text.rsplit('"').next())
    });
    found.extend(owned);
    let found = found.into_iter().filter(|text| is_code(text));
    found.map(str::to_owned).collect()
}

/// The texts in double quotes.
fn texts(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').skip(1).step_by(2)
}

fn is_code(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    text.split('-').all(is_word)
}

/// The codes that have a section.
fn explained() -> BTreeSet<String> {
    let page = read(&root().join(PAGE));
    headings(&page).map(str::to_owned).collect()
}

fn headings(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("### "))
}
