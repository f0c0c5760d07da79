//! The program's help, with the commands grouped by purpose.

use std::ffi::OsString;

use clap::Command;

use super::console::console_width;
use crate::render::paragraph::paragraph;

/// The groups of commands, with titles and order as in `docs/cli.md`.
pub(super) const GROUPS: [(&str, &[&str]); 8] = [
    ("Begin", &["init"]),
    (
        "Build",
        &["run", "start", "serve", "refresh", "reconcile", "approve"],
    ),
    (
        "Look",
        &[
            "validate",
            "compile",
            "plan",
            "graph",
            "status",
            "history",
            "test",
            "partitions",
            "open",
        ],
    ),
    ("Ask", &["show", "query", "metrics", "call", "alert", "report"]),
    (
        "Operate",
        &[
            "explain", "logs", "retry", "cancel", "pause", "resume", "stats", "scale", "restart", "rollback",
            "set", "event",
        ],
    ),
    (
        "Care for what is kept",
        &["backup", "restore", "trash", "gc", "doctor", "debug"],
    ),
    ("Let callers in", &["token"]),
    ("Editors and assistants", &["lsp", "mcp", "schema", "completions"]),
];

/// Width of the longest command's name, in columns.
const NAME: usize = 13;
/// Largest width of the help, in columns: wider lines are hard to read.
const WIDEST: u16 = 100;

/// Returns the program's command line with a help that groups its commands.
pub(super) fn grouped(command: Command) -> Command {
    let width = console_width().map_or(WIDEST, |width| width.min(WIDEST));
    let style = *command.get_styles().get_header();
    let name = *command.get_styles().get_literal();
    let mut groups = String::new();
    for (group, names) in GROUPS {
        groups.push_str(&format!("{style}{group}:{style:#}\n"));
        let ours = |wanted: &str| command.find_subcommand(wanted).and_then(Command::get_about);
        for (one, about) in names.iter().filter_map(|one| Some((one, ours(one)?))) {
            let begin = format!("  {name}{one:<NAME$}{name:#}");
            groups.push_str(&paragraph(
                &begin,
                2 + NAME,
                &about.to_string(),
                anstyle::Style::new(),
                Some(width),
            ));
        }
        groups.push('\n');
    }
    // What a list in one piece would say again.
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}{{after-help}}");
    command
        .override_usage("watershed [OPTIONS] <COMMAND>")
        .help_template(template)
        .disable_help_subcommand(true)
        .mut_subcommands(|own| own.hide(true))
}

/// Rewrites `help COMMAND` as `COMMAND --help`: clap's own `help` would be listed beside the groups.
pub(super) fn without_help_command(args: &[OsString]) -> Vec<OsString> {
    let mut args = args.to_vec();
    if args.get(1).is_some_and(|word| word == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = crate::command();
        let mut ours: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        ours.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, ours);
    }

    #[test]
    fn the_page_for_scripts_has_the_same_groups() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/cli.md")).unwrap();
        for (group, names) in GROUPS {
            let begin = format!("| {}", group.to_lowercase());
            let rows: Vec<&str> = page
                .lines()
                .filter(|line| line.to_lowercase().starts_with(&begin))
                .collect();
            for name in names {
                let named =
                    |row: &&str| row.contains(&format!("`{name}`")) || row.contains(&format!("`{name} "));
                assert!(
                    rows.iter().any(named),
                    "docs/cli.md does not have `{name}` under `{group}`"
                );
            }
        }
    }
}
