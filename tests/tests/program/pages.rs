//! The guides: every example in them is compiled, and every command in them is run.
//!
//! A fenced block whose first line names a file (` ```yaml models/a.yaml `) is that file of the page's project; all of
//! a page's files are one project. A block ` ```sh run ` holds commands that are called in it, each expected to end well
//! unless a comment behind it says `# exit N`. Pages over a sample lay their files over its own; there ` ```sql same `
//! begins with a command in a comment, whose rows are those of the query below it, ` ```yaml FILE excerpt ` stands in the
//! sample's file, and ` ```console ` holds commands behind `$` and what they print.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// The guides.
const PAGES: [&str; 9] = [
    "concepts.md",
    "managers.md",
    "models.md",
    "project-format.md",
    "from-rill.md",
    "from-dbt.md",
    "from-sqlmesh.md",
    "results.md",
    "troubleshooting.md",
];

/// Pages over the flights project.
const OVER_FLIGHTS: [&str; 4] = ["metrics.md", "apis.md", "alerts.md", "reports.md"];

/// A fenced block of a page.
struct Block {
    language: String,
    /// The text behind the language.
    about: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(head)) => {
                let (language, about) = head.split_once(' ').unwrap_or((head, ""));
                open = Some(Block {
                    language: language.to_owned(),
                    about: about.to_owned(),
                    text: String::new(),
                    line: index + 1,
                });
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block does not end");
    blocks
}

/// The files that stand in a page's blocks.
fn files<'b>(page: &str, blocks: &'b [Block]) -> BTreeMap<&'b str, &'b str> {
    let mut files = BTreeMap::new();
    for block in blocks {
        // Commands stand in blocks of the same language.
        let is_script = block.language == "sh" && block.about.ends_with(".sh");
        let is_file = is_script || matches!(block.language.as_str(), "sql" | "yaml" | "csv" | "ini");
        if is_file {
            assert!(
                !block.about.is_empty(),
                "{page}:{}: the example does not say which file it is",
                block.line
            );
            files.insert(block.about.as_str(), block.text.as_str());
        }
    }
    files
}

/// The page's project.
fn project(page: &str, blocks: &[Block]) -> Sandbox {
    let mut files = files(page, blocks);
    if !files.contains_key("rill.yaml") {
        files.entry("watershed.yaml").or_default();
    }
    let files: Vec<_> = files.into_iter().collect();
    Sandbox::with(&files)
}

#[test]
fn every_example_in_the_guides_compiles_without_a_word_and_converges() {
    for page in PAGES {
        let project = project(page, &blocks(page));
        let said = project.call(&["validate", "--json"]);
        assert_eq!(
            said.json()["diagnostics"],
            Value::Array(Vec::new()),
            "{page}: {}",
            said.stderr
        );
        let said = project.call(&["run", "--no-progress"]);
        assert_eq!(said.code, Some(0), "{page}: {}\n{}", said.stdout, said.stderr);
    }
}

/// Pages of connectors to what no test reaches: their examples are compiled.
const CONNECTORS: [&str; 4] = [
    "connectors/azure.md",
    "connectors/gcs.md",
    "connectors/https.md",
    "connectors/s3.md",
];

#[test]
fn every_example_of_a_connector_compiles_without_a_word() {
    for page in CONNECTORS {
        let blocks = blocks(page);
        let said = project(page, &blocks).call(&["validate", "--json"]);
        assert_eq!(said.code, Some(0), "{page}: {}", said.stdout);
        let found = said.json()["diagnostics"].as_array().map(Vec::len);
        assert_eq!(found, Some(0), "{page}: {}", said.stdout);
    }
}

#[test]
fn every_command_in_the_guides_ends_as_they_say() {
    for page in PAGES {
        let blocks = blocks(page);
        let project = project(page, &blocks);
        call_commands(page, &blocks, &project);
    }
}

#[test]
fn examples_over_the_flights_project_say_what_they_show() {
    let pages: Vec<(&str, Vec<Block>)> = OVER_FLIGHTS.iter().map(|page| (*page, blocks(page))).collect();
    let sample = Sandbox::from_project("flights");
    for (page, blocks) in &pages {
        let (excerpts, others): (Vec<_>, Vec<_>) = files(page, blocks)
            .into_iter()
            .partition(|(file, _)| file.ends_with(" excerpt"));
        for (file, text) in excerpts {
            let file = sample.path().join(file.trim_end_matches(" excerpt"));
            let whole = fs::read_to_string(&file).expect("the sample has the file");
            assert!(whole.contains(text), "{page}: {} has no\n{text}", file.display());
        }
        for (file, text) in others.into_iter().filter(|(file, _)| *file != "same") {
            sample.write(file, text);
        }
        for block in blocks
            .iter()
            .filter(|block| block.language == "json" && !block.about.is_empty())
        {
            sample.write(&block.about, &block.text);
        }
    }
    let said = sample.call(&["validate", "--json"]);
    assert_eq!(
        said.json()["diagnostics"],
        Value::Array(Vec::new()),
        "{}",
        said.stdout
    );
    let said = sample.call(&["run", "--no-progress"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.stdout, said.stderr);
    for (page, blocks) in &pages {
        call_commands(page, blocks, &sample);
        for block in blocks.iter().filter(|block| block.about == "same") {
            same_rows(page, block, &sample);
        }
    }
}

#[test]
fn the_tour_of_the_flights_project_prints_what_it_shows() {
    let page = "../testdata/projects/flights/README.md";
    let blocks = blocks(page);
    let sample = Sandbox::from_project("flights");
    call_commands(page, &blocks, &sample);
    let shown: Vec<&Block> = blocks
        .iter()
        .filter(|block| block.language == "console")
        .collect();
    assert!(!shown.is_empty(), "{page} shows no output");
    for block in shown {
        same_output(page, block, &sample);
    }
}

/// The rows of a command, in the comment that begins a block, are those of the query below it.
fn same_rows(page: &str, block: &Block, project: &Sandbox) {
    let (command, sql) = block
        .text
        .split_once('\n')
        .expect("a query stands below a command");
    let command = command
        .strip_prefix("-- ")
        .expect("a command stands in a comment");
    let words = words(command);
    let arguments = words.iter().skip(1).map(String::as_str).chain(["--json"]);
    let said = project.call(&arguments.collect::<Vec<_>>());
    assert_eq!(said.code, Some(0), "{page}: {command}\n{}", said.stderr);
    assert_eq!(
        said.json()["rows"],
        project.query(sql)["rows"],
        "{page}: {command}"
    );
}

/// Commands print what stands below them.
fn same_output(page: &str, block: &Block, project: &Sandbox) {
    for one in block.text.split("$ ").skip(1) {
        let (command, expected) = one.split_once('\n').unwrap_or((one, ""));
        let words = words(command);
        let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let said = project.call(&arguments);
        assert_eq!(
            said.stdout.trim_end(),
            expected.trim_end(),
            "{page}: {command}\n{}",
            said.stderr
        );
    }
}

fn call_commands(page: &str, blocks: &[Block], project: &Sandbox) {
    let commands = blocks
        .iter()
        .filter(|block| block.language == "sh" && block.about == "run");
    for block in commands {
        for line in block.text.lines().filter(|line| line.starts_with("watershed")) {
            let (command, comment) = line.split_once(" #").unwrap_or((line, ""));
            let expected = comment
                .trim()
                .strip_prefix("exit ")
                .and_then(|code| code.parse().ok());
            let words = words(command);
            let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            let said = project.call(&arguments);
            assert_eq!(
                said.code,
                Some(expected.unwrap_or(0)),
                "{page}: {command}\n{}\n{}",
                said.stdout,
                said.stderr
            );
        }
    }
}

/// The words of a command, quoted ones whole.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("one word at least").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
