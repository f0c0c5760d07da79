//! Consent of a person before something is lost.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::args::Consent;
use super::console::Console;
use super::failure::Failure;

/// Asks a person for consent before something is lost; without a terminal, `--yes` is required.
///
/// # Errors
/// When nobody can be asked, or the answer is no.
pub(super) fn ask(console: &mut Console, consent: Consent, what: &str) -> Result<(), Failure> {
    if consent.yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let failure = Failure::usage(format!("{what}: this has to be agreed to"));
        return Err(failure.hint("`--yes` agrees; `--dry-run` says what would be done"));
    }
    console.say(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim().to_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(Failure::usage("nothing was done").hint("`y` or `--yes` agrees")),
    }
}
