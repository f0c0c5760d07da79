//! The command line: commands, options, environment variables.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;

mod asked;
mod kept;
mod managed;
mod mcp;
mod metrics;
mod programs;
mod rows;
mod shared;
mod token;

use super::candidates::complete_names;
use super::values::{Limit, Since, Size, Variable, Wait, outcome};
pub(super) use asked::{Alert, AlertAction, AlertTest, Call, Report, ReportAction, ReportRun, Snooze};
pub(super) use kept::{Backup, Consent, Empty, Restore, RestoreBackup, Trash, TrashAction};
pub(super) use managed::{Event, Set};
pub(super) use mcp::Mcp;
pub(super) use metrics::Metrics;
pub(super) use programs::{Logs, Restart, Rollback, Scale};
pub(super) use rows::{Form, Out, Partitions, Query, Show};
pub(super) use shared::Shared;
pub(super) use token::{At, Token, TokenAction, TokenCreate};
use watershed_api::documents::Outcome;
use watershed_api::request::Selection;
use watershed_reconcilers::model::sample::Sample;

/// The end of the program's help.
const READ_ON: &str = "Try it: `watershed init my-project`, then `watershed run my-project`.
Read on: `watershed COMMAND -h`, and docs/getting-started.md and docs/cli.md of the program's folder.";

/// The end of the help of `start`.
const COLLECTED: &str = "Where a service manager collects the output: `watershed start --format jsonl` writes what happens as one
object a line, with its time (docs/operating.md). `--log-format json` does the same, and writes the program's own logs so too.";

/// Builds the tables that a folder of SQL and YAML declares, and keeps them up to date: in the right order, rebuilt when
/// what they depend on changes, dropped when their file goes.
#[derive(Debug, Parser)]
#[command(
    name = "watershed",
    disable_version_flag = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = READ_ON
)]
pub(super) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Options that every command takes.
    #[command(flatten)]
    pub shared: Shared,
    /// Print the versions of the program and of its engine.
    #[arg(short = 'V', long, action = ArgAction::Version, global = true, help_heading = "Output")]
    version: Option<bool>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a small project that runs.
    Init(Init),
    /// Bring the project up to date once.
    Run(Run),
    /// Bring the project up to date and keep it so while its files are edited, until stopped.
    #[command(after_long_help = COLLECTED)]
    Start(Start),
    /// Keep many projects up to date, and answer over HTTP for all of them, until stopped.
    Serve(Serve),
    /// Make, list and revoke tokens, by which callers of a service are let in.
    Token(Token),
    /// Compile only: look for mistakes without opening any data.
    Validate(Validate),
    /// Show what `run` would do and why, touching nothing.
    Plan(Plan),
    /// Show the status of each resource.
    Status(Status),
    /// Check resources again, and do the work that is needed.
    Reconcile(Reconcile),
    /// Do the work of resources again although nothing changed.
    Refresh(Refresh),
    /// Approve edits that are held because they discard rows.
    Approve(Operate),
    /// Ask the project's tables one question.
    Query(Query),
    /// Ask a metrics view: its measures by its dimensions.
    Metrics(Box<Metrics>),
    /// Call an API: its rows for some arguments.
    Call(Call),
    /// Try an alert out, or tell nobody of it for a while.
    Alert(Alert),
    /// Show the rows of a report, or send it now.
    Report(Report),
    /// Show the first rows of a source or model.
    Show(Show),
    /// Run the tests of models on the tables as they stand, without a build.
    Test(Test),
    /// Print the SQL of a model as it is sent to the engine.
    Compile(Compile),
    /// Show the graph of dependencies.
    Graph(Graph),
    /// Open the project's pages in a browser, while `start --listen` runs.
    Open(Open),
    /// Show past runs: when, why, how long, how they ended.
    History(History),
    /// List the partitions of a model: built, failed, when and with how many rows.
    Partitions(Partitions),
    /// Explain why a resource is not running: the root cause, and what to do.
    Explain(Explain),
    /// Pause resources: no further runs until they are resumed.
    Pause(Operate),
    /// Resume paused resources.
    Resume(Operate),
    /// Cancel runs of resources.
    Cancel(Operate),
    /// Set the number of a service's replicas until its file says another.
    Scale(Scale),
    /// Start the processes of services anew.
    Restart(Restart),
    /// Bring an earlier release of a service back until its file changes.
    Rollback(Rollback),
    /// Set the desired stage of a managed resource until `desired` in its file changes.
    Set(Set),
    /// Tell managed resources of an event.
    Event(Event),
    /// Retry failed resources now.
    Retry(Operate),
    /// Show the logs of a resource.
    Logs(Logs),
    /// Show numbers: what is pending, runs and failed, how long things take.
    Stats(Stats),
    /// Check the program's own consistency, and the engine.
    Debug(Debug),
    /// Find damaged files of the project's state, and set them aside.
    Doctor(Doctor),
    /// List tables without a resource, restore them, or delete them.
    Trash(Trash),
    /// Back up an environment into one file, also while it runs.
    Backup(Backup),
    /// Replace an environment by a backup.
    Restore(RestoreBackup),
    /// Release unused disk space.
    Gc(Gc),
    /// Print the JSON Schema of a kind's files, for editors.
    Schema(Schema),
    /// Help an editor with project files, by the Language Server Protocol on standard input and output.
    Lsp(Lsp),
    /// Give an assistant the project's tools, by the Model Context Protocol on standard input and output.
    Mcp(Mcp),
    /// Print completions for a shell, names of resources included.
    #[command(after_help = COMPLETIONS)]
    Completions(Completions),
    /// Write the manual pages into a folder.
    #[command(hide = true)]
    Man(Man),
    /// Be the parent of a project's local processes. Started by the program itself.
    #[command(hide = true)]
    Shim(Shim),
}

/// The form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// Rows for people (`query`, `show`).
    Table,
    /// Rows with one value a line (`query`, `show`).
    Vertical,
    /// A line over time, or a bar for each row (`query`, `show`, `metrics`).
    Chart,
    /// Rows for spreadsheets (`query`, `show`).
    Csv,
    /// One document at the end.
    Json,
    /// One event or row a line.
    Jsonl,
    /// For Graphviz (`graph`).
    Dot,
    /// For Prometheus (`stats`).
    Prometheus,
    /// For systems that show findings beside the code (`validate`).
    Sarif,
    /// For GitHub's workflows, which show findings on the line (`validate`).
    Github,
}

/// Use of colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The form of logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// The arguments of `init`.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Folder to write it to [default: here].
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub target: Option<PathBuf>,
    /// Template to begin with.
    #[arg(long, value_enum, value_name = "TEMPLATE", default_value_t)]
    pub template: Template,
}

/// The template of a new project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Template {
    /// A small project with two models.
    #[default]
    Empty,
    /// A year of flights out of New York: five sources, twenty-two models, dashboards.
    Flights,
}

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The project's folder.
    #[arg(value_name = "PROJECT", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Write numbers for Prometheus into a file at the end, for the node exporter's folder.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub metrics_file: Option<PathBuf>,
    #[command(flatten)]
    pub choice: Choice,
}

/// A choice of resources.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Choice {
    /// Only these: `NAME`, `+NAME` with what it reads, `NAME+` with what reads it, `tag:T`, `kind:K`, `path:P`,
    /// `state:failed`, `state:modified`. Spaces unite, commas intersect; may be repeated.
    #[arg(short = 's', long, value_name = "WHAT", add = ArgValueCompleter::new(complete_names))]
    pub select: Vec<String>,
    /// All but these, in the same words.
    #[arg(long, value_name = "WHAT", add = ArgValueCompleter::new(complete_names))]
    pub exclude: Vec<String>,
}

impl Choice {
    /// Returns the choice as it was typed.
    pub(super) fn selection(&self) -> Selection {
        Selection {
            select: self.select.clone(),
            exclude: self.exclude.clone(),
        }
    }
}

/// The arguments of `start`.
#[derive(Debug, Args)]
pub(super) struct Start {
    /// The project's folder.
    #[arg(value_name = "PROJECT", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Answer over HTTP too, on this machine and for this user; at 127.0.0.1:7437 unless an address is given.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:7437")]
    pub listen: Option<SocketAddr>,
    /// The place below the address.
    #[command(flatten)]
    pub reached: Reached,
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// File with the address and the projects.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Check the file, and open nothing.
    #[arg(long)]
    pub check: bool,
    /// The place below the address.
    #[command(flatten)]
    pub reached: Reached,
}

/// The way in which a service is reached, but for its address.
#[derive(Debug, Args)]
pub(super) struct Reached {
    /// Stand below a path, as behind a proxy.
    #[arg(long, value_name = "PATH")]
    pub base: Option<String>,
    /// Answer to a name of the host, besides those of this machine itself; may be repeated.
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Let in the user who started it, or whoever opens a link that it writes, once [default: user].
    #[arg(long, value_enum, value_name = "WHO")]
    pub auth: Option<Auth>,
}

/// Callers that are let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Auth {
    /// The user who started the program, on this machine.
    #[default]
    User,
    /// Whoever opens a link for one use.
    Link,
}

/// The arguments of `validate`.
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The project's folder.
    #[arg(value_name = "PROJECT", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// Add to each resource its spec, defaults filled in.
    #[arg(long)]
    pub spec: bool,
    #[command(flatten)]
    pub choice: Choice,
}

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The kind, or `manifest`; without it, the names of all schemas.
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
}

/// The arguments of `lsp`.
#[derive(Debug, Args)]
pub(super) struct Lsp {
    /// Speak on standard input and output, as is done anyway: some editors ask for it.
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// The arguments of `plan`.
#[derive(Debug, Args)]
pub(super) struct Plan {
    /// The project's folder.
    #[arg(value_name = "PROJECT", value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
    /// End with 5 if anything would be done.
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub choice: Choice,
}

/// The arguments of `status`.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Only these, by `name` or `kind/name`.
    #[arg(value_name = "NAME", conflicts_with_all = ["select", "exclude"], add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
    /// Show what the engine promises instead, and where it promises less than others.
    #[arg(long, conflicts_with_all = ["names", "select", "exclude"])]
    pub engine: bool,
}

/// The arguments of `reconcile`.
#[derive(Debug, Args)]
pub(super) struct Reconcile {
    /// Resources, by `name` or `kind/name`.
    #[arg(value_name = "NAME", required = true, add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
}

/// The arguments of `refresh`.
#[derive(Debug, Default, Args)]
pub(super) struct Refresh {
    /// Resources, by `name` or `kind/name`.
    #[arg(value_name = "NAME", required_unless_present_any = ["select", "exclude"])]
    #[arg(conflicts_with_all = ["select", "exclude"], add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
    /// Forget incremental state.
    #[arg(long)]
    pub full: bool,
    /// Also what depends on them, except reports.
    #[arg(long)]
    pub downstream: bool,
    /// One partition of them again: by its key, the beginning of it, or a value of its data.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["full", "downstream", "select", "exclude"])]
    pub partition: Vec<String>,
    /// The partitions of them that failed.
    #[arg(long, conflicts_with_all = ["full", "downstream", "partition", "select", "exclude"])]
    pub errored: bool,
}

/// The arguments of `test`.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Only those of these models, by `name` or `kind/name`.
    #[arg(value_name = "NAME", conflicts_with_all = ["select", "exclude"], add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
}

/// The arguments of `compile`.
#[derive(Debug, Args)]
pub(super) struct Compile {
    /// Resource, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
}

/// The arguments of `graph`.
#[derive(Debug, Args)]
pub(super) struct Graph {
    /// Only what this one reads and what reads it, by `name` or `kind/name`.
    #[arg(value_name = "NAME", conflicts_with_all = ["select", "exclude"], add = ArgValueCompleter::new(complete_names))]
    pub name: Option<String>,
    #[command(flatten)]
    pub choice: Choice,
}

/// The arguments of `open`.
#[derive(Debug, Args)]
pub(super) struct Open {
    /// The page of this one, by `name` or `kind/name` [default: that of the project].
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: Option<String>,
}

/// The arguments of `history`.
#[derive(Debug, Args)]
pub(super) struct History {
    /// Only this one, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: Option<String>,
    /// Maximum number of runs.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u64,
    /// Only runs that began at that time in UTC or later, or within so long until now.
    #[arg(long, value_name = "TIME")]
    pub from: Option<Since>,
    /// Only runs that began before that time in UTC, or longer ago.
    #[arg(long, value_name = "TIME")]
    pub until: Option<Since>,
    /// Only runs that ended so: `done`, `failed`, `skipped`, `cancelled`, `unchanged`; may be repeated.
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    pub outcome: Vec<Outcome>,
    /// The page behind one that ended with this token (`next` in JSON).
    #[arg(long, value_name = "TOKEN")]
    pub page: Option<String>,
    #[command(flatten)]
    pub choice: Choice,
}

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Resource, by `name` or `kind/name` [default: everything that is blocked].
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: Option<String>,
}

/// `pause`, `resume`, `cancel`, `retry`
#[derive(Debug, Args)]
pub(super) struct Operate {
    /// Resources, by `name` or `kind/name`.
    #[arg(value_name = "NAME", required = true, add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
}

/// The arguments of `stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {}

/// The arguments of `debug`.
#[derive(Debug, Args)]
pub(super) struct Debug {
    /// Subject to look at.
    #[command(subcommand)]
    pub what: Debugging,
}

/// The subject of `debug`.
#[derive(Debug, Subcommand)]
pub(super) enum Debugging {
    /// Check every rule of the controller, and the stored catalog against the loaded one.
    Check,
    /// Hold the project's engine to what it promises, on data of its own, which are removed afterwards.
    Conform(Conform),
}

/// The arguments of `debug conform`.
#[derive(Debug, Args)]
pub(super) struct Conform {
    /// Cases to try [default: all].
    #[arg(value_name = "CASE")]
    pub cases: Vec<String>,
}

/// The arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Set damaged files aside, so that the next run makes them anew.
    #[arg(long)]
    pub repair: bool,
}

/// The arguments of `gc`.
#[derive(Debug, Args)]
pub(super) struct Gc {}

/// The arguments of `man`.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder; made if it is missing.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// The arguments of `shim`.
#[derive(Debug, Args)]
pub(super) struct Shim {
    /// The state folder.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// The lines that switch completions on.
const COMPLETIONS: &str =
    "To have them, write into the shell's own file (~/.bashrc, ~/.zshrc, ~/.config/fish/config.fish):
  source <(watershed completions bash)     # or zsh
  watershed completions fish | source";

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Shell to print completions for.
    #[arg(value_enum)]
    pub shell: Shell,
}
