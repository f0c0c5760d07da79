//! The command line of `metrics`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::rows::{Form, Out};
use crate::candidates::complete_names;

/// The arguments of `metrics`.
#[derive(Debug, Args)]
pub(crate) struct Metrics {
    /// Metrics view, by name; the query of `--query` may name it instead.
    #[arg(value_name = "NAME", required_unless_present = "query", add = ArgValueCompleter::new(complete_names))]
    pub name: Option<String>,
    /// Dimensions to group by, with commas between them; `TIME:day` cuts a time to days.
    #[arg(
        short = 'd',
        long,
        value_name = "D,...",
        value_delimiter = ',',
        help_heading = "Query"
    )]
    pub dimensions: Vec<String>,
    /// Measures to compute, with commas between them.
    #[arg(
        short = 'm',
        long,
        value_name = "M,...",
        value_delimiter = ',',
        help_heading = "Query"
    )]
    pub measures: Vec<String>,
    /// Only rows that meet a condition in SQL, such as "origin = 'JFK' AND hour >= 18".
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Query")]
    pub condition: Option<String>,
    /// Only groups that meet a condition in SQL on their measures.
    #[arg(long, value_name = "CONDITION", help_heading = "Query")]
    pub having: Option<String>,
    /// Only this range of time: P7D ends with the data, 7D now; also MTD, 2024-01 or "2024-01-01 to 2024-02-01".
    #[arg(long, value_name = "RANGE", help_heading = "Query")]
    pub time_range: Option<String>,
    /// Compare each measure with another range: `previous`, a distance such as -1Y, or a range.
    #[arg(
        long,
        value_name = "RANGE",
        allow_hyphen_values = true,
        help_heading = "Query"
    )]
    pub compare: Option<String>,
    /// Cut times by the clock of this zone [default: UTC].
    #[arg(long, value_name = "ZONE", help_heading = "Query")]
    pub time_zone: Option<String>,
    /// Columns to sort by, with commas between them; `-` before one sorts from its largest.
    #[arg(
        short = 's',
        long,
        value_name = "C,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Query"
    )]
    pub sort: Vec<String>,
    /// At most so many rows [default: those that fit a terminal, 1000 elsewhere].
    #[arg(long, value_name = "N", help_heading = "Query")]
    pub limit: Option<u64>,
    /// Leave out so many rows first.
    #[arg(long, value_name = "N", help_heading = "Query")]
    pub offset: Option<u64>,
    /// Make columns of the values of these dimensions.
    #[arg(long, value_name = "D,...", value_delimiter = ',', help_heading = "Query")]
    pub pivot: Vec<String>,
    /// Show times without rows, too.
    #[arg(long, help_heading = "Query")]
    pub fill: bool,
    /// Add a row of totals.
    #[arg(long, help_heading = "Query")]
    pub totals: bool,
    /// Read a query in JSON from a file (`-` for standard input); options add to it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Query")]
    pub query: Option<PathBuf>,
    /// See what a user sees: an e-mail of the manifest's `mock_users`, attributes in JSON, or a file of them.
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Ask through an explore or a canvas (`explore/NAME`): its rules bind the user, too.
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub through: Option<String>,
    /// Ask as if it were another time.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Print the ends of the view's time dimension instead.
    #[arg(long, requires = "name", conflicts_with_all = ["out", "sql", "query"])]
    pub bounds: bool,
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
