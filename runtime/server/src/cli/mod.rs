//! The program: command line, output, exit codes.

mod args;
mod completions;
mod console;
mod failure;
mod hints;
mod init;
mod project;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use self::args::{Cli, Command};
use self::console::Console;
use self::failure::Failure;
use crate::exit::Exit;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    apologise_on_panic();
    if completions::answer() {
        return Exit::Converged.into();
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let mut console = Console::new(&cli.shared);
    match dispatch(&mut console, &cli) {
        Ok(exit) => exit.into(),
        // Whoever read the output has seen enough.
        Err(failure) if failure.is_closed_pipe() => Exit::Converged.into(),
        Err(failure) => {
            console.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Reads the command line. Help, versions and mistakes are printed here.
fn parse(args: &[OsString]) -> Result<Cli, ExitCode> {
    let choice = console::choice_in(args);
    let clap_choice = match choice {
        anstream::ColorChoice::Always => clap::ColorChoice::Always,
        anstream::ColorChoice::Never => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    };
    let command = Cli::command()
        .color(clap_choice)
        .version(version())
        .propagate_version(true);
    let parsed = command
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| {
        if let Some((message, hint)) = hints::foreign(&error) {
            Console::plain(choice).failure(&Failure::usage(message).hint(hint));
            return Exit::Usage.into();
        }
        // A closed pipe is no reason to complain.
        let _ = error.print();
        if error.use_stderr() {
            Exit::Usage.into()
        } else {
            Exit::Converged.into()
        }
    })
}

/// Versions of the program and its engine, and the commit that it was built from.
fn version() -> String {
    format!(
        "{} (duckdb {}, commit {})",
        env!("CARGO_PKG_VERSION"),
        "1.5.6",
        option_env!("WATERSHED_COMMIT").unwrap_or("unknown")
    )
}

fn dispatch(console: &mut Console, cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Init(args) => init::run(console, &cli.shared, args),
        Command::Completions(args) => completions::run(console, args),
        _ => Err(Failure::usage("later")),
    }
}

/// A panic is a defect of the program: say so calmly, with what to do.
fn apologise_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        usual(info);
    }));
}
