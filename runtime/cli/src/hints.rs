//! Hints for commands and options of other programs.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands of other programs, each with its hint.
const COMMANDS: &[(&str, &str)] = &[
    ("apply", "`watershed run` brings the project up to date"),
    ("build", "`watershed run` brings the project up to date"),
    (
        "chart",
        "`watershed show`, `query` and `metrics` draw one with `--chart`",
    ),
    (
        "alerts",
        "`watershed status --select kind:alert` lists them; `watershed alert test NAME` tries one out",
    ),
    (
        "apis",
        "`watershed status --all --select kind:api` lists them; `watershed call NAME` asks one",
    ),
    ("models", "`watershed status --select kind:model` lists them"),
    (
        "reports",
        "`watershed status --select kind:report` lists them; `watershed report run NAME` shows the rows of one",
    ),
    ("sources", "`watershed status --select kind:source` lists them"),
    (
        "tables",
        "`watershed status` lists sources and models; `watershed show NAME` shows the rows of one",
    ),
    ("check", "`watershed validate` looks for mistakes"),
    (
        "clean",
        "delete the folder `.watershed`; the next run builds everything anew",
    ),
    ("create", "`watershed init` writes a new project"),
    ("dag", "`watershed graph` shows what reads what"),
    (
        "dashboard",
        "`watershed open` shows the project in a browser while `watershed start --listen` runs",
    ),
    ("deps", "a project has no packages to install"),
    ("deploy", "`watershed run` brings the project up to date"),
    (
        "docs",
        "`watershed graph` shows what reads what, `watershed status` how it stands",
    ),
    ("exec", "`watershed query` asks the project's tables"),
    (
        "export",
        "`watershed query SQL --out FILE` writes rows into a file, and so does `watershed show NAME`",
    ),
    ("lineage", "`watershed graph` shows what reads what"),
    ("lint", "`watershed validate` looks for mistakes"),
    ("list", "`watershed status` lists the resources"),
    (
        "log",
        "`watershed logs NAME` shows what the runs of a resource said, `watershed history` past runs",
    ),
    ("ls", "`watershed status` lists the resources"),
    ("materialize", "`watershed run` brings the project up to date"),
    ("new", "`watershed init` writes a new project"),
    ("parse", "`watershed validate` looks for mistakes"),
    ("preview", "`watershed show` shows the first rows"),
    (
        "seed",
        "a file of rows is a source: `type: source` with its `path`, which `watershed run` builds",
    ),
    (
        "snapshot",
        "an incremental model keeps what its source showed before: `incremental: true`",
    ),
    ("rerun", "`watershed retry NAME` tries again what has failed"),
    ("sql", "`watershed query` asks the project's tables"),
    (
        "dev",
        "`watershed start` keeps the project up to date while its files are edited",
    ),
    (
        "watch",
        "`watershed start` keeps the project up to date while its files are edited",
    ),
    (
        "ui",
        "`watershed open` shows the project in a browser while `watershed start --listen` runs",
    ),
    ("unpause", "`watershed resume NAME` lets it go on"),
    ("up", "`watershed run` brings the project up to date"),
    (
        "why",
        "`watershed explain NAME` says why something is not running",
    ),
];

/// Options of other programs, each with its hint.
const OPTIONS: &[(&str, &str)] = &[
    (
        "--full-refresh",
        "`watershed refresh NAME --full` builds a model from nothing",
    ),
    ("--max-workers", "`--jobs N` sets how many resources run at once"),
    ("--output", "`--format` sets the form of the result"),
    ("--parallel", "`--jobs N` sets how many resources run at once"),
    ("--profile", "`--environment NAME` chooses the environment"),
    (
        "--profiles-dir",
        "connections are declared in the project; `--environment NAME` chooses the environment",
    ),
    (
        "--project-dir",
        "`--project DIR` (`-C`) names the project's folder",
    ),
    (
        "--select",
        "this command takes names; `run`, `plan`, `status`, `validate`, `refresh`, `test` and `graph` take `--select`",
    ),
    ("--target", "`--environment NAME` chooses the environment"),
    (
        "--threads",
        "`--jobs N` sets how many resources run at once, `--engine-threads N` the engine's threads",
    ),
    ("--var", "`--env KEY=VALUE` (`-e`) sets a variable"),
    (
        "--vars",
        "`--env KEY=VALUE` (`-e`) sets a variable; repeat it for more",
    ),
    ("-o", "`--format` sets the form of the result"),
    ("-t", "`--environment NAME` chooses the environment"),
];

/// Returns the message and hint for a command or option of another program; none for other errors.
pub(super) fn foreign(error: &clap::Error) -> Option<(String, &'static str)> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(ContextKind::InvalidSubcommand)?;
            let one = || find(COMMANDS, typed.strip_suffix('s')?);
            let hint = find(COMMANDS, typed).or_else(one)?;
            Some((format!("there is no command `{typed}`"), hint))
        }
        ErrorKind::UnknownArgument => {
            let typed = text(ContextKind::InvalidArg)?;
            let name = typed.split('=').next().unwrap_or(typed);
            let hint = find(OPTIONS, name)?;
            Some((format!("there is no option `{name}`"), hint))
        }
        _ => None,
    }
}

fn find(table: &[(&str, &'static str)], typed: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(name, _)| *name == typed)
        .map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn several_of_a_thing_are_as_well_known_as_one() {
        for typed in [
            &["dashboards"][..],
            &["charts"],
            &["alerts", "list"],
            &["alert", "list"],
            &["models"],
        ] {
            let arguments = ["watershed"].iter().chain(typed);
            let error = crate::command().try_get_matches_from(arguments).unwrap_err();
            let (message, hint) = foreign(&error).unwrap();
            let word = typed
                .last()
                .filter(|word| **word == "list" && typed[0] == "alert")
                .unwrap_or(&typed[0]);
            assert_eq!(message, format!("there is no command `{word}`"));
            assert!(hint.contains("watershed"), "{hint}");
        }
    }

    #[test]
    fn every_foreign_name_is_really_foreign() {
        let command = crate::args::Cli::command();
        let ours: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert!(COMMANDS.iter().all(|(name, _)| !ours.contains(name)));
        for (option, _) in OPTIONS {
            let long = option.strip_prefix("--");
            assert!(
                command
                    .get_arguments()
                    .all(|arg| arg.get_long() != long || long.is_none()),
                "{option}"
            );
        }
    }
}
