//! The guides: every example in them is compiled, and every command in them is run.
//!
//! A fenced block whose first line names a file (` ```yaml models/a.yaml `) is that file of the page's project; all of
//! a page's files are one project. A block ` ```sh run ` holds commands that are called in it, each expected to end well
//! unless a comment behind it says `# exit N`.

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

/// The page's project.
fn project(page: &str, blocks: &[Block]) -> Sandbox {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
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
            files.insert(&block.about, block.text.clone());
        }
    }
    if !files.contains_key("rill.yaml") {
        files.entry("watershed.yaml").or_default();
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
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
