//! The command line of commands that show rows: `query`, `show`, `partitions`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::super::candidates::complete_names;
use super::super::values::Wait;

/// The arguments of `partitions`.
#[derive(Debug, Args)]
pub(crate) struct Partitions {
    /// The model, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Only those that failed.
    #[arg(long)]
    pub errored: bool,
    /// At most so many, the latest.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u64,
}

/// The arguments of `query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// One read-only statement; `-` reads it from standard input.
    #[arg(value_name = "SQL", required_unless_present = "file", conflicts_with = "file")]
    pub sql: Option<String>,
    /// Reads the statement from a file.
    #[arg(short = 'f', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// At most so many rows [default: those that fit a terminal, 1000 in other tables, all in other forms].
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub form: Form,
    /// Give up after so long, such as 30s.
    #[arg(long, value_name = "D")]
    pub timeout: Option<Wait>,
    #[command(flatten)]
    pub out: Out,
}

/// The forms of rows that have an option of their own.
#[derive(Debug, Args)]
pub(crate) struct Form {
    /// One value a line; short for `--format vertical`.
    #[arg(long)]
    pub vertical: bool,
    /// The first number of the rows as a line over time or as bars; short for `--format chart`.
    #[arg(long, conflicts_with = "vertical")]
    pub chart: bool,
}

/// The file that `query` and `show` write rows into.
#[derive(Debug, Args)]
pub(crate) struct Out {
    /// Writes all rows into this .csv, .xlsx or .parquet file, which appears whole or not at all; into a .svg file, a chart of them.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "vertical")]
    pub out: Option<PathBuf>,
    /// Replaces the file if it is there.
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// The arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Resource, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// At most so many rows [default: those that fit a terminal, 10 elsewhere].
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub form: Form,
    #[command(flatten)]
    pub out: Out,
}
