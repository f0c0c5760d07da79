//! The command line of `trash`, `backup` and `restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// The arguments of `trash`.
#[derive(Debug, Args)]
pub(crate) struct Trash {
    /// The thing to do.
    #[command(subcommand)]
    pub action: TrashAction,
}

/// The things to do with the trash.
#[derive(Debug, Subcommand)]
pub(crate) enum TrashAction {
    /// Show what is in it, since when and until when.
    List,
    /// Make a table of it yours: an ordinary table, which no file of the project makes.
    Restore(Restore),
    /// Throw tables away for good.
    Empty(Empty),
}

/// The arguments of `trash restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The name that the table had, or the beginning of its id; of several of a name, the one that came last.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The name to give it instead.
    #[arg(long = "as", value_name = "NAME")]
    pub to: Option<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `trash empty`.
#[derive(Debug, Args)]
pub(crate) struct Empty {
    /// Only these, by name or by the beginning of an id.
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    #[command(flatten)]
    pub consent: Consent,
}

/// The way in which a command that loses something is agreed to.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Do it without asking.
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Say what would be done, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

/// The arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which appears whole or not at all.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replaces the file if it is there.
    #[arg(long)]
    pub force: bool,
}

/// The arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreBackup {
    /// The backup.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub consent: Consent,
}
