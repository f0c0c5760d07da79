//! The command line of `call`, `alert` and `report`.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::rows::{Form, Out};
use crate::candidates::complete_names;
use crate::values::{Argument, Wait};

/// The arguments of `call`.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// API, by name.
    #[arg(value_name = "API", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Argument; a value in JSON keeps its type, all else is text.
    #[arg(short = 'a', long = "arg", value_name = "NAME=VALUE")]
    pub args: Vec<Argument>,
    /// At most so many rows [default: those that fit a terminal, 1000 elsewhere].
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Call it as a user: an e-mail of the manifest's `mock_users`, attributes in JSON, or a file of them.
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Ask as if it were another time.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Print the SQL instead of running it, with [NAME] in the place of values of variables.
    #[arg(long, conflicts_with = "out")]
    pub sql: bool,
    /// Print the SQL as it runs, values of variables included: for the project's owner alone.
    #[arg(long, requires = "sql", conflicts_with = "user")]
    pub show_values: bool,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub out: Out,
}

/// The arguments of `alert`.
#[derive(Debug, Args)]
pub(crate) struct Alert {
    /// The action.
    #[command(subcommand)]
    pub action: AlertAction,
}

/// The actions of `alert`.
#[derive(Debug, Subcommand)]
pub(crate) enum AlertAction {
    /// Evaluate an alert now, storing nothing and telling nobody.
    Test(AlertTest),
    /// Tell nobody of an alert for a while; it is evaluated and recorded all the same.
    Snooze(Snooze),
}

/// The arguments of `alert test`.
#[derive(Debug, Args)]
pub(crate) struct AlertTest {
    /// Alert, by name.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Evaluate it as if it were another time.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Send what people would be told, marked as a test.
    #[arg(long)]
    pub send: bool,
    /// End with code 5 if it fails.
    #[arg(long)]
    pub exit_code: bool,
}

/// The arguments of `alert snooze`.
#[derive(Debug, Args)]
pub(crate) struct Snooze {
    /// Alert, by name.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// For so long, such as 8h or 2d.
    #[arg(long = "for", value_name = "D", required_unless_present = "end")]
    pub duration: Option<Wait>,
    /// End a snooze now.
    #[arg(long, conflicts_with = "duration")]
    pub end: bool,
}

/// The arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The action.
    #[command(subcommand)]
    pub action: ReportAction,
}

/// The actions of `report`.
#[derive(Debug, Subcommand)]
pub(crate) enum ReportAction {
    /// Show the rows of a report, write them into a file, or send it now.
    Run(ReportRun),
}

/// The arguments of `report run`.
#[derive(Debug, Args)]
pub(crate) struct ReportRun {
    /// Report, by name.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Make it as if it were another time.
    #[arg(long, value_name = "TIME", conflicts_with = "send")]
    pub at: Option<String>,
    /// Make it and send it to its receivers, as when it is due.
    #[arg(long, conflicts_with = "out")]
    pub send: bool,
    /// Print the SQL instead of running it, with [NAME] in the place of values of variables.
    #[arg(long, conflicts_with_all = ["out", "send"])]
    pub sql: bool,
    /// Print the SQL as it runs, values of variables included: for the project's owner alone.
    #[arg(long, requires = "sql")]
    pub show_values: bool,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub out: Out,
}
