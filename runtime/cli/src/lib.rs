//! The program `watershed`: its command line, output and exit codes.

mod args;
mod ask;
mod asked;
mod backup;
mod candidates;
mod care;
mod compile;
mod completions;
mod consent;
mod console;
mod debug;
mod failing;
mod failure;
mod groups;
mod hints;
mod init;
mod input;
mod listen;
mod logging;
mod logs;
mod look;
mod lsp;
mod man;
mod managed;
mod mcp;
mod memory;
mod metrics;
mod metrics_file;
mod mistake;
mod open;
mod operate;
mod present;
mod project;
mod render;
mod rounds;
mod serve;
mod services;
mod session;
mod shim;
mod signals;
mod start;
mod token;
mod trash;
mod values;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};
use watershed_api::Exit;
use watershed_api::documents::Operation;

use self::args::{Cli, Command};
use self::console::Console;
use self::failure::Failure;
use self::render::paragraph;
use watershed::telemetry::Traces;
use watershed::{Files, Options, Runtime};

/// Time for the last spans to reach their collector.
const TRACES_WITHIN: Duration = Duration::from_secs(2);

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let traces = Traces::from_environment();
    let runtime = match &traces {
        Ok(Some(traces)) => Runtime::new().with_traces(traces.clone()),
        _ => Runtime::new(),
    };
    apologise_on_panic(runtime.clone());
    if completions::answer() {
        return Exit::Converged.into();
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    memory::choose(&cli.command);
    signals::survive_file_limits();
    let mut console = Console::new(&cli.shared, runtime.clone());
    let traces = traces.unwrap_or_else(|error| {
        console.note(&format!("{error}\n"));
        None
    });
    logging::begin(&cli.shared, &runtime, traces.as_ref());
    let ended = dispatch(&mut console, &cli);
    watershed::logs::flush();
    if let Some(traces) = traces {
        traces.shut_down(TRACES_WITHIN);
    }
    match ended {
        Ok(exit) => exit.into(),
        // Whoever read the output has seen enough.
        Err(failure) if failure.is_closed_pipe() => Exit::Converged.into(),
        Err(failure) => {
            console.failure(&failure);
            end_with_document(&mut console, &args, &failure);
            failure.exit.into()
        }
    }
}

/// Writes the document of a failure, if a program reads the result as JSON.
fn end_with_document(console: &mut Console, args: &[OsString], failure: &Failure) {
    // Where it can't be written nobody reads it.
    if console::wants_json(args) {
        let _ = console.json_line(&failure.document(&console.runtime));
    }
}

/// Parses the command line, and prints help, versions and errors.
fn parse(args: &[OsString]) -> Result<Cli, ExitCode> {
    let choice = console::choice_in(args);
    let clap_choice = match choice {
        anstream::ColorChoice::Always => clap::ColorChoice::Always,
        anstream::ColorChoice::Never => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    };
    let typed = groups::without_help_command(args);
    let read = |command: clap::Command| {
        let matches = command.try_get_matches_from(&typed);
        matches.and_then(|matches| Cli::from_arg_matches(&matches))
    };
    // Laying out the help is half of a start, and most starts print none.
    if let Ok(cli) = read(command()) {
        return Ok(cli);
    }
    let parsed = read(groups::grouped(folded(command())).color(clap_choice));
    parsed.map_err(|error| {
        let known = hints::foreign(&error)
            .map(|(message, hint)| Failure::usage(message).hint(hint))
            .or_else(|| nameless(&error, args));
        if let Some(failure) = known {
            let mut console = Console::plain(choice, Runtime::new());
            console.failure(&failure);
            end_with_document(&mut console, args, &failure);
            return Exit::Usage.into();
        }
        let mut console = Console::plain(choice, Runtime::new());
        let text = error.render().ansi().to_string();
        if error.use_stderr() {
            console.note(&text);
            end_with_document(&mut console, args, &Failure::usage(first_paragraph(&error)));
            Exit::Usage.into()
        } else {
            let width = console.result_width();
            // A closed pipe is no reason to complain.
            let _ = console.result(&paragraph::folded(&text, 2, width));
            Exit::Converged.into()
        }
    })
}

/// Returns the error of a command without the required resource, with the names to choose from; none for other errors.
fn nameless(error: &clap::Error, args: &[OsString]) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let is_name = |missing: &String| missing.starts_with("<NAME>") || missing.starts_with("<API>");
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing)))
            if missing.iter().all(is_name) => {}
        _ => return None,
    }
    let names = completions::names_in(args);
    let failure = Failure::usage("the name of a resource is missing");
    Some(match names.is_empty() {
        true => failure.hint("`watershed status` lists the resources"),
        false => failure.hint(format!(
            "one of: {}",
            crate::render::units::some_of(&names, MOST_NAMES)
        )),
    })
}

/// Most names of resources in a hint.
const MOST_NAMES: usize = 12;

/// Returns the message of an error in the command line, without the usage.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.map(str::trim).collect();
    let message = lines.join(" ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

/// Returns the definition of the command line, for parsing and completions.
fn command() -> clap::Command {
    Cli::command().version(version()).propagate_version(true)
}

/// Limits the short help to a command's own options; the long help also has the options that all commands share.
fn folded(command: clap::Command) -> clap::Command {
    let fold = |arg: clap::Arg| match arg.is_global_set() {
        true => arg.hide_short_help(true),
        false => arg,
    };
    command.mut_args(fold).mut_subcommands(|own| {
        let long = "`-h` lists the command's own options alone.";
        let long = match own.get_after_long_help() {
            Some(more) => format!("{more}\n\n{long}"),
            None => long.to_owned(),
        };
        own.after_help(FOLDED).after_long_help(long)
    })
}

/// The last line of a command's short help, which points to the long one.
const FOLDED: &str = "Every command also takes `-C DIR`, `-e KEY=VALUE`, `-q`, `-v` and more, and most take `--json`: `--help` lists them.";

/// The version of the linked engine, written here since asking the engine would load it.
const ENGINE: &str = "1.5.5";

/// Returns the versions of the program and its engine, and the commit of the build.
fn version() -> String {
    let commit = option_env!("WATERSHED_COMMIT").unwrap_or("unknown");
    format!("{} (duckdb {ENGINE}, commit {commit})", env!("CARGO_PKG_VERSION"))
}

fn dispatch(console: &mut Console, cli: &Cli) -> Result<Exit, Failure> {
    let shared = &cli.shared;
    match &cli.command {
        Command::Init(args) => init::run(console, shared, args),
        Command::Run(args) => work::run(console, shared, args),
        Command::Start(args) => start::start(console, shared, args),
        Command::Serve(args) => serve::serve(console, shared, args),
        Command::Validate(args) => compile::validate(console, shared, args),
        Command::Plan(args) => look::plan(console, shared, args),
        Command::Status(args) => look::status(console, shared, args),
        Command::Reconcile(args) => work::reconcile(console, shared, args),
        Command::Refresh(args) => work::refresh(console, shared, args),
        Command::Approve(args) => work::approve(console, shared, args),
        Command::Query(args) => look::query(console, shared, args),
        Command::Metrics(args) => metrics::metrics(console, shared, args),
        Command::Call(args) => asked::call(console, shared, args),
        Command::Alert(args) => asked::alert(console, shared, &args.action),
        Command::Report(args) => asked::report(console, shared, &args.action),
        Command::Show(args) => look::show(console, shared, args),
        Command::Test(args) => look::test(console, shared, args),
        Command::Compile(args) => compile::compile(console, shared, args),
        Command::Graph(args) => look::graph(console, shared, args),
        Command::Open(args) => open::open(console, shared, args),
        Command::History(args) => look::history(console, shared, args),
        Command::Partitions(args) => look::partitions(console, shared, args),
        Command::Explain(args) => operate::explain(console, shared, args),
        Command::Pause(args) => operate::operate(console, shared, Operation::Pause, args),
        Command::Resume(args) => operate::operate(console, shared, Operation::Resume, args),
        Command::Cancel(args) => operate::operate(console, shared, Operation::Cancel, args),
        Command::Scale(args) => services::scale(console, shared, args),
        Command::Restart(args) => services::restart(console, shared, args),
        Command::Rollback(args) => services::rollback(console, shared, args),
        Command::Set(args) => managed::set(console, shared, args),
        Command::Event(args) => managed::event(console, shared, args),
        Command::Retry(args) => work::retry(console, shared, args),
        Command::Logs(args) => logs::logs(console, shared, args),
        Command::Stats(args) => operate::stats(console, shared, args),
        Command::Debug(args) => debug::debug(console, shared, args),
        Command::Doctor(args) => care::doctor(console, shared, args),
        Command::Token(args) => token::token(console, shared, args),
        Command::Trash(args) => trash::trash(console, shared, args),
        Command::Backup(args) => backup::backup(console, shared, args),
        Command::Restore(args) => backup::restore(console, shared, args),
        Command::Gc(args) => care::gc(console, shared, args),
        Command::Schema(args) => compile::schema(console, shared, args),
        Command::Lsp(args) => lsp::run(shared, args),
        Command::Mcp(args) => mcp::run(console, shared, args),
        Command::Completions(args) => completions::run(console, args),
        Command::Man(args) => man::run(args),
        Command::Shim(args) => shim::run(args),
    }
}

/// The time that blocked threads have to end after a command.
///
/// What a disk that does not answer holds up has nothing to do with how the command ended.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// Runs a command's future to its end.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFT_OVER);
    done
}

/// Returns the runtime that commands run on.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error).context("can't start the program's threads"),
            hint: None,
        })
}

/// Returns the options of a command's instance.
fn options(shared: &args::Shared, location: &project::Location) -> Options {
    Options {
        environment: location.environment.clone(),
        state_dir: Some(location.state.root().to_path_buf()),
        variables: location.variables.clone(),
        jobs: shared.jobs.map(values::Limit::get),
        engine_threads: shared.engine_threads.map(values::Limit::get),
        memory_limit: shared.memory_limit.map(|size| size.0),
        sandbox: location.sandbox,
        extensions: shared.extensions.clone(),
        installs: !shared.no_extension_install,
        sample: location.sample,
        engine_patience: shared.wait.map_or(session::WAIT, |wait| wait.0),
        files: Files::Once,
        // A program that has lost its own path is found by its name.
        shim: std::env::current_exe().unwrap_or_else(|_| Options::new("").shim),
        ..Options::new(&location.root)
    }
}

/// Sets a panic hook that reports a defect, and what to do about it.
///
/// Work that is under way is finished or stopped in order by whoever waits for it.
fn apologise_on_panic(runtime: Runtime) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // No defect: whoever writes sheets catches it and says what became of them.
        if info
            .payload_as_str()
            .is_some_and(watershed_drivers::olap::is_unwritten_sheet)
        {
            return;
        }
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(info);
        }
        let place = info
            .location()
            .map(|at| format!(" at {}:{}", at.file(), at.line()))
            .unwrap_or_default();
        let what = info.payload_as_str().unwrap_or("no message");
        Console::plain(anstream::ColorChoice::Auto, runtime.clone()).say(&format!(
            "sorry, this is a defect of watershed: {what}{place}\nplease tell its maintainers, with the command and its version (`watershed -V`)\n"
        ));
    }));
}

#[cfg(test)]
mod tests {
    /// Reads a document in `docs`, for tests.
    fn page(path: &str) -> String {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    }

    #[test]
    fn the_documents_name_every_command_and_no_other() {
        let command = super::command();
        let ours: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let (readme, cli) = (page("README.md"), page("docs/cli.md"));
        for name in &ours {
            let named = |text: &str| {
                [
                    format!("`{name}`"),
                    format!("`{name} "),
                    format!("watershed {name}"),
                ]
                .iter()
                .any(|form| text.contains(form.as_str()))
            };
            assert!(named(&readme), "README.md does not name `{name}`");
            assert!(named(&cli), "docs/cli.md does not name `{name}`");
        }
        // The commands of the table in the page for scripts.
        let table = cli
            .split("## Commands")
            .nth(1)
            .and_then(|rest| rest.split("## ").next());
        let rows = table
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("| "));
        let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
        for name in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            let first = name.split(' ').next().unwrap_or_default();
            assert!(
                ours.contains(&first),
                "docs/cli.md names `{name}`, which is no command"
            );
        }
    }

    #[test]
    fn nothing_that_is_a_command_is_told_to_be_missing() {
        let command = super::command();
        let readme = page("README.md");
        let status = readme.split("| there | not there yet |").nth(1).unwrap();
        let rows = status.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
        let missing: Vec<&str> = cells.flat_map(|cell| cell.split(',').map(str::trim)).collect();
        for name in command.get_subcommands().map(clap::Command::get_name) {
            assert!(
                !missing.contains(&format!("`{name}`").as_str()),
                "`{name}` is there"
            );
        }
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::command().debug_assert();
    }
}
