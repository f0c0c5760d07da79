//! The README's list of commands and its table of what is there follow the command line.

use crate::{read, root};

/// The commands that people see, in the order of the help.
fn commands() -> Vec<String> {
    let source = read(&root().join("runtime/cli/src/args.rs"));
    let (_, rest) = source
        .split_once("enum Command {\n")
        .expect("the command line has an enum of its commands");
    let (body, _) = rest.split_once("\n}\n").expect("the enum ends");
    let mut is_hidden = false;
    let mut found = Vec::new();
    for line in body.lines().map(str::trim) {
        is_hidden |= line == "#[command(hide = true)]";
        let Some((variant, _)) = line.split_once('(').filter(|_| line.ends_with("),")) else {
            continue;
        };
        if !std::mem::take(&mut is_hidden) {
            found.push(variant.to_lowercase());
        }
    }
    found
}

#[test]
fn the_readme_names_every_command_and_calls_none_missing() {
    let commands = commands();
    assert!(commands.len() > 25, "the commands are found: {commands:?}");
    let readme = read(&root().join("README.md"));
    for command in &commands {
        let is_named = readme.contains(&format!("`{command}`"))
            || readme.contains(&format!("`{command} "))
            || readme.contains(&format!("$ watershed {command}"));
        assert!(is_named, "README.md does not name `{command}`");
    }
    let (_, table) = readme
        .split_once("| there | not there yet |")
        .expect("README.md has a table of what is there");
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let missing = row.trim_matches('|').rsplit('|').next().unwrap_or_default();
        let mut items = missing
            .split([',', ';'])
            .map(|item| item.trim().trim_matches('`'));
        let there = items.find(|item| commands.iter().any(|command| command == item));
        assert_eq!(there, None, "README.md lists a command as missing");
    }
}
