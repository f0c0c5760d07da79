//! Shell completions, which the shell asks the program for, so that names of resources are completed too.

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use clap::FromArgMatches as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use watershed_api::Exit;

use super::args::{Cli, Completions, Shared};
use super::candidates::find_names_by;
use super::console::Console;
use super::failure::Failure;
use super::project::Location;

/// The variable that the shell sets when it asks for candidates.
const ASKED: &str = "WATERSHED_COMPLETE";
/// The shell that asks, kept since the variable is removed before names are looked for.
static ASKS: OnceLock<OsString> = OnceLock::new();

/// Answers a shell that asks for candidates. Returns false if none asked.
pub(super) fn answer() -> bool {
    let Some(shell) = std::env::var_os(ASKED) else {
        return false;
    };
    ASKS.get_or_init(|| shell);
    find_names_by(names_like);
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(super::command).var(ASKED);
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

/// Returns the names of resources with a typed prefix, read from the files alone, so that no lock is needed.
///
/// An error completes nothing.
fn names_like(typed: &OsStr) -> Vec<CompletionCandidate> {
    // Bash takes what it is given into the line as it is, and hands it back so.
    let is_bash = ASKS.get().is_some_and(|shell| shell == "bash");
    let typed = typed.to_string_lossy().to_lowercase();
    let typed = if is_bash { typed.replace('\\', "") } else { typed };
    let names = declared_names(&typed_so_far()).unwrap_or_default();
    let fits = names.into_iter().filter(|(kind, name)| {
        name.to_lowercase().starts_with(&typed) || format!("{kind}/{name}").to_lowercase().starts_with(&typed)
    });
    let with_kind = typed.contains('/');
    let candidate = |(kind, name): (String, String)| {
        let value = if with_kind { format!("{kind}/{name}") } else { name };
        let value = if is_bash { escaped(&value) } else { value };
        CompletionCandidate::new(value).help(Some(kind.into()))
    };
    fits.map(candidate).collect()
}

/// Escapes a text for bash: a backslash before each character with a meaning to the shell.
fn escaped(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_alphanumeric() && !"_@%+=:,./-".contains(c) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

/// Returns the names of resources in the command line's project; none without a project.
///
/// Names that several kinds share have their kind before them.
pub(super) fn names_in(args: &[OsString]) -> Vec<String> {
    let names = declared_names(args).unwrap_or_default();
    let is_shared = |name: &str| names.iter().filter(|(_, other)| other == name).count() > 1;
    let name = |(kind, name): &(String, String)| match is_shared(name) {
        true => format!("{kind}/{name}"),
        false => name.clone(),
    };
    // Those of components that stand in a canvas are made up, and nobody's first choice.
    let (made_up, own): (Vec<_>, Vec<_>) = names.iter().partition(|(_, name)| name.contains("--"));
    own.into_iter().chain(made_up).map(name).collect()
}

/// Returns the only kind whose names the command takes; none if it takes several, or an option stands before it.
fn kind_asked(args: &[OsString]) -> Option<&'static str> {
    // It takes explores and canvases.
    if args
        .iter()
        .rev()
        .nth(1)
        .is_some_and(|option| option == "--through")
    {
        return None;
    }
    match args.get(1)?.to_str()? {
        "metrics" => Some("metrics_view"),
        "call" => Some("api"),
        "alert" => Some("alert"),
        "report" => Some("report"),
        _ => None,
    }
}

/// Returns the kinds and names of the resources that the command line may name.
fn declared_names(args: &[OsString]) -> Option<Vec<(String, String)>> {
    let shared = options_in(args)?;
    let location = Location::find(&shared, None).ok()?;
    let options = super::options(&shared, &location);
    let runtime = super::runtime().ok()?;
    let compilation = runtime
        .block_on(watershed::program::compile(&options, &location.state))
        .ok()?;
    let kind = kind_asked(args);
    let resources = compilation.project().resources();
    let named = resources.map(|resource| (resource.kind.as_str().to_owned(), resource.name.clone()));
    Some(
        named
            .filter(|(of, _)| kind.is_none_or(|kind| of == kind))
            .collect(),
    )
}

/// Returns the command line that is still being typed.
fn typed_so_far() -> Vec<OsString> {
    std::env::args_os()
        .skip_while(|arg| arg != "--")
        .skip(1)
        .collect()
}

/// Parses the project's options of a command line, ignoring everything else.
fn options_in(typed: &[OsString]) -> Option<Shared> {
    let mut args: Vec<OsString> = vec!["watershed".into(), "status".into()];
    for pair in typed.windows(2) {
        if let [option, value] = pair
            && ["-C", "--project", "--environment", "--state-dir"]
                .iter()
                .any(|known| option == *known)
        {
            args.extend([option.clone(), value.clone()]);
        }
    }
    let matches = super::command().try_get_matches_from(args).ok()?;
    Some(Cli::from_arg_matches(&matches).ok()?.shared)
}
